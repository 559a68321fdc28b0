//! `pgdyno crash` on planted truths: dishonest storages fail, honest ones pass, and nothing is left
//! behind.

use pgdyno_test_support::needs;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use crate::support::{Ended, World, elements, is_root};
use serde_json::Value;

/// Runs `crash` on the world's disk, with loads that are short and yet meet a checkpoint.
fn crash(world: &World, options: &str) -> (Ended, Value) {
    crash_under(world, "400ms", options)
}

/// Runs [`crash`] with loads of duration `load`.
fn crash_under(world: &World, load: &str, options: &str) -> (Ended, Value) {
    let ended = world.crash(&format!("--load {load} {options}"));
    let shown = ended.json();
    (ended, shown)
}

fn fault<'a>(shown: &'a Value, name: &str) -> &'a Value {
    let all = shown["faults"].as_array().unwrap();
    all.iter().find(|f| f["fault"] == name).unwrap()
}

#[test]
#[ignore = "long: more crash rounds of one fault"]
fn without_fsync_a_process_crash_loses_nothing() {
    let world = World::new();
    let (_, shown) = crash(&world, "--fault process --rounds 1 --setting fsync=off --no-controls");
    let process = fault(&shown, "process");
    assert_eq!(
        (process["verdict"].as_str(), process["lost"].as_u64()),
        (Some("pass"), Some(0)),
        "{process}"
    );
}

#[test]
fn without_fsync_a_power_loss_takes_what_was_acknowledged() {
    needs!(is_root);
    let world = World::new();
    let (ended, shown) = crash(
        &world,
        "--fault power --filesystem ext4 --rounds 1 --setting fsync=off --no-controls",
    );
    assert_eq!(ended.code, Some(4), "{}{}", ended.out, ended.err);
    assert_eq!(shown["verdict"], "FAIL (lost)");
    let power = fault(&shown, "power");
    assert_eq!(power["verdict"], "FAIL (lost)", "{power}");
    let round = &power["each"][0];
    assert!(
        round["lost"].as_u64().unwrap() > 0 && !round["tokens"].as_array().unwrap().is_empty(),
        "{round}"
    );
    // What was found is kept: the filesystem, and the ledger that tells what is missing in it.
    let kept = PathBuf::from(round["kept"].as_str().unwrap());
    let names: Vec<String> = fs::read_dir(&kept)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(names.iter().any(|n| n == "image-0"), "{names:?}");
    assert!(names.iter().any(|n| n.starts_with("ledger-")), "{names:?}");
    assert!(shown["notes"].to_string().contains("--no-controls"), "{}", shown["notes"]);
    world.assert_gone();

    let id = shown["id"].as_str().unwrap();
    let again = world.run(&["show", id, "--json"]).json();
    assert_eq!(again, shown, "the store has it whole");
    world.run(&["show", id]).prints("FAIL (lost)").prints("lost (client, sequence)");
    assert!(world.run(&["list"]).out.contains(id));
    assert_kept_until_it_is_removed(&world);
}

/// Asserts that files of a failed session in `world` are listed, removed on request, and that the
/// record says so.
fn assert_kept_until_it_is_removed(world: &World) {
    let listed = || -> Value { world.run(&["list", "--crashes", "--json"]).json() };
    let all = listed();
    let [kept] = &all.as_array().unwrap()[..] else { panic!("one session: {all}") };
    assert!(kept["kept_bytes"].as_u64().unwrap() > 1_000_000, "{kept}");
    let (id, folder) = (kept["id"].as_str().unwrap(), kept["kept"].as_str().unwrap());
    let theirs = world.file("data/pgdyno/crashes/mine/image-0", "mine");
    symlink(world.disk(), format!("{folder}/power-2")).unwrap();
    assert!(world.run(&["clean"]).out.contains("`pgdyno clean --crashes` removes it"));
    world.run(&["clean", "--crashes", "--dry-run"]).prints(folder).prints("symbolic link");
    assert!(!world.run(&["show", id]).out.contains("not there any more"));
    world.run(&["clean", "--crashes"]).exits(1).prints("freed").prints("left: ");
    assert!(theirs.exists() && world.disk().exists());
    let page = world.run(&["show", id]).out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains("(not there any more)"), "{page}");
    std::fs::remove_file(format!("{folder}/power-2")).unwrap();
    std::fs::remove_dir_all(theirs.parent().unwrap()).unwrap();
    world.run(&["clean", "--crashes"]).exits(0);
    assert_eq!(listed()[0]["kept"], Value::Null);
}

/// Returns whether, after a checkpoint, a commit hung on the last flush of one of these rounds.
/// That is a matter of chance; without it, a round that loses nothing proves nothing.
fn puts_something_under_test(each: &[Value]) -> bool {
    let mut powers = each.iter().map(|round| &round["power"]);
    powers.any(|power| power["last_window"] != 0 && power["checkpoints"] != 0)
}

/// Cuts the power of an honest `filesystem`: every round passes, and every control is seen.
fn assert_honest(filesystem: &str, rounds: u64) {
    let world = World::new();
    let options = format!("--fault power --filesystem {filesystem} --rounds {rounds} --seed 7");
    let (ended, shown) = crash(&world, &options);
    assert!(matches!(ended.code, Some(0 | 5)), "{filesystem}: {}{}", ended.out, ended.err);
    let each = shown["faults"][0]["each"].as_array().unwrap();
    let tells = puts_something_under_test(each);
    let expected = if tells { ("pass", Some(0)) } else { ("unknown", Some(5)) };
    let came = (shown["verdict"].as_str().unwrap(), ended.code);
    assert_eq!(came, expected, "{filesystem}: {shown}");
    assert!(each.iter().all(|round| round["verdict"] == "pass"), "{shown}");
    // As many again where no checkpoint was among them, as on a slow machine.
    let played = shown["rounds"].as_u64().unwrap();
    assert!((rounds..=2 * rounds).contains(&played), "{}", shown["faults"]);
    assert_eq!(shown["lost"], 0);
    let seen = shown["controls"].as_array().unwrap();
    // WAL, tables, the commit log and the control file.
    assert_eq!(seen.len(), 4);
    assert!(seen.iter().all(|c| c["seen"] == true), "{seen:?}");
    // A few rounds are no proof, and that is said.
    let reason = shown["reason"].as_str().unwrap();
    assert_eq!(reason.contains("a probability of at most"), tells, "{reason}");
    let has_checkpoint = |round: &Value| round["power"]["checkpoints"].as_u64().unwrap() > 0;
    assert!(each.iter().any(has_checkpoint), "{}", shown["faults"]);
    for check in shown["faults"][0]["each"][0]["checks"].as_array().unwrap() {
        // This load has none.
        let is_of_conditions = check["name"] == "the workload's conditions hold";
        let expected = if is_of_conditions { "not-applicable" } else { "passed" };
        assert_eq!(check["outcome"], expected, "{check}");
    }
    world.assert_gone();
}

#[test]
fn an_honest_filesystem_passes_and_the_controls_are_seen() {
    needs!(is_root);
    assert_honest("ext4", 1);
}

#[test]
#[ignore = "long: a series of crash rounds"]
fn every_round_of_honest_filesystems_passes() {
    needs!(is_root);
    assert_honest("ext4", 3);
    assert_honest("xfs", 3);
}

#[test]
#[ignore = "long: rounds under asynchronous commit; unit tests judge its losses"]
fn asynchronous_commit_loses_what_it_says() {
    needs!(is_root);
    let world = World::new();
    // WAL is flushed when the delay is over and not before, so that there is something to lose
    // whenever the fault strikes.
    let options = "--fault power --filesystem ext4 --rounds 1 --no-controls --clients 2 \
        --setting synchronous_commit=off --setting wal_writer_delay=100ms \
        --setting wal_writer_flush_after=1GB";
    let (ended, shown) = crash(&world, options);
    // Nothing shows that a loss beyond the bound would have been seen.
    assert_eq!(ended.code, Some(5), "{}{}", ended.out, ended.err);
    let fault = &shown["faults"][0];
    let each = fault["each"].as_array().unwrap();
    assert!(each.iter().any(|round| round["verdict"] == "bounded-loss"), "{fault}");
    assert!(shown["lost"].as_u64().unwrap() > 0);
    let verdict = if puts_something_under_test(each) { "bounded-loss" } else { "unknown" };
    assert_eq!(fault["verdict"], verdict, "{}", shown["reason"]);
    // Several times what may be lost was acknowledged before.
    assert!(each[0]["struck_after_ms"].as_f64().unwrap() >= 1_200.0);
    world.assert_gone();
}

#[test]
fn a_backend_that_is_killed_takes_nothing_with_it_and_the_seed_says_how_it_is() {
    let world = World::new();
    let options = "--fault backend --rounds 1 --seed 3";
    let (ended, shown) = crash_under(&world, "300ms", options);
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    assert_eq!(shown["verdict"], "pass", "{}", shown["reason"]);
    world.assert_gone();
    // Whatever the version: a session is repeated by its seed.
    let round = &fault(&shown, "backend")["each"][0];
    assert_eq!(
        (&round["seed"], &round["aim"]),
        (&15_111_527_385_869_823_775_u64.into(), &"load".into())
    );
}

#[test]
#[ignore = "long: two sessions of crash rounds"]
fn a_seed_repeats_the_rounds_with_and_without_controls_and_other_faults() {
    let world = World::new();
    let drawn = |options: &str| {
        let (_, shown) = crash(&world, options);
        let round = fault(&shown, "backend")["each"][0].clone();
        ((round["seed"].clone(), round["aim"].clone()), shown["verdict"].clone())
    };
    let (alone, _) = drawn("--fault backend --rounds 1 --seed 3 --no-controls");
    assert_eq!(drawn("--fault process,backend --rounds 1 --seed 3"), (alone, "pass".into()));
}

#[test]
fn a_server_that_does_not_come_back_in_its_time_fails_and_is_gone() {
    let world = World::new();
    let options = "--fault process --rounds 1 --no-controls --recovery-limit 1ms";
    let (ended, shown) = crash_under(&world, "300ms", options);
    assert_eq!(ended.code, Some(4), "{}{}", ended.out, ended.err);
    assert_eq!(shown["verdict"], "FAIL (will not start)");
    let round = &shown["faults"][0]["each"][0];
    assert!(round["log"].as_str().unwrap().contains("database system"), "{round}");
    world.assert_gone();
}

#[test]
fn after_a_sigkill_in_the_middle_of_a_round_the_next_start_clears_all() {
    needs!(is_root);
    let world = World::new();
    let disk = world.disk();
    let mut args =
        vec!["crash", "--fault", "power", "--filesystem", "ext4", "--no-controls", "--load", "1m"];
    args.extend(["--storage", disk.to_str().unwrap()]);
    let mut child = world.spawn(&args);
    let has_ledger = || {
        let state = fs::read_dir(world.path("state/pgdyno")).into_iter().flatten().flatten();
        let directory = state.map(|e| e.path()).find(|p| p.to_string_lossy().contains("ledgers"));
        directory.is_some_and(|d| {
            fs::read_dir(d).into_iter().flatten().flatten().any(|e| e.file_name() != ".pgdyno-made")
        })
    };
    world.until("a load with its ledger", has_ledger);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        !world.traces().is_empty(),
        "a killed pgdyno leaves a filesystem: that is what the next start is for"
    );
    world.run(&["clean"]).exits(0);
    world.assert_gone();
}

#[test]
fn what_cannot_be_crashed_is_told_before_anything_is_made() {
    let world = World::new();
    let mut told = String::new();
    for options in [
        "--fault powr",
        "--fault process,process",
        "--fault power",
        "--fault plug",
        "--fault lying-disk",
        "--fault power --filesystem ext4 --set storage.disk.backing={ram=\"1GiB\"}",
        "--fault process --setting fsync",
        "--fault process --rounds 0",
    ] {
        let args: Vec<&str> = std::iter::once("crash").chain(options.split(' ')).collect();
        let ended = world.run(&args).with_case(options).exits(1);
        told.push_str(&format!("$ pgdyno crash {options}\n{}\n", ended.err));
    }
    insta::assert_snapshot!(told);
    assert_eq!(world.left_behind(), Vec::<PathBuf>::new());
}

#[test]
#[ignore = "long: a run with two sessions of crash rounds"]
fn an_experiment_shows_each_treatments_speed_beside_its_verdict() {
    needs!(is_root);
    let world = World::new();
    let text = format!(
        "[experiment]\nrepeats = 1\n[factors]\nfsync = [\"on\", \"off\"]\nclients = [1, 2]\n\
         [load]\nrate = 200\nduration = \"1s\"\n\
         warm_up = \"200ms\"\n[telemetry]\nfsync = \"0s\"\n[storage.disk]\n\
         backing = {{ loop = {{ size = \"1300MiB\", directory = \"{}\" }} }}\n\
         filesystem = \"ext4\"\n\
         [crash]\nfaults = [\"power\"]\nrounds = 1\nload = \"500ms\"\n",
        world.disk().display()
    );
    let file = world.file("both.toml", &text);
    world
        .run(&["run", file.to_str().unwrap()])
        .exits(4)
        .prints("crash tests")
        .prints("FAIL (lost)");
    world.assert_gone();

    let shown = world.show("latest");
    assert_eq!(shown["run"]["state"], "completed");
    // Treatments that differ in their clients only share one session of crash tests.
    assert_eq!(shown["crashes"].as_array().unwrap().len(), 2);
    for treatment in shown["treatments"].as_array().unwrap() {
        let expected = if treatment["label"].as_str().unwrap().contains("off") {
            "FAIL (lost)"
        } else {
            "pass"
        };
        assert_eq!(treatment["crash"]["verdict"], expected, "{treatment}");
        // A disk that other work keeps busy may complete none within its second.
        assert!(treatment["tps"]["mean"].is_f64(), "{treatment}");
    }
    let page = world.page(&["latest"]);
    let verdicts: Vec<&Value> = elements(&page["view"]["crashes"]).map(|c| &c["verdict"]).collect();
    assert_eq!(verdicts, ["pass", "FAIL (lost)"]);
    assert_eq!(page["headline"]["badge"], "unsafe");
    let crash = page["view"]["crashes"][1]["id"].as_str().unwrap();
    let page = world.page(&[crash]);
    assert_eq!((&page["kind"], &page["headline"]["badge"]), (&"crash".into(), &"unsafe".into()));
    world.run(&["run", "--resume", "latest"]).says("nothing to go on with");
}

#[test]
#[ignore = "long: two sessions of crash rounds"]
fn a_treatment_that_could_not_be_crashed_is_tried_again_by_resume() {
    needs!(is_root);
    let world = World::new();
    // Room for the trial, and none for the crash tests' tables.
    let text = format!(
        "[experiment]\nrepeats = 1\n[load]\nrate = 200\nduration = \"1s\"\nwarm_up = \"200ms\"\n\
         [workload]\nname = \"{}\"\nscale = 1\n[telemetry]\nfsync = \"0s\"\n[storage.disk]\n\
         backing = {{ loop = {{ size = \"1500MiB\", directory = \"{}\" }} }}\n\
         filesystem = \"ext4\"\n\
         [crash]\nfaults = [\"process\"]\nrounds = 1\nload = \"500ms\"\nscale = 90\n",
        world.small_workload(),
        world.disk().display()
    );
    let file = world.file("small.toml", &text);
    world.run(&["run", file.to_str().unwrap()]).exits(2).says("could not be crashed");
    let shown = world.show("latest");
    assert_eq!(shown["run"]["state"], "completed", "its trials are");
    // Wherever one looks, the crash tests are missed.
    assert_eq!(shown["run"]["not_crashed"].as_array().unwrap().len(), 1, "{}", shown["run"]);
    let note = "Crash tests were asked for and are not done to the end: ";
    assert!(world.run(&["show", "latest"]).out.contains(note));
    assert!(world.run(&["list"]).out.contains("completed, 1 not crashed"));
    let listed = world.run(&["list", "--json"]).json();
    assert_eq!(listed[0]["not_crashed"], 1);
    world.run(&["run", "--resume", "latest"]).exits(2).says("could not be crashed");
    world.assert_gone();
}
