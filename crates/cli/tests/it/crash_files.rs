//! A server that does not flush a class of its files is caught in every round.

use crate::support::lying_server::unflushing;
use crate::support::{World, is_root};
use serde_json::Value;

/// Crashes a server that does not flush files below `folder`, and asserts that every round fails.
/// Returns the JSON; none if the test is skipped.
fn crashed(test: &str, folder: &str, rounds: u32) -> Option<Value> {
    if !is_root(test) {
        return None;
    }
    let world = World::new();
    let programs = unflushing(&world, folder, 1);
    let disk = world.disk();
    let set = format!("postgres.bindir={}", programs.display());
    let options = format!(
        "crash --json --fault power --filesystem ext4 --rounds {rounds} --no-controls \
         --load 1s --set"
    );
    let mut args: Vec<&str> = options.split(' ').collect();
    args.extend([set.as_str(), "--storage", disk.to_str().unwrap()]);
    let ended = world.run(&args);
    let shown: Value =
        serde_json::from_str(&ended.out).unwrap_or_else(|e| panic!("{e}: {}", ended.err));
    assert_eq!(ended.code, Some(4), "{}{}", shown["reason"], ended.err);
    let each = shown["faults"][0]["each"].as_array().unwrap();
    for round in each {
        let verdict = round["verdict"].as_str().unwrap();
        assert!(verdict.starts_with("FAIL"), "{verdict}: {round}");
    }
    Some(shown)
}

#[test]
#[ignore = "long: a series of crash rounds"]
fn tables_that_are_not_flushed_are_caught_in_every_round() {
    crashed("tables_that_are_not_flushed_are_caught_in_every_round", "/data/base/", 3);
}

#[test]
#[ignore = "long: a series of crash rounds"]
fn a_commit_log_that_is_not_flushed_is_caught_in_every_round() {
    crashed("a_commit_log_that_is_not_flushed_is_caught_in_every_round", "/data/pg_xact", 3);
}

#[test]
#[ignore = "long: a series of crash rounds"]
fn a_control_file_that_is_not_flushed_is_caught_in_every_round() {
    crashed("a_control_file_that_is_not_flushed_is_caught_in_every_round", "/data/global/", 3);
}

#[test]
#[ignore = "long: a series of crash rounds"]
fn a_write_ahead_log_that_is_not_flushed_is_caught_in_every_round() {
    crashed("a_write_ahead_log_that_is_not_flushed_is_caught_in_every_round", "/data/pg_wal", 3);
}

#[test]
fn a_write_ahead_log_that_is_not_flushed_is_caught() {
    crashed("a_write_ahead_log_that_is_not_flushed_is_caught", "/data/pg_wal", 1);
}
