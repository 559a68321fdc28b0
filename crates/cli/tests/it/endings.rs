//! Whatever ends a run, nothing stays behind, what was complete is kept, and the run can go on.

use crate::support::live::{live_run, until_load_of};
use crate::support::{World, finish, quick, signal};
use pgdyno_lab::live::Follower;
use pgdyno_test_support::assert_contains;

const FOUR_SHORT_TRIALS: [&str; 2] = ["factors.clients=[1, 2]", "experiment.repeats=1"];

#[test]
fn sigterm_takes_everything_down_and_resume_completes_the_run() {
    let world = World::new();
    let child = world.spawn(&quick(&world, "quickstart", &FOUR_SHORT_TRIALS));
    world.until("the first trial to be stored", || world.trials_stored() >= 1);
    world.until("a server to be left", || world.servers().len() == 1);
    signal(child.id().cast_signed(), "TERM");
    finish(child).exits(130).says("--resume");
    world.assert_nothing_left();
    assert_eq!(world.show("latest")["run"]["state"], "interrupted");

    world.run(&["run", "--resume", "latest"]).exits(0);
    let shown = world.show("latest");
    assert_eq!(shown["run"]["state"], "completed");
    assert_eq!(shown["trials"].as_array().unwrap().len(), 4);
    world.assert_nothing_left();
    world.run(&["run", "--resume", "latest"]).exits(1).says("nothing to go on with");
}

#[test]
fn after_a_sigkill_the_next_start_clears_what_is_left_and_resume_completes_the_run() {
    let world = World::new();
    let mut child = world.spawn(&quick(&world, "quickstart", &FOUR_SHORT_TRIALS));
    world.until("the first trial to be stored", || world.trials_stored() >= 1);
    world.until("a server to be left", || world.servers().len() == 1);
    let server = world.servers()[0];
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(
        world.servers(),
        [server],
        "the server outlives a killed pgdyno: that is what the next start is for"
    );
    // Somebody else's directory of the same look, beside it.
    let foreign = world.disk().join("pgdyno-00000000");
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(foreign.join("precious"), "mine").unwrap();
    assert_eq!(world.show("latest")["run"]["state"], "interrupted");

    world.run(&["run", "--resume", "latest"]).exits(0).says(format!("ended server {server}"));
    assert_eq!(world.show("latest")["run"]["state"], "completed");
    assert_eq!(std::fs::read_to_string(foreign.join("precious")).unwrap(), "mine");
    std::fs::remove_dir_all(&foreign).unwrap();
    world.assert_nothing_left();
}

#[test]
fn a_server_that_dies_costs_its_trial_and_no_other() {
    let world = World::new();
    let sets = [
        "factors.clients=[1]",
        "factors.synchronous_commit=[\"on\", \"local\", \"off\"]",
        "experiment.repeats=1",
        "load.duration=2s",
    ];
    let child = world.spawn(&quick(&world, "quickstart", &sets));
    let mut follower = Follower::open(&world.store(), &live_run(&world).run).unwrap();
    until_load_of(&world, &mut follower, 1);
    for server in world.servers() {
        signal(server, "KILL");
    }
    let ended = finish(child).exits(2);
    let shown = world.show("latest");
    assert_eq!(shown["run"]["state"], "failed");
    let trials = shown["trials"].as_array().unwrap();
    let failed: Vec<&serde_json::Value> =
        trials.iter().filter(|t| t["state"] == "failed").collect();
    assert_eq!((trials.len(), failed.len()), (3, 1), "{}", ended.err);
    assert_contains(failed[0]["failure"].as_str().unwrap(), &["the server ended by itself"]);
    world.assert_nothing_left();

    world.run(&["run", "--resume", "latest"]).exits(0);
    assert_eq!(world.show("latest")["run"]["state"], "completed");
}
