//! From an experiment file to a report, with a real PostgreSQL.

use crate::support::{FORCE, World, at_full_speed, elements, is_filled, quick};
use pgdyno_model::PlannedTrial;
use pgdyno_model::record::SessionEnd;
use pgdyno_store::Store;
use pgdyno_test_support::records::Random;
use pgdyno_test_support::{assert_contains, synthetic};
use serde_json::Value;

fn sum(series: &Value, of: impl Fn(&Value) -> f64) -> f64 {
    elements(series).map(of).sum()
}

#[test]
fn quickstart_ends_with_numbers_that_agree_with_each_other_and_with_postgresql() {
    let world = World::new();
    // Autovacuum's own transactions would count among the loaded database's.
    let ended =
        world.run(&quick(&world, "quickstart", &["postgres.settings.autovacuum=off"])).exits(0);
    ended.prints("synchronous_commit").prints("tps");
    let report = ended.out.lines().find_map(|l| l.strip_prefix("report: ")).unwrap();
    assert!(is_filled(report.as_ref()));
    world.assert_nothing_left();

    let shown = world.show("latest");
    assert_eq!(shown["run"]["recipe"], "quickstart");
    assert_eq!(shown["run"]["state"], "completed");
    let treatments = shown["treatments"].as_array().unwrap();
    let trials = shown["trials"].as_array().unwrap();
    assert_eq!((treatments.len(), trials.len()), (4, 12));
    for (index, treatment) in treatments.iter().enumerate() {
        assert_eq!(treatment["trials"], 3, "{treatment}");
        assert!(
            treatment["factors"]["clients"].is_u64()
                && treatment["factors"]["synchronous_commit"].is_string()
        );
        let mean = treatment["tps"]["mean"].as_f64().unwrap();
        if let Some(ci) = treatment["tps"]["ci95"].as_array() {
            assert!(ci[0].as_f64().unwrap() <= mean && mean <= ci[1].as_f64().unwrap());
        } else {
            // A load at a rate may come to equal counts, which tell no spread.
            let mut its = trials.iter().filter(|trial| trial["treatment"] == index);
            let first = &its.next().unwrap()["tps"];
            assert!(its.all(|trial| trial["tps"] == *first), "{treatment}");
        }
        let latency = |p: &str| treatment["latency_us"][p].as_f64().unwrap();
        assert!(latency("p50") <= latency("p95") && latency("p95") <= latency("p99"));
        assert!(latency("p99") <= latency("max"));
        assert!(treatment["ratio_to_best"]["value"].as_f64().unwrap() <= 1.0 + 1e-9);
    }
    for trial in trials {
        assert_counts_agree(trial);
    }
    assert!(shown["fsync"].as_array().unwrap().len() == 1);
    assert_gates_decide(&world);
}

/// Asserts that a trial's count, the sum of its series and PostgreSQL's tables agree.
fn assert_counts_agree(trial: &Value) {
    let transactions = trial["transactions"].as_f64().unwrap();
    assert!(transactions > 0.0 && trial["failed"] == 0);
    // The series adds up to the count exactly: both are counts of the same transactions.
    let series = &trial["series"];
    assert!(
        (sum(series, |s| s["transactions"].as_f64().unwrap()) - transactions).abs() < 0.5,
        "{trial}"
    );
    for second in series.as_array().unwrap() {
        assert!(
            second["t_s"].is_number()
                && second["tps"].is_number()
                && !second["latency_us_p99"].is_null()
        );
    }
    let tps = trial["tps"].as_f64().unwrap();
    assert!((tps * trial["measured_s"].as_f64().unwrap() - transactions).abs() < 1.0);
    // PostgreSQL's rows are exactly what it acknowledged.
    let count = &trial["server_count"];
    assert_eq!(count["rows"], count["rows_expected"], "{trial}");
    // Its commits are the load's, and two or three of each connection of pgdyno's own.
    let extra = count["xact_commit"].as_i64().unwrap() - count["rows_expected"].as_i64().unwrap();
    assert!((0..=30).contains(&extra), "{count}");
}

/// Asserts that gates between the treatments of the latest run are kept, exceeded or refused.
fn assert_gates_decide(world: &World) {
    // Commits that wait beside commits that do not, of the same blocks; a hundredth of the speed is
    // let through.
    let compare = |more: &[&str]| {
        let sides = ["compare", FORCE, "latest:clients=1,synchronous_commit=on", "latest:3"];
        world.run(&[&sides, more].concat())
    };
    let kept = compare(&["--fail-if", "tps < -99%", "--json"]).exits(0);
    let json = kept.json();
    assert_eq!(
        (&json["gates"][0]["state"], &json["by"][0]),
        (&"kept".into(), &"synchronous_commit".into())
    );
    let method = json["pairs"][0]["ratio"]["method"].as_str();
    assert!(matches!(method, Some("pooled" | "paired")), "{method:?}");
    let exceeded = compare(&["--fail-if", "tps > -99%", "--markdown"]).exits(3);
    exceeded.prints("a gate is exceeded");
    let misspelt = compare(&["--fail-if", "tps > +1%, tsp < -3%"]);
    assert_eq!((misspelt.code, misspelt.out.as_str()), (Some(1), ""));
    misspelt.says("\n  |            ^^^\n");
    let itself = world.run(&["compare", "latest", "latest"]).exits(1);
    itself.says("with itself");
}

#[test]
fn a_gate_passes_neither_without_proof_nor_where_nothing_runs() {
    let world = World::new();
    let mut store = Store::open(world.path("store")).unwrap();
    let plan = synthetic::plan(&["a", "b"], 1, &mut Random(7));
    let tps = |planned: &PlannedTrial| if planned.treatment == 0 { 1000.0 } else { 571.0 };
    synthetic::add(&mut store, ("once", 0), &plan, tps);
    // All trials of the second failed.
    let session = synthetic::begin(&mut store, "crashed", "synthetic", 1, &plan);
    let first = plan.trials.iter().find(|planned| planned.treatment == 0).unwrap();
    let trial = synthetic::trial(&plan, first, 1000.0, 2000);
    store.add_trial("crashed", session, &trial).unwrap();
    store.end_session(session, SessionEnd::Completed).unwrap();
    drop(store);
    let (fail_if, fail_unless) = (["--fail-if", "tps < -3%"], ["--fail-unless", "tps > −3%"]);
    for (run, gate, undecided, code) in [
        ("once", fail_unless, "pass", 3),
        ("once", fail_if, "pass", 0),
        ("once", fail_if, "fail", 3),
        ("crashed", fail_unless, "pass", 3),
        ("crashed", fail_if, "pass", 5),
        ("crashed", fail_if, "fail", 3),
    ] {
        let sides = ["compare", &format!("{run}:1"), &format!("{run}:2"), "--store", "store"];
        world
            .run(&[&sides[..], &gate, &["--undecided", undecided]].concat())
            .with_case(format!("{run} {gate:?} {undecided}"))
            .exits(code);
    }
}

#[test]
fn a_users_own_experiment_with_bundles_scripts_and_counted_transactions_runs() {
    let world = World::new();
    world.file(
        "mine/pick.sql",
        "\\set aid random(1, 100000 * :scale)\n\
         SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n",
    );
    let file = world.file(
        "mine/commit.toml",
        "[experiment]\nquestion = \"Does it run?\"\nrepeats = 1\norder = \"randomized\"\n\
         [factors]\nprotocol = [\"simple\", \"extended\", \"prepared\"]\n\
         commit = { sync = {}, group = { commit_delay = 10, commit_siblings = 2 } }\n\
         [[exclude]]\nprotocol = \"simple\"\ncommit = \"group\"\n\
         [workload]\nscale = 1\nscripts = [{ file = \"pick.sql\", weight = 2 }]\n\
         [load]\nclients = 2\nthreads = 2\nwarm_up = \"100ms\"\ntransactions = 50\n\
         [storage.disk]\n",
    );
    let disk = format!("storage.disk.directory={}", world.disk().display());
    let args = ["run", file.to_str().unwrap(), "--set", &disk, "--set", "telemetry.fsync=20ms"];
    world.run(&args).exits(0);
    let shown = world.show("latest");
    assert_eq!(shown["treatments"].as_array().unwrap().len(), 5);
    for trial in shown["trials"].as_array().unwrap() {
        assert_eq!(trial["transactions"], 100, "{trial}");
    }
    world.assert_nothing_left();
}

#[test]
fn a_report_is_written_later_from_the_store_alone() {
    let world = World::new();
    let sets =
        ["factors.clients=[2]", "experiment.repeats=1", "factors.synchronous_commit=[\"off\"]"];
    world.run(&quick(&world, "quickstart", &sets)).exits(0);
    let report = world.path("later.html");
    world.run(&["report", "latest", "-o", report.to_str().unwrap()]).exits(0);
    let html = std::fs::read_to_string(&report).unwrap();
    assert!(html.contains("synchronous_commit") && html.contains("</html>"));
    world.run(&["list"]).prints("quickstart-").prints("completed");
    let shown = world.run(&["show", "latest"]);
    assert!(shown.out.contains("one"), "a single repeat must be said: {}", shown.out);
}

#[test]
#[ignore = "long: every major version, fetched"]
fn every_supported_major_is_driven_with_more_clients_than_it_allows_by_default() {
    let world = World::new();
    let sets = [
        "factors={\"postgres.version\" = [15, 16, 17, 18]}",
        "experiment.repeats=1",
        "load.clients=120",
    ];
    world.run(&quick(&world, "quickstart", &sets)).exits(0);
    let shown = world.show("latest");
    let trials = shown["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 4);
    for trial in trials {
        assert_eq!(
            trial["server_count"]["rows"], trial["server_count"]["rows_expected"],
            "{trial}"
        );
    }
    let versions: Vec<&str> =
        elements(&shown["servers"]).map(|s| s["version"].as_str().unwrap()).collect();
    for major in ["15.", "16.", "17.", "18."] {
        assert!(
            versions.iter().any(|v| v.starts_with(&format!("PostgreSQL {major}"))),
            "{major}: {versions:?}"
        );
    }
    world.assert_nothing_left();
}

#[test]
fn a_run_that_ends_by_itself_ends_by_its_rule_and_has_nothing_left_to_do() {
    let world = World::new();
    let sets = [
        "factors.clients=[2]",
        "experiment.budget=1s",
        "experiment.repeats=2",
        "experiment.max_repeats=40",
    ];
    let ended = world.run(&quick(&world, "quickstart", &sets)).exits(0);
    ended.says("note: the run ends: ");
    let shown = world.show("latest");
    // The floor is run whatever the budget; then no block fits into it, if the first look left
    // anything open.
    assert_eq!(
        (&shown["stopping"]["blocks"], &shown["run"]["trials_planned"]),
        (&2.into(), &4.into())
    );
    let why = shown["stopping"]["ended"].as_str().unwrap();
    assert!(why == "budget" || why == "decided", "{why}");
    assert_eq!(shown["run"]["state"], "completed");
    world.run(&["run", "--resume", "latest"]).exits(1).says("nothing to go on with");
    world.assert_nothing_left();
}

#[test]
fn a_complete_run_is_given_more_repeats_and_pays_for_having_been_looked_at() {
    let world = World::new();
    let sets = ["factors.clients=[2]", "experiment.repeats=2", "experiment.order=randomized"];
    let args = at_full_speed(&world, "quickstart", &sets);
    // What earlier runs of this machine told of its noise, and of first trials, stays with the run.
    let mut store = Store::open(world.store()).unwrap();
    let earlier = synthetic::plan(&["a", "b", "c"], 5, &mut Random(7));
    let mut random = Random(8);
    for (id, number) in [("first", 0), ("second", 1), ("third", 2)] {
        synthetic::add_at(&mut store, pgdyno_lab::host(), (id, number), &earlier, |planned| {
            let first = if planned.ordinal == 0 { 0.9 } else { 1.0 };
            1000.0 * first * (0.02 * random.normal()).exp()
        });
    }
    drop(store);
    let finds = |more: &str| -> f64 {
        let more = ["--set", "experiment.repeats=3", "--dry-run", "--set", more];
        let args: Vec<&str> = args.iter().map(String::as_str).chain(more).collect();
        let told = world.run(&args).out.split_whitespace().collect::<Vec<_>>().join(" ");
        told.rsplit_once("a difference of ").unwrap().1.split_once('%').unwrap().0.parse().unwrap()
    };
    assert!(finds("experiment.host_noise=true") < finds("experiment.host_noise=false"));
    let ended = world.run(&args).exits(0);
    let before = world.show("latest");
    assert_eq!(before["plan"]["noise_prior"]["runs"], 3, "{}", before["plan"]["noise_prior"]);
    let first = "a trial that is not measured comes first, since first trials of 3 earlier runs \
        here had 0.";
    assert!(ended.err.contains(first) && !ended.err.contains("failed"), "{}", ended.err);
    assert_eq!(before["run"]["trials_completed"], 4);
    for (set, why) in [
        ("load.duration=1s", "only its number of repeats can change"),
        ("experiment.repeats=2", "as many already"),
    ] {
        world.run(&["run", "--resume", "latest", "--set", set]).exits(1).says(why);
    }
    world.run(&["run", "--resume", "latest", "--set", "experiment.repeats=3"]).exits(0);
    let after = world.show("latest");
    assert_eq!(after["run"]["id"], before["run"]["id"]);
    assert_eq!(
        (&after["run"]["state"], &after["run"]["trials_completed"]),
        (&"completed".into(), &6.into())
    );
    let of = |view: &Value| view["plan"]["trials"].as_array().unwrap().clone();
    assert!(of(&after).starts_with(&of(&before)), "the first trials stay as they were planned");
    assert_eq!(after["plan"]["extended_after"], serde_json::json!([2]));
    for told in ["noise_prior", "conditioning"] {
        assert_eq!(after["plan"][told], before["plan"][told]);
    }
    let notes = after["notes"].to_string();
    assert!(notes.contains("complete after 2 repeats and was then given 3"), "{notes}");
    let listed = world.run(&["list"]);
    assert!(listed.out.contains("6/6") || listed.out.contains("completed"), "{}", listed.out);
    world.assert_nothing_left();
}

#[test]
#[ignore = "long: a search phase by phase; unit tests of `lab` hold which rates it tries"]
fn the_highest_rate_that_keeps_an_objective_is_found_confirmed_and_stored_with_every_step() {
    let world = World::new();
    // What takes time and no processor bounds the rate.
    world.file("wait.sql", "SELECT pg_sleep(0.01);\n");
    let file = world.file(
        "capacity.toml",
        "[factors]\nsynchronous_commit = [\"off\"]\n\
         [workload]\nscripts = [{ file = \"wait.sql\" }]\n\
         [load]\nclients = 4\nfind = \"max_rate\"\nslo = \"p99 < 200ms, failed < 1%\"\n\
         [storage.disk]\n",
    );
    world
        .run(&at_full_speed(&world, file.to_str().unwrap(), &["experiment.repeats=1"]))
        .exits(0)
        .prints("max rate")
        .prints("keeps p99 < 200ms, failed < 1%");
    let shown = world.show("latest");
    for trial in shown["trials"].as_array().unwrap() {
        let search = &trial["search"];
        let steps = search["steps"].as_array().unwrap();
        let found = search["max_rate"].as_f64().unwrap();
        assert!(steps[0]["rate"].is_null() && steps.len() >= 4, "{search}");
        let kept = |step: &&Value| step["confirming"] == true && step["broken"].is_null();
        let last = steps.iter().rfind(kept).unwrap();
        assert_eq!(last["rate"].as_f64(), Some(found), "{search}");
        assert!(last["latency_us_p99"].as_f64().unwrap() < 200_000.0, "{last}");
        // The trial is the step that confirmed its answer, not one that was tried after it.
        assert_eq!(trial["latency_us"]["p99"], last["latency_us_p99"]);
        assert_eq!(trial["transactions"], last["transactions"]);
        assert_eq!(trial["state"], "completed");
        // What was confirmed was really offered: what was due is done, but for chance and for what
        // the objective lets wait when the window ends.
        let due = found * last["measured_s"].as_f64().unwrap();
        let done = last["transactions"].as_f64().unwrap();
        let chance = 6.0 * due.sqrt();
        assert!(done < due + chance && done > 0.7 * due - chance, "{done} of {due}");
        if let Some(broken) = search["least_broken"].as_f64() {
            assert!(broken > found, "{search}");
        }
    }
    assert!(shown["capacity"][0]["curve"][0]["rate"].is_f64());
    world.assert_nothing_left();
}

#[test]
fn a_level_that_the_server_does_not_start_with_costs_its_own_trials_and_no_other() {
    let world = World::new();
    let text = format!(
        "[experiment]\nrepeats = 1\norder = \"sequential\"\n[factors.v]\n\
         minimal = {{ wal_level = \"minimal\" }}\nhuge = {{ shared_buffers = \"4TB\" }}\n\
         library = {{ shared_preload_libraries = \"no_such_library\" }}\n\
         good = {{ work_mem = \"5MB\" }}\n\
         [load]\nrate = 100\nduration = \"1s\"\nwarm_up = \"100ms\"\n\
         [workload]\nname = \"{}\"\nscale = 1\n\
         [telemetry]\nfsync = \"0s\"\n[storage.disk]\ndirectory = \"{}\"\n",
        world.small_workload(),
        world.disk().display()
    );
    let file = world.file("levels.toml", &text);
    let ran = world.run(&["run", file.to_str().unwrap()]).exits(2);
    assert_contains(
        &ran.err,
        &[
            "requires wal_level",
            "lower shared_buffers, or for huge_pages = on set vm.nr_hugepages=2",
            "no_such_library",
        ],
    );
    let completed = |world: &World| -> Vec<u64> {
        let shown = world.show("latest");
        let treatments = shown["treatments"].as_array().unwrap().clone();
        treatments.iter().map(|treatment| treatment["trials"].as_u64().unwrap()).collect()
    };
    assert_eq!(completed(&world), [0, 0, 0, 1]);
    // Those that failed are tried again, and what is complete stays so.
    world.run(&["run", "--resume", "latest"]).exits(2);
    assert_eq!(completed(&world), [0, 0, 0, 1]);
}
