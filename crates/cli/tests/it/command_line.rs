//! Promises of every command: output that cannot be written, the store's place, how much is said,
//! and JSON that names its schema.

use std::fs::File;
use std::process::Stdio;

use crate::support::{self, Ended, FORCE, World, ended, quick};
use pgdyno_test_support::assert_contains;
use serde_json::Value;

/// The status that a shell reports of a program that SIGPIPE ended.
const READER_GONE: Option<i32> = Some(141);

/// Runs `arguments` where standard output takes nothing.
fn onto_full(world: &World, arguments: &[&str]) -> Ended {
    let full = File::options().write(true).open("/dev/full").unwrap();
    ended(world.command(arguments).stdout(full).stderr(Stdio::piped()).output().unwrap())
}

/// Runs `arguments` where nobody reads standard output.
fn onto_nobody(world: &World, arguments: &[&str]) -> Ended {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    ended(world.command(arguments).stdout(writer).stderr(Stdio::piped()).output().unwrap())
}

/// Standard output's failure is the command's, and is told in one line where somebody may have to
/// act.
fn assert_output_matters(world: &World, arguments: &[&str]) {
    onto_full(world, arguments)
        .with_case(format!("{arguments:?}"))
        .exits(1)
        .says("No space left on device");
    let gone = onto_nobody(world, arguments);
    assert_eq!(gone.code, READER_GONE, "{arguments:?}: {}", gone.err);
    assert!(
        !gone.err.contains("error") && !gone.err.contains("panic"),
        "{arguments:?}: {}",
        gone.err
    );
}

/// A run of two trials.
fn short_run(world: &World, more: &[&str]) -> Ended {
    let sets = ["experiment.repeats=1", "factors.clients=[1]", "load.duration=1s"];
    let mut arguments = quick(world, "quickstart", &sets);
    arguments.extend(more.iter().map(|word| (*word).to_owned()));
    world.run(&arguments)
}

#[test]
fn output_that_cannot_be_written_is_a_failure_of_every_command_that_prints() {
    let world = World::new();
    let disk: &str = &world.disk().display().to_string();
    let report: &str = &world
        .file("report.txt", "tps = 100.0 (excluding connections establishing)\n")
        .display()
        .to_string();
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["run", "--help"],
        &["help", "disk"],
        &["recipes"],
        &["recipes", "show", "quickstart"],
        &["list"],
        &["list", "--json"],
        &["filesystems"],
        &["doctor", disk],
        &["doctor", disk, "--json"],
        &["clean", "--dry-run"],
        &["audit", report, "--no-store"],
        &["run", "quickstart", "--dry-run"],
        &["crash", "--fault", "process", "--dry-run"],
        &["disk", disk, "--builtin", "--size", "48MiB", "--dry-run"],
        &["fsync", disk, "--duration", "1ms"],
        &["pgbench", "--help"],
        &["pgbench", "--version"],
    ] {
        assert_output_matters(&world, arguments);
    }
    world.assert_nothing_left();
    // What was measured is kept although it could not be shown.
    let probes = world.run(&["list", "--probes", "--json"]).json();
    assert_eq!(probes.as_array().unwrap().len(), 2);
    // A mistake stays one.
    assert_eq!(onto_full(&world, &["list", "--nonsense"]).code, Some(1));
    assert_eq!(onto_nobody(&world, &["show", "nothing"]).code, Some(1));
}

#[test]
fn a_runs_results_reports_and_json() {
    let world = World::new();
    let quiet = short_run(&world, &["--quiet"]);
    assert_eq!(
        (quiet.code, quiet.err.as_str()),
        (Some(0), ""),
        "progress is left out, results are not"
    );
    quiet.prints("synchronous_commit");
    let page = short_run(&world, &["-o", "-"]);
    assert!(
        page.out.starts_with("<!doctype html>") && page.out.ends_with("</html>\n"),
        "{}",
        page.err
    );
    output_of_a_run(&world);
    places_of_reports(&world);
    notes(&world);
    noise_of_two_runs(&world);
    schemas(&world);
}

fn output_of_a_run(world: &World) {
    for arguments in [
        &["show", "latest"][..],
        &["show", "latest", "--json"],
        &["report"],
        &["report", "-o", "-"],
        &["compare", FORCE, "latest:1", "latest:2", "--by", "synchronous_commit"],
        &["compare", FORCE, "latest:1", "latest:2", "--markdown"],
        &["compare", FORCE, "latest:1", "latest:2", "--json"],
    ] {
        assert_output_matters(world, arguments);
    }
}

fn places_of_reports(world: &World) {
    let shown = world.show("latest");
    let run = shown["run"]["id"].as_str().unwrap();
    let page = world.run(&["report", "-o", "-"]);
    assert!(
        page.out.starts_with("<!doctype html>") && page.out.ends_with("</html>\n"),
        "{}",
        page.err
    );
    let default = world.path("data/pgdyno/reports").join(format!("{run}.html"));
    std::fs::remove_file(&default).unwrap();
    let written = world.run(&["report"]);
    assert_eq!(written.out, format!("report of {run}: {}\n", default.display()));
    let stored = std::fs::read_to_string(&default).unwrap();
    assert!(stored.trim_end() == page.out.trim_end(), "the same page in both places");
    // Two treatments have a page of their own, under a name of their own.
    let two = ["latest:1", "latest:synchronous_commit=off"];
    assert_eq!(world.page(&[FORCE, two[0], two[1]])["kind"], "compare");
    let written = world.run(&["report", FORCE, two[0], two[1]]);
    let name = format!("{run}-1-{run}-synchronous_commit=off");
    assert!(written.code == Some(0) && written.out.starts_with(&format!("report of {name}: ")));
    world.run(&["report", "nobody"]).exits(1).says("nobody").says("help: ");
    // Made by pgdyno, whatever its version: written anew. Anybody else's: left as it is.
    world.run(&["report", run]).exits(0);
    std::fs::write(&default, "my notes").unwrap();
    world.run(&["report"]).exits(1).says("help: ");
    assert_eq!(std::fs::read_to_string(&default).unwrap(), "my notes");
    world
        .run(&["report", "-o", default.to_str().unwrap()])
        .with_case("a file that is named is replaced")
        .exits(0);
    // A link stays one, and what it leads to is replaced; what is no file is written to.
    let (link, target) = (world.path("link.html"), world.file("target.html", ""));
    std::os::unix::fs::symlink(&target, &link).unwrap();
    world.run(&["report", "-o", link.to_str().unwrap()]).exits(0);
    assert!(link.is_symlink() && support::is_filled(&target));
    let full = world.path("full");
    std::os::unix::fs::symlink("/dev/full", &full).unwrap();
    let full = world.run(&["report", "-o", full.to_str().unwrap()]).exits(1);
    full.says("No space left");
    assert!(!std::fs::metadata("/dev/full").unwrap().is_file());
}

fn notes(world: &World) {
    let all = world.show("latest")["notes"].as_array().unwrap().len();
    assert!(all > 5, "a run of one repeat on this machine has {all} notes");
    let bullets = |page: &str| page.split("\nNotes\n").nth(1).unwrap().matches("\n- ").count() + 1;
    let (brief, full) =
        (world.run(&["show", "latest"]).out, world.run(&["show", "latest", "--verbose"]).out);
    assert_eq!((bullets(&brief), bullets(&full)), (6, all));
    let more = format!("- {} more, and all of them whole, with `--verbose`.", all - 5);
    assert!(brief.contains(&more), "{brief}");
}

/// Two equal runs of one repeat tell how far equal runs differ, and nothing of their trials.
fn noise_of_two_runs(world: &World) {
    let noise = world.run(&["noise"]).out;
    assert_contains(&noise, &["1 degree of freedom", "the noise of its trials is not known"]);
    let planned = world.run(&["run", "quickstart", "--dry-run"]).out;
    assert!(planned.contains("\nWhat the run can tell\n- Not known"), "{planned}");
}

/// The schema of a document that `arguments` print.
fn schema(world: &World, arguments: &[&str]) -> String {
    let printed = world.run(arguments);
    let value: Value =
        serde_json::from_str(&printed.out).unwrap_or_else(|e| panic!("{arguments:?}: {e}"));
    let schema = match &value {
        // Every element of a list has its own.
        Value::Array(all) => all.first().map(|one| &one["schema"]),
        one => Some(&one["schema"]),
    };
    schema
        .and_then(Value::as_str)
        .unwrap_or_else(|| panic!("{arguments:?}: {}", printed.out))
        .to_owned()
}

fn schemas(world: &World) {
    let disk: &str = &world.disk().display().to_string();
    let report: &str = &world
        .file(
            "report.txt",
            "number of clients: 8\ntps = 100.0 (excluding connections establishing)\n",
        )
        .display()
        .to_string();
    let crash = "crash --fault process --rounds 1 --no-controls --load 100ms --json --storage";
    let crash: Vec<&str> = crash.split(' ').chain([disk]).collect();
    for (expected, arguments) in [
        ("pgdyno.probe/1", &["fsync", disk, "--duration", "1ms", "--json"][..]),
        ("pgdyno.audit/1", &["audit", report, "--json"]),
        ("pgdyno.crash/1", &crash),
        ("pgdyno.doctor/1", &["doctor", disk, "--json"]),
        ("pgdyno.run/1", &["show", "latest", "--json"]),
        ("pgdyno.probe/1", &["show", "fsync-", "--json"]),
        ("pgdyno.crash/1", &["show", "crash-", "--json"]),
        ("pgdyno.import/1", &["show", "import-report", "--json"]),
        ("pgdyno.compare/1", &["compare", FORCE, "latest:1", "latest:2", "--json"]),
        ("pgdyno.noise/1", &["noise", "--json"]),
        ("pgdyno.beside/1", &["compare", "import-report", "latest", "--json"]),
        ("pgdyno.listed-run/1", &["list", "--json"]),
        ("pgdyno.listed-probe/1", &["list", "--probes", "--json"]),
        ("pgdyno.listed-crash/1", &["list", "--crashes", "--json"]),
        ("pgdyno.listed-import/1", &["list", "--imported", "--json"]),
    ] {
        assert_eq!(schema(world, arguments), expected, "{arguments:?}");
    }
    assert!(world.run(&["show", "latest", "--json"]).out.starts_with("{\n  \"schema\": "));
}

#[test]
fn the_store_is_the_options_then_the_environments_then_the_default() {
    let world = World::new();
    let disk = world.disk();
    let (named, by_option) = (world.path("named/store.sqlite3"), world.path("option.sqlite3"));
    let probe = |variable: &str, more: &[&str]| {
        let arguments =
            [&["fsync", disk.to_str().unwrap(), "--duration", "1ms"][..], more].concat();
        ended(world.command(&arguments).env("PGDYNO_STORE", variable).output().unwrap()).exits(0);
    };
    probe(named.to_str().unwrap(), &[]);
    assert!(named.exists() && !world.path("data/pgdyno/store.sqlite3").exists());
    probe(named.to_str().unwrap(), &["--store", by_option.to_str().unwrap()]);
    assert!(by_option.exists());
    probe("", &[]);
    assert!(world.path("data/pgdyno/store.sqlite3").exists(), "an empty variable is none");
    assert!(world.run(&["list", "--help"]).out.contains("PGDYNO_STORE"));
}

#[test]
fn quiet_and_verbose_may_stand_anywhere_and_errors_stay() {
    let world = World::new();
    let disk: &str = &world.disk().display().to_string();
    for arguments in [
        &["-q", "fsync", disk, "--duration", "1ms"][..],
        &["fsync", disk, "--duration", "1ms", "--quiet"],
    ] {
        let done = world.run(arguments);
        assert_eq!((done.code, done.err.as_str()), (Some(0), ""), "{arguments:?}");
    }
    assert!(
        !world.run(&["fsync", disk, "--duration", "1ms"]).err.is_empty(),
        "else progress is told"
    );
    world.run(&["show", "nothing", "--quiet"]).exits(1).says("error: ");
    for arguments in [["doctor", disk, "-v"], ["-v", "doctor", disk], ["doctor", disk, "--verbose"]]
    {
        assert!(!world.run(&arguments).out.contains("tells which"), "{arguments:?}");
    }
    // pgbench's options of these names are its own.
    world.run(&["--quiet", "pgbench", "--help"]).exits(1).says("pgdyno pgbench");
}

#[test]
fn a_device_is_no_directory_and_what_to_do_is_said() {
    let world = World::new();
    let device =
        std::fs::read_dir("/sys/block").unwrap().flatten().map(|d| d.file_name()).find_map(
            |name| {
                let path = std::path::Path::new("/dev").join(name);
                path.exists().then_some(path)
            },
        );
    let Some(device) = device else { return };
    let device = device.to_str().unwrap();
    let refused = world.run(&["fsync", device]).exits(1);
    refused.says(format!("`pgdyno disk {device}`"));
    assert!(!refused.err.contains("--size"), "{}", refused.err);
}

#[test]
fn names_of_settings_are_checked_by_a_dry_run() {
    let world = World::new();
    let dry = |sets: &[&str]| {
        let mut arguments = quick(&world, "quickstart", sets);
        arguments.push("--dry-run".into());
        world.run(&arguments)
    };
    dry(&["postgres.settings.zero_damaged_pages=on", "postgres.settings.mine.own=x"])
        .exits(0)
        .prints("checked: ");
    for (set, word) in [
        ("postgres.settings.shared_bufers=8MB", "shared_buffers"),
        ("workload.load_settings.maintenance_work_mom=8MB", "maintenance_work_mem"),
        ("factors.synchronous_commit=[\"on\",\"maybe\"]", "remote_apply"),
    ] {
        let refused = dry(&[set]);
        assert_eq!((refused.code, refused.out.as_str()), (Some(1), ""), "{set}");
        refused.says(word);
    }
    world
        .run(&["crash", "--fault", "process", "--setting", "fsynk=off", "--dry-run"])
        .exits(1)
        .says("fsync");
    // And where it is meant, before any cluster is made.
    let refused =
        world.run(&quick(&world, "quickstart", &["postgres.settings.shared_bufers=8MB"])).exits(1);
    refused.says("shared_buffers");
    assert!(!refused.err.contains("making a cluster"), "{}", refused.err);
    world
        .run(&["run", "quickstart", "--dsn", "dbname=nowhere", "--dry-run"])
        .prints("not checked: names and values of settings");
}
