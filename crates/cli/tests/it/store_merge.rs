//! `pgdyno store merge`: the stores of several machines in one, from outside.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::support::{Ended, World, elements, write_old_store};
use pgdyno_model::units::Epoch;
use pgdyno_store::Store;
use pgdyno_store::notes::{Note, Notes};
use pgdyno_test_support::records::Random;
use pgdyno_test_support::{assert_contains, synthetic};
use rusqlite::Connection;
use serde_json::Value;

const RUNS: [&str; 3] =
    ["small-20261121-070000-aaaa", "small-20261121-070000-bbbb", "small-20261121-070000-cccc"];

/// A store with some of [`RUNS`]; `tps` is that of their first trials. The runs of one `tps` are
/// copies of the same ones.
fn store(world: &World, name: &str, runs: &[usize], tps: f64) -> PathBuf {
    let original = world.path(&format!("original-{tps}"));
    if !original.exists() {
        let plan = synthetic::plan(&["a", "b"], 3, &mut Random(7));
        let mut store = Store::open(&original).unwrap();
        for (number, run) in (0..).zip(RUNS) {
            synthetic::add(&mut store, (run, number), &plan, |planned| {
                tps + f64::from(planned.ordinal)
            });
        }
    }
    let chosen: Vec<&str> = runs.iter().map(|run| RUNS[*run]).collect();
    let original = original.display().to_string();
    world.run(&[&["archive"][..], &chosen, &[name, "--store", &original]].concat()).exits(0);
    world.path(name)
}

fn merge(world: &World, sources: &[&str], target: &str) -> Ended {
    world.run(&[&["store", "merge"][..], sources, &["-o", target]].concat())
}

/// Ids of the runs, and every run as `show --json` prints it.
fn contents(world: &World, store: &str) -> Vec<(String, Value)> {
    let listed = world.run(&["list", "--json", "--store", store]).json();
    let id = |run: &Value| run["id"].as_str().unwrap().to_owned();
    let shown = |id: String| {
        let shown = world.run(&["show", &id, "--json", "--store", store]);
        (id, shown.json())
    };
    elements(&listed).map(id).map(shown).collect()
}

fn assert_refused(ended: &Ended, words: &[&str]) {
    assert_eq!(ended.code, Some(1), "{}{}", ended.out, ended.err);
    for word in words.iter().chain(&["error: "]) {
        assert!(ended.err.contains(word), "{word}: {}", ended.err);
    }
}

fn assert_sound(world: &World, store: &str) {
    world.run(&["verify", "--store", store]).exits(0);
}

fn old_store(world: &World, name: &str) -> PathBuf {
    write_old_store(&world.path(name));
    world.path(name)
}

#[test]
fn stores_that_overlap_come_to_the_same_records_in_any_order() {
    let world = World::new();
    let files = [
        store(&world, "a", &[0, 1], 1000.0),
        store(&world, "b", &[1, 2], 1000.0),
        old_store(&world, "old"),
    ];
    let before = files.each_ref().map(|file| fs::read(file).unwrap());
    let merged = merge(&world, &["a", "b", "old"], "all").exits(0);
    merged.prints(format!("skipped, the same is there: {}", RUNS[1]));
    merged.prints("all holds 4 records");
    merged.says("checking a: 2 records");
    for (source, target) in [("old", "other"), ("b", "other"), ("a", "other")] {
        assert_eq!(merge(&world, &[source], target).code, Some(0));
    }
    assert_eq!(contents(&world, "all"), contents(&world, "other"));
    assert_eq!(contents(&world, "all").len(), 4);
    assert!(before == files.each_ref().map(|file| fs::read(file).unwrap()), "only read");

    let bytes = fs::read(world.path("all")).unwrap();
    let again = merge(&world, &["b", "all", "other", "old"], "all").exits(0);
    assert!(!again.out.contains("1 record added"), "{}", again.out);
    assert!(fs::read(world.path("all")).unwrap() == bytes, "nothing was new");
    assert_sound(&world, "all");
    assert_sound(&world, "other");
}

#[test]
fn json_has_what_came_from_each_store() {
    let world = World::new();
    store(&world, "a", &[0, 1], 1000.0);
    store(&world, "b", &[1], 1000.0);
    let merged = world.run(&["store", "merge", "a", "b", "-o", "all", "--json", "--quiet"]);
    assert_eq!((merged.code, merged.err.as_str()), (Some(0), ""));
    let merged = merged.json();
    assert_eq!(merged["schema"], "pgdyno.merged/1");
    assert_eq!(merged["sources"][0]["added"].as_array().unwrap().len(), 2);
    assert_eq!(merged["sources"][1]["identical"][0], RUNS[1]);
}

#[test]
fn a_run_with_other_content_is_refused_and_nothing_is_written() {
    let world = World::new();
    store(&world, "a", &[0, 1], 1000.0);
    store(&world, "b", &[2, 0], 1100.0);
    let refused = merge(&world, &["a", "b"], "new");
    assert_refused(&refused, &[RUNS[0], "from b: a has other content", "trials", "help: "]);
    assert!(!world.path("new").exists());
    let bytes = fs::read(world.path("a")).unwrap();
    assert_refused(&merge(&world, &["b"], "a"), &["other content"]);
    assert!(fs::read(world.path("a")).unwrap() == bytes);
    let names = fs::read_dir(world.path("a").parent().unwrap()).unwrap();
    let left = names.filter(|entry| {
        entry.as_ref().unwrap().file_name().to_string_lossy().starts_with(".pgdyno")
    });
    assert_eq!(left.count(), 0);
}

#[test]
fn thinned_runs_removed_ones_and_notes_go_along() {
    let world = World::new();
    old_store(&world, "old");
    store(&world, "a", &[0, 1], 1000.0);
    let id = contents(&world, "old")[0].0.clone();
    world.run(&["store", "thin", "--yes", &id, "--store", "old"]).exits(0);
    world.run(&["rm", "--yes", RUNS[0], "--store", "a"]).exits(0);
    let note = Note { text: "on the old disk".to_owned(), tags: Vec::new() };
    Notes::open(&world.path("a")).unwrap().write(RUNS[1], &note, Epoch(1)).unwrap();
    merge(&world, &["old", "a"], "all").exits(0);
    let all = contents(&world, "all");
    let thinned = all.iter().find(|(run, _)| *run == id).unwrap();
    assert_eq!(thinned.1["thinned"].as_array().unwrap().len(), 1);
    world.run(&["store", "size", "--store", "all"]).prints("removed by `pgdyno rm` so far: 1");
    let notes = Notes::open_for_reading(&world.path("all")).unwrap().unwrap();
    assert_eq!(notes.all().unwrap()[RUNS[1]], note);
    assert_sound(&world, "all");
}

#[test]
fn what_is_damaged_missing_or_no_store_is_refused_and_nothing_is_written() {
    let world = World::new();
    store(&world, "a", &[0], 1000.0);
    let bad = store(&world, "bad", &[1], 1000.0);
    let raw = Connection::open(&bad).unwrap();
    raw.execute_batch("DROP TRIGGER trial_no_update").unwrap();
    raw.execute_batch("UPDATE trial SET repeat = 9 WHERE id = 1").unwrap();
    let trigger = "CREATE TRIGGER trial_no_update BEFORE UPDATE ON trial BEGIN SELECT RAISE(ABORT, \
        'the store is append-only'); END";
    raw.execute_batch(trigger).unwrap();
    drop(raw);
    assert_refused(&merge(&world, &["a", "bad"], "new"), &["damaged", RUNS[1]]);
    assert_refused(&merge(&world, &["a", "none"], "new"), &["none"]);
    world.file("text", "tps = 5");
    assert_refused(&merge(&world, &["a", "text"], "new"), &["not a pgdyno store"]);
    assert_refused(&merge(&world, &["a"], "text"), &["not a pgdyno store"]);
    assert_refused(&merge(&world, &["a"], "disk"), &["disk"]);
    assert!(!world.path("new").exists());
    assert_eq!(fs::read_to_string(world.path("text")).unwrap(), "tps = 5");
}

#[test]
fn runs_of_several_machines_are_told_apart() {
    let world = World::new();
    let plan = synthetic::plan(&["a", "b"], 5, &mut Random(7));
    for (number, host) in (0..).zip(["db1", "db2"]) {
        let mut store = Store::open(world.path(host)).unwrap();
        let run = (RUNS[usize::try_from(number).unwrap()], number);
        synthetic::add_on(&mut store, Some(host), run, &plan, |planned| {
            1000.0 + f64::from(planned.ordinal)
        });
    }
    let one = world.run(&["list", "--store", "db1"]);
    assert!(!one.out.contains("host") && !one.out.contains("db1"), "{}", one.out);
    assert_eq!(merge(&world, &["db1", "db2"], "all").code, Some(0));
    let listed = world.run(&["list", "--store", "all"]);
    for words in [&["host"][..], &[RUNS[0], "db1"], &[RUNS[1], "db2"]] {
        let is_there = |line: &str| words.iter().all(|word| line.contains(word));
        assert!(listed.out.lines().any(is_there), "{words:?}: {}", listed.out);
    }
    let compared = world.run(&["compare", RUNS[0], RUNS[1], "--store", "all"]);
    assert_contains(
        &compared.out,
        &[
            format!("A: {} on db1", RUNS[0]),
            format!("B: {} on db2", RUNS[1]),
            "Hosts are not blocks".to_owned(),
        ],
    );
    let json = world.run(&["compare", RUNS[0], RUNS[1], "--json", "--store", "all"]).json();
    assert_eq!((&json["a"]["hosts"][0], &json["b"]["hosts"][0]), (&"db1".into(), &"db2".into()));
    world.run(&["show", RUNS[1], "--store", "all"]).prints("host db2");
    let exported =
        world.run(&["export", RUNS[1], "--redact", "--format", "json", "--store", "all"]);
    assert!(!exported.out.is_empty() && !exported.out.contains("db2"), "{}", exported.out);
}

#[test]
fn a_killed_merge_leaves_the_old_or_the_new_store() {
    for delay_ms in [0, 5, 10, 20, 40] {
        let world = World::new();
        store(&world, "a", &[0], 1000.0);
        store(&world, "b", &[1, 2], 1000.0);
        let mut child = world.spawn(&["store", "merge", "b", "-o", "a"]);
        std::thread::sleep(Duration::from_millis(delay_ms));
        let _ = child.kill();
        child.wait().unwrap();
        assert_sound(&world, "a");
        let held = contents(&world, "a").len();
        assert!(held == 1 || held == 3, "{held} runs");
        assert_eq!(merge(&world, &["b"], "a").code, Some(0));
        assert_eq!(contents(&world, "a").len(), 3);
    }
}
