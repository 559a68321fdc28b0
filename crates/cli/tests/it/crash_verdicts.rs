//! Verdicts of crash tests: planted failures, controls, exit statuses, and the files kept of
//! failures.

use crate::support::{Ended, World, elements, is_root};
use pgdyno_test_support::needs;
use serde_json::Value;

/// Returns an experiment of the levels of `fsync`, each crashed by `power` and by killed processes.
fn experiment(world: &World, levels: &str, more: &str) -> String {
    let text = format!(
        "[experiment]\nrepeats = 1\n[answer]\nkind = \"safety\"\n[factors]\nfsync = {levels}\n\
         [load]\nrate = 200\nduration = \"1s\"\n\
         warm_up = \"200ms\"\n[telemetry]\nfsync = \"0s\"\n[storage.disk]\n\
         backing = {{ loop = {{ size = \"1300MiB\", directory = \"{}\" }} }}\n\
         filesystem = \"ext4\"\n\
         [crash]\nfaults = [\"process\", \"power\"]\nrounds = 1\nload = \"700ms\"\n{more}",
        world.disk().display()
    );
    world.file("experiment.toml", &text).to_str().unwrap().to_owned()
}

const PLANTED: &str = "[[crash.planted]]\nfaults = [\"power\"]\nlevels = { fsync = \"off\" }\n";

/// Returns the crash tests of the treatment whose `fsync` is `level`.
fn treatment<'a>(shown: &'a Value, level: &str) -> &'a Value {
    let is = |t: &&Value| t["label"].as_str().unwrap().ends_with(level);
    &elements(&shown["treatments"]).find(is).unwrap()["crash"]
}

#[test]
#[ignore = "long: a run with two sessions of crash rounds"]
fn a_run_whose_only_failures_are_planted_ends_well_and_still_shows_what_was_lost() {
    needs!(is_root);
    let world = World::new();
    let file = experiment(&world, "[\"on\", \"off\"]", PLANTED);
    world.run(&["run", &file, "--dry-run"]).prints("fsync=off: meant to fail power");
    world.run(&["run", &file]).exits(0).prints("as planted (lost)");
    let shown = world.show("latest");
    let (on, off) = (treatment(&shown, "on"), treatment(&shown, "off"));
    assert_eq!(
        (on["verdict"].as_str(), off["verdict"].as_str()),
        (Some("pass"), Some("as planted (lost)"))
    );
    // All that was acknowledged in the rounds of the fault that lost; what others' rounds kept does
    // not dilute it.
    let gravest = &off["gravest"];
    assert_eq!(
        (gravest["fault"].as_str(), gravest["planted"].as_bool()),
        (Some("power"), Some(true))
    );
    assert_eq!(gravest["lost"], gravest["acknowledged"]);
    assert!(off["acknowledged"].as_u64() > gravest["acknowledged"].as_u64(), "{off}");
    let not_ranked = shown["treatments"][1]["not_ranked"].to_string();
    assert!(not_ranked.contains("to the fault power"), "{not_ranked}");
    let answer = shown["answer"].to_string();
    assert!(answer.contains("as was expected"), "{answer}");
}

#[test]
#[ignore = "long: two runs with crash rounds"]
fn a_failed_trial_does_not_hide_a_broken_promise() {
    needs!(is_root);
    let world = World::new();
    world.file("wrong.sql", "SELECT 1/0;\n");
    let wrong = "[workload]\nscripts = [{ file = \"wrong.sql\" }]\n";
    let run = |more: &str| -> Ended { world.run(&["run", &experiment(&world, "[\"off\"]", more)]) };
    let broken = run(wrong);
    broken.says("1 trial failed; none is completed");
    assert_eq!(broken.code, Some(4), "{}{}", broken.out, broken.err);
    run(&format!("{PLANTED}{wrong}")).exits(2);
    world
        .run(&["run", "--resume", "latest", "-o", "/nowhere/report.html"])
        .exits(2)
        .says("/nowhere/report.html");
}

#[test]
#[ignore = "long: a run with crash rounds"]
fn a_planted_failure_that_does_not_come_is_invalid() {
    needs!(is_root);
    let world = World::new();
    let more = PLANTED.replace("off", "on");
    let file = experiment(&world, "[\"on\"]", &more);
    let sets = ["--set", "crash.faults=[\"power\"]", "--set", "crash.controls=false"];
    world.run(&[&["run", &file], &sets[..]].concat()).exits(5);
    let shown = world.show("latest");
    assert_eq!(treatment(&shown, "on")["verdict"], "invalid");
    assert!(treatment(&shown, "on")["reason"].as_str().unwrap().contains("was meant to fail"));
}

#[test]
fn without_a_control_nothing_passes_and_a_server_that_ends_as_it_is_told_is_started() {
    let world = World::new();
    let options = "--fault backend --rounds 1 --load 300ms --no-controls \
                   --setting restart_after_crash=off";
    let shown = world.crash(options).exits(5).json();
    assert_eq!(shown["verdict"], "invalid");
    let reason = shown["reason"].as_str().unwrap();
    assert!(reason.contains("no control of backend was run"), "{reason}");
    assert_eq!(shown["faults"][0]["each"][0]["verdict"], "pass", "{shown}");
}
