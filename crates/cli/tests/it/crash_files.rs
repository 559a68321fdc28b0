//! A server that does not flush a class of its files is caught in every round.

use crate::support::lying_server::unflushing;
use crate::support::{World, is_root};
use pgdyno_test_support::test_name;
use serde_json::Value;

/// Crashes a server that does not flush files below `folder`. Returns the JSON of the rounds; none
/// where the test is skipped.
fn crashed(test: &str, folder: &str, rounds: u32) -> Option<Value> {
    if !is_root(test) {
        return None;
    }
    let world = World::new();
    let programs = unflushing(&world, folder, 1);
    let ended = world.crash(&format!(
        "--fault power --filesystem ext4 --rounds {rounds} --no-controls --load 1s \
         --set postgres.bindir={}",
        programs.display()
    ));
    let shown = ended.json();
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
fn tables_commit_log_control_file_and_wal_that_are_not_flushed_are_caught_in_every_round() {
    for folder in ["/data/base/", "/data/pg_xact", "/data/global/", "/data/pg_wal"] {
        crashed(test_name!(), folder, 3);
    }
}

#[test]
fn a_write_ahead_log_that_is_not_flushed_is_caught() {
    crashed(test_name!(), "/data/pg_wal", 1);
}
