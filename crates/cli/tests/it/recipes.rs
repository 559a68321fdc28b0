//! Every recipe end to end, at settings that make it short, and its figures beside what the store
//! holds of its trials.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::field_report_figures::STAGES;
use crate::support::{Ended, World, elements, ended, is_root, with_sets};
use pgdyno_store::Store;
use pgdyno_test_support::zfs::Daemon;
use pgdyno_test_support::{assert_contains, needs, skip, test_name};
use serde_json::Value;

/// Runs `recipe` with `sets`; loop files go into the world's disk.
fn run(world: &World, recipe: &str, sets: &[&str]) -> Ended {
    ended(world.command(&arguments(recipe, sets)).output().unwrap())
}

fn arguments(recipe: &str, sets: &[&str]) -> Vec<String> {
    arguments_of(recipe, "quick", sets)
}

fn arguments_of(recipe: &str, size: &str, sets: &[&str]) -> Vec<String> {
    let short = [
        "experiment.repeats=1",
        // Which storage is loaded first, and which copied, follows from the order.
        "experiment.seed=1",
        "load.duration=1s",
        "load.rate=200",
        "load.warm_up=100ms",
        "telemetry.fsync=20ms",
        "workload.scale=1",
    ];
    with_sets(&["run", recipe, "--size", size], short.iter().chain(sets).copied())
}

fn on_disk(world: &World) -> String {
    format!("storage.disk.directory={}", world.disk().display())
}

fn on_loop(world: &World, storage: &str) -> [String; 2] {
    let backing = format!("storage.{storage}.backing.loop");
    [format!("{backing}.directory={}", world.disk().display()), format!("{backing}.size=1000MiB")]
}

fn close(a: f64, b: f64, what: &str) {
    assert!((a - b).abs() <= 1e-6 * b.abs().max(1e-6), "{what}: {a} is not {b}");
}

/// Whether the treatment takes part in the comparison with the best.
fn is_ranked(treatment: &Value) -> bool {
    treatment["not_ranked"].is_null()
}

/// The run's JSON, after its treatments' figures were made again from its trials.
fn checked(world: &World, ended: &Ended) -> Value {
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    let view = world.show("latest");
    assert_eq!(view["run"]["state"], "completed");
    let trials = view["trials"].as_array().unwrap();
    let mut best = f64::NEG_INFINITY;
    let of = |t: &Value| -> Vec<f64> {
        let mine = trials.iter().filter(|trial| trial["treatment"] == t["index"]);
        mine.map(|trial| {
            trial["transactions"].as_f64().unwrap() / trial["measured_s"].as_f64().unwrap()
        })
        .collect()
    };
    let mean = |tps: &[f64]| tps.iter().sum::<f64>() / tps.len() as f64;
    for t in elements(&view["treatments"]).filter(|t| t["trials"] != 0) {
        let tps = of(t);
        assert_eq!(tps.len(), 1);
        close(t["tps"]["mean"].as_f64().unwrap(), mean(&tps), "tps");
        if is_ranked(t) {
            best = best.max(mean(&tps));
        }
        if let Some(per_flush) = t["commits_per_flush"].as_f64() {
            let flushes = t["wal_flushes_per_second"].as_f64().unwrap();
            close(per_flush, mean(&tps) / flushes, "commits per flush");
        }
    }
    let treatments = elements(&view["treatments"]);
    for t in treatments.filter(|t| t["trials"] != 0 && is_ranked(t)) {
        close(t["ratio_to_best"]["value"].as_f64().unwrap(), mean(&of(t)) / best, "ratio to best");
    }
    for trial in trials {
        // Every acknowledged transaction left what its workload says it leaves.
        let count = &trial["server_count"];
        assert_eq!(count["rows"], count["rows_expected"], "{trial}");
        let seconds: f64 = elements(&trial["series"])
            .map(|s| s["tps"].as_f64().unwrap_or(0.0) * s["length_s"].as_f64().unwrap())
            .sum();
        close(seconds, trial["transactions"].as_f64().unwrap(), "transactions by second");
    }
    world.assert_nothing_left();
    view
}

fn treatment<'a>(view: &'a Value, factor: &str, level: &str) -> &'a Value {
    let all = view["treatments"].as_array().unwrap();
    all.iter()
        .find(|t| t["factors"][factor] == level)
        .unwrap_or_else(|| panic!("no {factor}={level}"))
}

/// The last size of a table in a trial, in bytes: as the store holds it, which the report must
/// show.
fn last_size(world: &World, view: &Value, ordinal: usize, table: &str) -> f64 {
    let table = format!("public.{table}");
    let store = Store::open_existing(world.path("data/pgdyno/store.sqlite3")).unwrap();
    let trials = store.trials(view["run"]["id"].as_str().unwrap()).unwrap();
    let trial = trials.into_iter().find(|t| t.ordinal as usize == ordinal).unwrap();
    let sizes = trial.telemetry.iter().find(|t| t.probe == "sizes").unwrap();
    let column = sizes
        .columns
        .iter()
        .position(|c| c.name == table)
        .unwrap_or_else(|| panic!("no {table}: {sizes:?}"));
    let stored = sizes.samples.iter().rev().find_map(|sample| sample.values[column]).unwrap();
    let shown = view["trials"][ordinal]["sizes"].as_array().unwrap();
    let shown = shown.iter().find(|size| size["name"] == table.as_str()).unwrap();
    close(shown["after_bytes"].as_f64().unwrap(), stored, &table);
    stored
}

#[test]
fn group_commit_counts_its_commits_and_their_flushes() {
    let world = World::new();
    let disk = on_disk(&world);
    let ended = run(&world, "group-commit", &[&disk, "factors.clients=[4]"]);
    let view = checked(&world, &ended);
    assert_eq!(view["treatments"].as_array().unwrap().len(), 9);
    let function = treatment(&view, "workload", "group-commit-function");
    assert!(function["tps"]["mean"].as_f64().unwrap() > 0.0);
    for t in view["treatments"].as_array().unwrap() {
        assert_eq!(t["commits_per_flush"].is_null(), t["factors"]["commit"] == "async", "{t}");
    }
    let group = treatment(&view, "commit", "group");
    let settings =
        &view["plan"]["treatments"][group["index"].as_u64().unwrap() as usize]["settings"];
    assert_eq!(
        (&settings["commit_delay"], &settings["commit_siblings"]),
        (&"10".into(), &"16".into())
    );
}

#[test]
#[ignore = "long: a whole recipe"]
fn big_tables_stages_follow_each_other_on_one_table() {
    let world = World::new();
    let disk = on_disk(&world);
    let sets = [&disk, "factors.clients=[1, 2]", "probe.size=48MiB", "probe.duration=20ms"];
    // Without fio, whose start takes longer than its work here: pgdyno then offers the disk a load
    // of its own.
    let mut command = world.command(&arguments("big-table", &sets));
    let ended = ended(command.env("PATH", "/usr/sbin").output().unwrap());
    let view = checked(&world, &ended);
    let trials = view["trials"].as_array().unwrap();
    // Every stage with all its numbers of clients, then the next.
    let done: Vec<(&str, u64)> = trials
        .iter()
        .map(|t| {
            (t["factors"]["stage"].as_str().unwrap(), t["factors"]["clients"].as_u64().unwrap())
        })
        .collect();
    assert_eq!(
        done,
        STAGES.iter().flat_map(|stage| [(*stage, 1), (*stage, 2)]).collect::<Vec<_>>()
    );
    // One cluster under all of them: what is loaded once, updated, and not cleaned, has grown.
    let table = |n: usize| last_size(&world, &view, n, "numbers");
    assert!(table(0) > 30e6, "a million rows: {}", table(0));
    assert!(table(4) >= table(3) && table(3) > table(0), "{} {} {}", table(0), table(3), table(4));
    // The last of the stages 0, 6, 50 and 100%, and INSERT, which has keys of its own.
    let of_loaded = [3, 7, 9, 11].map(|n| table(n) / table(0));
    assert!(of_loaded.is_sorted() && of_loaded[1] > 1.05 && of_loaded[2] > 1.4, "{of_loaded:?}");
    assert!((1.8..2.3).contains(&of_loaded[3]), "every row twice: {of_loaded:?}");
    assert!(table(17) >= table(15), "INSERT: {} {}", table(15), table(17));
    let probes = view["probes"].as_array().unwrap();
    // The filesystem under the tests may not know FITRIM; the third is then left out, with a
    // notice.
    assert!(probes.len() == 3 || ended.err.contains("not probed after fstrim"), "{probes:?}");
    for (n, probe) in probes.iter().enumerate() {
        assert_eq!((probe["after_trim"] == true, probe["attempts_before"] == 0), (n == 2, n == 0));
    }
    assert!(probes.iter().all(|p| p["randread_iops"].as_f64().unwrap() > 0.0));
}

/// The report of 2013 has two runs of pgbench, the recipe two treatments.
fn beside_the_report(world: &World, ended: &Ended) {
    let command = ended
        .out
        .lines()
        .find_map(|l| l.strip_prefix("beside the published report: pgdyno "))
        .unwrap();
    let words: Vec<&str> = command.split(' ').chain(["--json"]).collect();
    let both = world.run(&words).exits(0).json();
    let [back, through] = both["theirs"].as_array().unwrap().as_slice() else { panic!("{both}") };
    close(back["ratio_to_best"].as_f64().unwrap(), 13_467.789_458 / 14_062.024_086, "write back");
    assert_eq!(
        (&through["ratio_to_best"], &through["tps_ci95"]),
        (&Value::from(1.0), &Value::Null)
    );
    assert_eq!(both["ours"].as_array().unwrap().len(), 2);
    assert!(both["ours"][0]["tps"].as_f64().unwrap() > 0.0);
    world
        .run(&[words[0], words[1], words[2], "--fail-if", "tps < -3%"])
        .exits(1)
        .says("beside imported figures");
}

#[test]
#[ignore = "long: a whole recipe"]
fn ssd_acceptance_probes_both_block_sizes_counts_logins_and_logouts_and_crashes_the_server() {
    let world = World::new();
    let disk = on_disk(&world);
    let sets = [
        &disk,
        "load.clients=4",
        "probe.duration=10ms",
        "probe.after=[]",
        "crash.rounds=1",
        "crash.load=500ms",
    ];
    let ended = run(&world, "ssd-acceptance", &sets);
    let view = checked(&world, &ended);
    beside_the_report(&world, &ended);
    let probes = world.run(&["list", "--probes", "--json"]).json();
    let mut blocks: Vec<u64> = elements(&probes)
        .map(|p| world.show(p["id"].as_str().unwrap())["result"]["block_bytes"].as_u64().unwrap())
        .collect();
    blocks.sort_unstable();
    assert_eq!(blocks, [8192, 16384]);
    for (index, table) in [(0, "user_login_rec"), (1, "user_logout_rec")] {
        let trial = &view["trials"][index];
        let rows = trial["server_count"]["rows"].as_f64().unwrap();
        // 24 bytes of header, 4 + 8 of columns with 4 between, none of the address, which is null
        // over a socket, 4 of line pointer: 44. The last look may have been before the last rows;
        // where backends wait for each other, the server adds up to 512 pages in advance.
        let bytes = last_size(&world, &view, index, table);
        let (least, most) = (rows * 44.0 / 2.0, rows * 44.5 + 512.0 * 8192.0);
        assert!((least..most).contains(&bytes), "{bytes} bytes for {rows} rows");
        assert_eq!(trial["statements"].as_array().unwrap().len(), 1);
    }
    // Both workloads stand on the same server and storage, which is crashed once.
    let [crash] = view["crashes"].as_array().unwrap().as_slice() else { panic!("one session") };
    let faults = crash["faults"].as_array().unwrap();
    assert_eq!(
        faults.iter().map(|f| f["fault"].as_str().unwrap()).collect::<Vec<_>>(),
        ["process", "immediate"]
    );
    for fault in faults {
        assert!(fault["acknowledged"].as_u64().unwrap() > 0, "{fault}");
        assert_eq!(
            (fault["verdict"].as_str().unwrap(), fault["lost"].as_u64().unwrap()),
            ("pass", 0),
            "{fault}"
        );
    }
}

#[test]
#[ignore = "long: a whole recipe"]
fn the_reports_own_script_runs_word_for_word_and_each_row_holds_an_address() {
    let world = World::new();
    let disk = on_disk(&world);
    // The workload of the recipe, but its rows count only where they hold an address.
    let built_in = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads/user-login-setrandom");
    let text = |file: &str| std::fs::read_to_string(format!("{built_in}/{file}")).unwrap();
    let query = "FROM user_login_rec\"";
    let toml = text("workload.toml");
    assert!(toml.contains(query) && text("login.sql").contains("\\setrandom userid 1 20000000\n"));
    let counting = toml.replace(query, "FROM user_login_rec WHERE ip = '127.0.0.1'\"");
    let folder = world.file("logins/workload.toml", &counting);
    world.file("logins/login.sql", &text("login.sql"));
    let workload = format!("factors.workload=[\"{}\"]", folder.parent().unwrap().display());
    let sets = [
        disk.as_str(),
        &workload,
        "load.clients=2",
        "load.threads=2",
        "probe.before=[]",
        "probe.after=[]",
        "postgres.settings.shared_buffers=128MB",
        "postgres.settings.max_wal_size=1GB",
        "crash.rounds=1",
        "crash.load=500ms",
    ];
    let args = arguments_of("ssd-acceptance", "verbatim", &sets);
    let view = checked(&world, &world.run(&args));
    let [trial] = view["trials"].as_array().unwrap().as_slice() else { panic!("one treatment") };
    let [statement] = trial["statements"].as_array().unwrap().as_slice() else {
        panic!("one statement")
    };
    // Up to 9.5 the end of the line ends a command.
    assert_eq!(statement["text"], "SELECT f_user_login(:userid)");
    assert!(trial["server_count"]["rows"].as_u64().unwrap() > 0, "{trial}");
    world
        .run(&["run", "ssd-acceptance", "--size", "verbatim", "--dry-run"])
        .prints("another host")
        .prints("--dsn");
}

#[test]
#[ignore = "long: a whole recipe"]
fn filesystems_that_this_machine_lacks_are_told_and_cost_nothing() {
    needs!(is_root);
    let world = World::new();
    let known = world.run(&["filesystems"]).out;
    let lacking = ["reiserfs", "jfs", "f2fs"].into_iter().find(|name| {
        known.lines().any(|line| line.starts_with(name) && !line.contains("can be made here"))
    });
    let Some(lacking) = lacking else {
        skip(test_name!(), "it lacks none of them");
        return;
    };
    let factors = format!("factors.storage=[\"ext4\", \"xfs-tuned\", \"{lacking}\"]");
    let places: Vec<String> =
        ["ext4", "xfs-tuned", lacking].iter().flat_map(|name| on_loop(&world, name)).collect();
    let mut sets: Vec<&str> = places.iter().map(String::as_str).collect();
    sets.push(&factors);
    // By TCP the load gives a password, which a copy must not share with its original.
    sets.push("postgres.connect=tcp");
    let ended = run(&world, "filesystems", &sets);
    let view = checked(&world, &ended);
    assert_eq!(view["trials"].as_array().unwrap().len(), 2);
    let missing = treatment(&view, "storage", lacking);
    assert!(missing["unavailable"].as_str().unwrap().contains(lacking), "{missing}");
    ended.prints("not available here").says("its trials are left out");
    // Loaded once, so that both start from the same bytes.
    let copied = "tpcb-like at scale 1 was copied onto xfs-tuned: ";
    assert!(
        ended.err.contains(copied) && ended.err.matches("was copied onto").count() == 1,
        "{}",
        ended.err
    );
    let tuned = &elements(&view["sessions"][0]["storage"])
        .find(|s| s["name"] == "xfs-tuned")
        .unwrap()["mount_options"];
    assert!(tuned.as_str().unwrap().contains("logbsize=32k"), "{tuned}");
}

#[test]
#[ignore = "long: a whole recipe"]
fn filesystem_options_show_mount_and_fsck_beside_the_tps() {
    needs!(is_root);
    let world = World::new();
    let storages = ["ext3-nobarrier", "ext4-nobarrier", "reiserfs-notail"];
    let levels = storages.map(|name| format!("{name}={{storage=\"{name}\"}}"));
    let options = format!("factors.options={{{}}}", levels.join(","));
    let places: Vec<String> = storages.iter().flat_map(|name| on_loop(&world, name)).collect();
    let mut sets: Vec<&str> = places.iter().map(String::as_str).collect();
    sets.extend([options.as_str(), "crash.rounds=2"]);
    let ended = run(&world, "filesystem-options", &sets);
    let view = checked(&world, &ended);
    for level in &storages[..2] {
        let crash = &treatment(&view, "options", level)["crash"];
        assert!(crash["verdict"].as_str().unwrap().starts_with("as planted"), "{crash}");
        let after = &crash["filesystems"];
        assert!(after["mount_ms"].as_f64().unwrap() > 0.0, "{after}");
        assert!(after["fsck_ms"].as_f64().unwrap() > 0.0, "{after}");
    }
    ended.prints("  mount  fsck");
    let notail = &treatment(&view, "options", "reiserfs-notail")["unavailable"];
    if let Some(why) = notail.as_str() {
        assert!(why.contains("it runs on Linux 6.12 or earlier"), "{why}");
        ended.prints("Not available here");
    }
}

#[test]
#[ignore = "long: a whole recipe"]
fn zfs_and_xfs_have_their_wal_beside_them_and_the_gap_is_attributed() {
    needs!(is_root);
    let daemon = Daemon::new();
    let world = World::new();
    let places: Vec<String> =
        ["xfs", "zfs", "log"].iter().flat_map(|name| on_loop(&world, name)).collect();
    let mut sets: Vec<&str> = places.iter().map(String::as_str).collect();
    sets.push("postgres.settings.max_wal_size=256MB");
    let view = checked(&world, &run(&world, "zfs-xfs", &sets));
    drop(daemon);
    // The copy's WAL lies beside it, as the original's does.
    for trial in view["trials"].as_array().unwrap() {
        assert_eq!(trial["state"], "completed");
    }
    let zfs = treatment(&view, "storage", "zfs");
    if !zfs["unavailable"].is_null() {
        skip(test_name!(), "no ZFS here");
        return;
    }
    // One trial each tells nothing apart, so that the report explains nothing: whoever asks is told
    // what there is.
    assert_eq!(view["why"].as_array().unwrap().len(), 0);
    let compared = world
        .run(&["compare", "latest:storage=xfs", "latest:storage=zfs", "--json"])
        .exits(0)
        .json();
    let why = &compared["pairs"][0]["why"];
    let number = |value: &Value| value.as_f64().unwrap();
    let latency = &why["latency"];
    let parts = latency["parts"].as_array().unwrap();
    assert_eq!(parts.iter().filter(|p| p["part"].get("statement").is_some()).count(), 7);
    let (whole, mut sum) = (number(&latency["gap_us"]["value"]), 0.0);
    for part in parts {
        let gap = number(&part["gap_us"]["value"]);
        close(gap, number(&part["b_us"]) - number(&part["a_us"]), "a statement's gap");
        match part["share"].as_f64() {
            Some(share) => close(share, gap / whole, "share of the gap"),
            // On a busy machine a part may be several times the whole: no share is shown then.
            None => assert!(!(-1.0..=2.0).contains(&(gap / whole)), "{part}"),
        }
        sum += gap;
    }
    close(sum, whole, "the gaps' sum");
}

/// Runs `args` as somebody who is not root, so that all that pgdyno keeps lies in the world.
fn without_root<S: AsRef<std::ffi::OsStr>>(world: &World, args: &[S]) -> Ended {
    const NOBODY: u32 = 65_534;
    let made = world.command(args);
    if !rustix::process::geteuid().is_root() {
        return world.run(args);
    }
    for directory in [world.disk(), world.path("data"), world.path("state")] {
        std::fs::create_dir_all(&directory).unwrap();
        chown(&directory, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    // The binary may lie where only root can enter.
    let program = world.path("pgdyno");
    if !program.exists() {
        std::fs::copy(env!("CARGO_BIN_EXE_pgdyno"), &program).unwrap();
    }
    let mut command = Command::new(program);
    command
        .args(made.get_args())
        .current_dir(world.disk().parent().unwrap())
        .uid(NOBODY)
        .gid(NOBODY);
    command.envs(made.get_envs().filter_map(|(name, value)| Some((name, value?))));
    ended(command.output().unwrap())
}

#[test]
fn a_loaded_cluster_is_kept_for_later_runs_where_that_is_asked() {
    let world = World::new();
    let run = || {
        let sets = [
            "workload.keep_template=true",
            "workload.scale=1",
            "factors.clients=[1]",
            "factors.synchronous_commit=[\"off\"]",
            "experiment.repeats=1",
            "load.duration=1s",
            "load.rate=200",
            "telemetry.fsync=0s",
        ];
        without_root(&world, &with_sets(&["run", "quickstart"], sets)).exits(0).err
    };
    let kept = "a copy of tpcb-like at scale 1 is kept for later runs";
    let copied = "tpcb-like at scale 1 was copied onto disk";
    let first = run();
    assert!(first.contains(kept) && !first.contains(copied), "{first}");
    let second = run();
    assert!(!second.contains(kept) && second.contains(copied), "{second}");

    let shown = without_root(&world, &["clean", "--templates", "--dry-run"]).out;
    assert_eq!(
        shown.matches("kept: a loaded cluster, tpcb-like at scale 1, seed ").count(),
        1,
        "{shown}"
    );
    assert!(without_root(&world, &["clean", "--dry-run"]).out.contains("nothing is left behind"));
    let removed = without_root(&world, &["clean", "--templates"]).out;
    assert_eq!(removed.matches("removed: ").count(), 1, "{removed}");
    assert!(
        without_root(&world, &["clean", "--templates"]).out.contains("no loaded cluster is kept")
    );
    assert!(!world.path("data/pgdyno/clusters/templates").exists());
    world.assert_nothing_left();
}

#[test]
fn sizes_are_chosen_by_name_and_the_plan_says_what_they_need() {
    let world = World::new();
    let listed = world.run(&["recipes"]).out;
    assert_contains(
        &listed,
        &["ssd-acceptance", "filesystems", "group-commit", "big-table", "zfs-xfs"],
    );
    assert_contains(&listed, &["--size report", "needs root, for making filesystems"]);
    let planned = world.run(&["run", "group-commit", "--size", "report", "--dry-run"]).out;
    assert!(planned.contains("clients=512") && planned.contains("Privileges: none"), "{planned}");
    for clients in [4, 512] {
        let threads = format!("{clients} clients on {clients} threads");
        assert!(planned.contains(&threads), "{planned}");
    }
    assert!(planned.contains("workload=group-commit-function"), "{planned}");
    let planned = world.run(&["run", "group-commit", "--size", "sustained", "--dry-run"]).out;
    assert!(planned.contains("1h measured"), "{planned}");
    let planned = world.run(&["run", "big-table", "--size", "report", "--dry-run"]).out;
    assert_contains(
        &planned,
        &["980 clients", "stage=select-after-every-row", "stage=delete", "fstrim "],
    );
    let planned = world.run(&["run", "filesystem-options", "--size", "report", "--dry-run"]).out;
    assert_contains(
        &planned,
        &[
            "options=ext3-writeback-commit600",
            "data=writeback,commit=600",
            "device.scheduler = mq-deadline",
            "device.nr_requests = 16",
            "scale 32, 32 clients",
            "reiserfs-notail",
        ],
    );
    let planned = world.run(&["run", "commit-loss", "--dry-run"]).out;
    assert!(planned.contains("commit=async-10ms") && planned.contains("power"), "{planned}");
    let planned =
        world.run_line("run group-commit --size report --set factors.clients=[3] --dry-run").out;
    assert!(planned.contains("clients=3") && !planned.contains("clients=512"), "{planned}");
    world
        .run(&["run", "group-commit", "--size", "huge", "--dry-run"])
        .exits(1)
        .says("recipe group-commit has no size `huge`")
        .says("its sizes are");
}
