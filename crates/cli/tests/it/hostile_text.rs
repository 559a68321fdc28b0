//! Servers, files, markers and stores word much of what pgdyno prints. None of it is obeyed by a
//! terminal, and none of it forges a line.

use std::process::Output;

use crate::pgbench_support::Server;
use crate::support::World;
use pgdyno_audit::{Audit, ImportedRun};
use pgdyno_model::record::SessionEnd;
use pgdyno_model::units::Epoch;
use pgdyno_model::{
    CrashRecord, Failure, FailureKind, LevelValue, Levels, Plan, PlannedTrial, ProbeRecord,
    RunRecord, TrialRecord, Verdict,
};
use pgdyno_store::Store;
use pgdyno_test_support::{records, test_name};

/// A terminal's title, its clipboard, cursor movement, C1, DEL, text that runs backwards, and lines
/// that would be forged.
const HOSTILE: &str = "\u{1b}]0;owned\u{7}\u{1b}]52;c;eA==\u{7}\r\
     \u{9b}2J\u{7f}\u{202e}\u{2066}\u{2028}\n\
     error: forged\nhelp: forged\nx";

/// [`HOSTILE`] as far as the name of a file can hold it.
const NAME: &str = "a\u{1b}]0;owned\u{7}\r\u{9b}2J\u{202e}\nerror: forged\nhelp: forged\nb";

/// Asserts that `bytes` are valid UTF-8 and hold nothing that a terminal obeys.
fn assert_harmless(what: &str, bytes: &[u8]) {
    let text = std::str::from_utf8(bytes).unwrap_or_else(|e| panic!("{what}: {e}"));
    for c in text.chars() {
        let code = u32::from(c);
        let is_obeyed = (code < 0x20 && c != '\n' && c != '\t')
            || (0x7f..=0x9f).contains(&code)
            || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        assert!(!is_obeyed, "{what} prints {c:?}: {text:?}");
    }
}

/// Asserts that the output is harmless and that no line is forged; returns both streams.
fn assert_honest(what: &str, output: &Output) -> String {
    assert_harmless(what, &output.stdout);
    assert_harmless(what, &output.stderr);
    let both = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    let both = String::from_utf8(both).unwrap();
    assert!(!both.contains("panicked"), "{what}: {both}");
    // A page's lines are no lines of what it shows.
    if !both.starts_with("<!doctype html>") {
        let forged = both.lines().find(|line| ["error: forged", "help: forged"].contains(line));
        assert_eq!(forged, None, "{what:?}: {both:?}");
    }
    both
}

/// A trial whose texts are all hostile; the first of the plan failed.
fn hostile_trial(plan: &Plan, planned: PlannedTrial) -> TrialRecord {
    let mut trial = match planned.ordinal {
        1 => records::failed_trial(planned),
        _ => records::trial(plan, planned),
    };
    trial.failure = trial.failure.map(|_| Failure::new(FailureKind::Server, HOSTILE));
    trial.server_log = format!("LOG:  checkpoint {HOSTILE}\n2026 FATAL:  {HOSTILE}");
    if let Some(server) = &mut trial.server {
        server.version = HOSTILE.into();
        for setting in &mut server.settings {
            setting.value = HOSTILE.into();
        }
        server.settings[0].name = HOSTILE.into();
    }
    for table in &mut trial.telemetry {
        table.unavailable = Some(HOSTILE.into());
    }
    if let Some(measurement) = &mut trial.measurement {
        for script in &mut measurement.scripts {
            script.name = HOSTILE.into();
            script.statements.iter_mut().for_each(|s| s.text = HOSTILE.into());
        }
    }
    trial
}

/// An import whose names are hostile.
fn hostile_import() -> ImportedRun {
    let recognised =
        Audit::from_bytes("a.txt", b"tps = 545.5 (excluding connections establishing)\n")
            .unwrap()
            .recognised;
    let at = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_790_000_000);
    let import = ImportedRun {
        id: format!("import{HOSTILE}"),
        ..ImportedRun::new(HOSTILE, b"x", recognised, at)
    };
    assert_eq!(import.imported_at, Epoch::from_time(at));
    import
}

/// A store from elsewhere, whose every text is hostile.
fn hostile_store(world: &World) -> (std::path::PathBuf, String) {
    let path = world.path("theirs.sqlite3");
    let mut store = Store::open(&path).unwrap();
    let id = format!("run{HOSTILE}");
    let mut plan = records::plan(2);
    plan.name = HOSTILE.into();
    plan.question = Some(format!("</script><script>alert(1)</script>{HOSTILE}?"));
    plan.factors = vec![HOSTILE.into(), "clients".into()];
    for (n, treatment) in plan.treatments.iter_mut().enumerate() {
        let level = |n: usize| LevelValue::Text(format!("level {n}{HOSTILE}"));
        treatment.levels = Levels(vec![
            (HOSTILE.into(), level(n % 2)),
            ("clients".into(), LevelValue::Int(i64::try_from(n / 2).unwrap())),
        ]);
        treatment.storage = HOSTILE.into();
        treatment.workload = HOSTILE.into();
        treatment.settings.insert(HOSTILE.into(), HOSTILE.into());
    }
    let record = RunRecord {
        id: id.clone(),
        recipe: HOSTILE.into(),
        pgdyno_version: HOSTILE.into(),
        experiment: format!("# {HOSTILE}"),
        overrides: vec![HOSTILE.into()],
        ..records::run_record(plan)
    };
    store.begin_run(&record).unwrap();
    let mut session = records::session_record();
    session.host.kernel = HOSTILE.into();
    for storage in &mut session.storage {
        storage.name = HOSTILE.into();
        storage.directory = HOSTILE.into();
        storage.filesystem = HOSTILE.into();
    }
    let number = store.begin_session(&id, &session).unwrap();
    for planned in &record.plan.trials {
        store.add_trial(&id, number, &hostile_trial(&record.plan, *planned)).unwrap();
    }
    store.end_session(number, SessionEnd::Completed).unwrap();
    let probe = ProbeRecord {
        run: None,
        id: format!("probe{HOSTILE}"),
        name: HOSTILE.into(),
        ..records::probes::disk_probe()
    };
    store.add_probe(None, &probe).unwrap();
    let mut crash = CrashRecord {
        run: None,
        treatment: None,
        id: format!("crash{HOSTILE}"),
        name: HOSTILE.into(),
        ..records::crash_record(0, Verdict::Pass)
    };
    crash.outcome.notes = vec![HOSTILE.into()];
    store.add_crash(None, &crash).unwrap();
    store.add_import(&hostile_import()).unwrap();
    (path, id)
}

#[test]
fn a_store_from_elsewhere_moves_no_terminal() {
    let world = World::new();
    let (store, id) = hostile_store(&world);
    let store = store.to_str().unwrap();
    let page: &str = &world.path("page.html").display().to_string();
    for args in [
        &["list"] as &[&str],
        &["list", "--json"],
        &["list", "--probes"],
        &["list", "--probes", "--json"],
        &["list", "--crashes"],
        &["list", "--imported"],
        &["show", "latest"],
        &["show", "latest", "--verbose"],
        &["show", "latest", "--json"],
        &["show", "probe"],
        &["show", "probe", "--json"],
        &["show", "crash"],
        &["show", "crash", "--json"],
        &["show", "import"],
        &["show", "import", "--json"],
        &["report", "latest", "-o", page],
        &["report", "latest", "-o", "-"],
        &["report", "probe", "-o", "-"],
        &["report", "crash", "-o", "-"],
        &["report", "import", "-o", "-"],
        &["report", "import", "latest", "-o", "-"],
        &["report", "latest:1", "latest:2", "-o", "-"],
        &["compare", "latest:1", "latest:2"],
        &["compare", "latest:1", "latest:2", "--markdown"],
        &["compare", "latest:1", "latest:2", "--json"],
        &["compare", "import", "latest"],
        &["compare", "import", "latest", "--markdown"],
        &["verify"],
        &["verify", "--json"],
    ] {
        let output = world.command(args).args(["--store", store]).output().unwrap();
        let both = assert_honest(&args.join(" "), &output);
        let compares = args.contains(&"compare") || args.contains(&"latest:2");
        let is_refusal = compares && both.contains("error: cannot compare");
        assert!(output.status.success() || is_refusal, "{args:?}: {both}");
        if args.contains(&"--json") && output.status.success() {
            let _: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        }
    }
    let page = std::fs::read(page).unwrap();
    assert_harmless("the report's file", &page);
    assert!(!String::from_utf8(page).unwrap().contains("</script><script>alert"));
    // JSON keeps what there is.
    let shown = world.command(&["show", "latest", "--json", "--store", store]).output().unwrap();
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(shown["run"]["id"], id);
    // Names that are nobody's, or several's, are answered with the nearest.
    for name in ["ru", "rum", "", "prob\u{1b}e", "c\ne"] {
        assert_honest(name, &world.command(&["show", name, "--store", store]).output().unwrap());
    }
}

#[test]
fn a_run_of_a_store_from_elsewhere_names_no_file_outside_of_the_folder_for_reports() {
    let world = World::new();
    let path = world.path("theirs.sqlite3");
    let mut store = Store::open(&path).unwrap();
    let record = RunRecord { id: "../../outside".into(), ..records::run_record(records::plan(1)) };
    store.begin_run(&record).unwrap();
    drop(store);
    world
        .run(&["report", "latest", "--store", path.to_str().unwrap()])
        .exits(1)
        .says("-o FILE.html");
    let named = world.path("named.html");
    world
        .run_line(&format!("report latest --store {} -o {}", path.display(), named.display()))
        .exits(0);
}

#[test]
fn names_of_files_move_no_terminal_and_forge_no_line() {
    let world = World::new();
    let folder = world.path(NAME);
    std::fs::create_dir(&folder).unwrap();
    let marked = folder.join("marked");
    std::fs::create_dir(&marked).unwrap();
    std::fs::write(marked.join(".pgdyno-made"), HOSTILE).unwrap();
    let folder = folder.to_str().unwrap();
    let experiment = format!("{folder}/{NAME}.toml");
    let text = format!("[experiment]\nname = {NAME:?}\nrepeets = 1\n");
    std::fs::write(&experiment, text).unwrap();
    let report = format!("{folder}/{NAME}.txt");
    std::fs::write(
        &report,
        format!("{HOSTILE}\ntps = 545.5 (excluding connections establishing)\n"),
    )
    .unwrap();
    let store = format!("{folder}/store{NAME}.sqlite3");
    let set = format!("storage.disk.directory={folder}/nowhere");
    for args in [
        &["run", experiment.as_str()] as &[&str],
        &["run", &experiment, "--dry-run"],
        &["run", "quickstart", "--dry-run", "--set", &set],
        &["run", "quickstart", "--set", &set],
        &["run", "quickstart", "--set", NAME],
        &["run", NAME],
        &["run", "--resume", NAME],
        &[NAME],
        &["show", &format!("--{NAME}")],
        &["list", "--store", &store],
        &["show", NAME, "--store", &store],
        &["list", "--store", folder],
        &["list", "--store", &report],
        &["doctor", folder],
        &["doctor", &report],
        &["doctor", folder, "--verbose"],
        &["clean", "--dry-run", folder],
        &["clean", folder],
        &["fsync", &format!("{folder}/nowhere")],
        &["disk", &format!("{folder}/nowhere")],
        &["crash", "--fault", "process", "--storage", &format!("{folder}/nowhere")],
        &["crash", "--fault", NAME],
        &["audit", &report, "--no-store"],
        &["audit", &report, "--no-store", "--json"],
        &["audit", &report, "--store", &store],
        &["audit", folder],
        &["list", "--imported", "--store", &store],
        &["verify", "--store", &store],
        &["report", "latest", "-o", folder],
        &["load", NAME],
        &["pgbench", "-f", &format!("{folder}/nowhere")],
        &["pgbench", &format!("--{NAME}")],
        &["pgbench", "-b", NAME],
        &["pgbench", "-h", "/nowhere", NAME],
        &["recipes", "show", NAME],
    ] {
        let output = world.command(args).output().unwrap();
        // pgbench's own form has the words of its command line as they are, but for what a terminal
        // obeys.
        if args[0] == "pgbench" {
            assert_harmless(&args.join(" "), &output.stdout);
            assert_harmless(&args.join(" "), &output.stderr);
        } else {
            assert_honest(&args.join(" "), &output);
        }
    }
}

#[test]
fn a_servers_words_move_no_terminal() {
    let Some(server) = Server::newest(test_name!()) else { return };
    let literal = HOSTILE.replace('\'', "''");
    let quoted = format!("\"h{}\"", HOSTILE.replace('"', ""));
    server.ask("postgres", &format!("CREATE DATABASE {quoted}"));
    server.ask("our", &format!("CREATE ROLE {quoted} SUPERUSER LOGIN"));
    server.ask("our", &format!("CREATE TABLE {quoted} (x int)"));
    // No newline may stand in postgresql.auto.conf.
    let prefix = literal.replace('\n', " ");
    server.ask("postgres", &format!("ALTER SYSTEM SET log_line_prefix = '{prefix}'"));
    server.ask("postgres", "SELECT pg_reload_conf()");
    server.ask("postgres", &format!("ALTER DATABASE our SET application_name = '{literal}'"));
    server.script("notice.sql", &format!("DO $$BEGIN RAISE NOTICE '%', '{literal}'; END$$;\n"));
    server.script(
        "error.sql",
        &format!("DO $$BEGIN RAISE EXCEPTION '{literal}' USING HINT = '{literal}'; END$$;\n"),
    );
    server.script("named.sql", &format!("SELECT * FROM {quoted}, nowhere;\n"));
    server.script("meta.sql", "\\set x 1 \u{1b}]0;owned\u{7}\n");
    let hostile_name = format!("h{HOSTILE}");
    for args in [
        &["-n", "-t", "1", "-f", "notice.sql"] as &[&str],
        &["-n", "-t", "1", "-f", "error.sql"],
        &["-n", "-t", "1", "-f", "error.sql", "--verbose-errors", "-d"],
        &["-n", "-t", "1", "-f", "named.sql", "-r"],
        &["-n", "-t", "1", "-f", "meta.sql"],
        &["-n", "-t", "1", "-S", &hostile_name],
        &["-n", "-t", "1", "-S", "nobody\u{1b}]0;owned\u{7}"],
        &["-n", "-t", "1", "-S", "-U", &hostile_name],
        &["-i", "-I", "d", "-U", &hostile_name],
    ] {
        let output = server.command("our").args(args).output().unwrap();
        assert_harmless(&args.join(" "), &output.stdout);
        assert_harmless(&args.join(" "), &output.stderr);
    }
    // A run on it, and all that is shown of that.
    let home = server.directory("server");
    let dsn = format!("host={} user=postgres dbname=our", home.display());
    let world = World::new();
    let small = format!("workload.name={}", world.small_workload());
    let sets = [
        &small,
        "load.duration=1s",
        "load.rate=200",
        "load.warm_up=100ms",
        "workload.scale=1",
        "experiment.repeats=1",
    ];
    let mut run = world.command(&["run", "quickstart", "--dsn", &dsn]);
    for set in sets {
        run.args(["--set", set]);
    }
    let output = run.args(["--set", "factors.clients=[1]"]).output().unwrap();
    let both = assert_honest("run --dsn", &output);
    assert!(output.status.success(), "{both}");
    for args in [
        &["show", "latest", "--verbose"] as &[&str],
        &["show", "latest", "--json"],
        &["report", "-o", "-"],
    ] {
        let output = world.command(args).output().unwrap();
        let both = assert_honest(&args.join(" "), &output);
        assert!(output.status.success(), "{both}");
        let is_whole = !args.contains(&"--json") || both.contains("]0;owned");
        assert!(is_whole, "the hostile setting is in the fingerprint");
    }
    let mut broken = world.command(&["run", "quickstart", "--dsn", &dsn]);
    let output = broken
        .args(["--set", &format!("factors.\"{}\"=[\"1\"]", "theirs\\u001b")])
        .output()
        .unwrap();
    assert_honest("run with a hostile factor", &output);
}
