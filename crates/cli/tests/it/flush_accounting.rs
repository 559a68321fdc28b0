//! `flush_accounting` of a storage: each commit of a trial is judged by the flushes of the emulated
//! disk under pg_wal.

use pgdyno_test_support::{assert_contains, needs};
use std::path::{Path, PathBuf};

use crate::support::{World, elements, emulates_disks, lying_server};
use serde_json::Value;

/// `[storage.NAME]` on an emulated disk.
fn on_an_emulated_disk(world: &World, name: &str, more: &str) -> String {
    let disk = world.disk();
    format!(
        "[storage.{name}]\nbacking = {{ emulated = {{ size = \"400MiB\", directory = \"{}\" }} }}\n\
         filesystem = \"ext4\"\n{more}\n",
        disk.display()
    )
}

/// An experiment of short trials.
fn experiment(world: &World, clients: u32, more: &str) -> PathBuf {
    let small = format!("name = \"{}\"\n", world.small_workload());
    experiment_of(world, &small, clients, more)
}

/// As [`experiment`], with `workload` among the keys of `[workload]`.
fn experiment_of(world: &World, workload: &str, clients: u32, more: &str) -> PathBuf {
    let text = format!(
        "[experiment]\nrepeats = 1\norder = \"interleaved\"\n[workload]\n{workload}scale = 1\n\
         [postgres.settings]\nmax_wal_size = \"64MB\"\n\
         [load]\nclients = {clients}\nrate = 500\nduration = \"1s\"\nwarm_up = \"200ms\"\n\
         [telemetry]\nfsync = \"0s\"\n{more}"
    );
    world.file("accounted.toml", &text)
}

/// Runs the experiment, and returns what is shown of it as JSON and on a terminal.
fn run(world: &World, file: &Path) -> (Value, String) {
    world.run(&["run", file.to_str().unwrap()]).exits(0);
    world.assert_gone();
    let shown = world.run(&["show", "latest", "--verbose"]).out;
    (world.show("latest"), shown.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Commits that were judged, and those among them without a flush, of trial `n` (from 0).
fn counts(shown: &Value, n: usize) -> (u64, u64) {
    let account = &shown["trials"][n]["flush_accounting"];
    let count = |name: &str| account[name].as_u64().unwrap_or_else(|| panic!("{account}"));
    (count("judged"), count("early"))
}

fn cautions(shown: &Value) -> Vec<&str> {
    let all = shown["cautions"].as_array().unwrap();
    all.iter().map(|caution| caution["kind"].as_str().unwrap()).collect()
}

#[test]
fn an_honest_stack_flushes_for_each_commit_and_reads_need_none() {
    needs!(emulates_disks);
    let world = World::new();
    let storages = [
        on_an_emulated_disk(&world, "one", "flush_accounting = true"),
        on_an_emulated_disk(&world, "two", "wal = \"log\"\nflush_accounting = true"),
        on_an_emulated_disk(&world, "log", ""),
    ];
    let factors = "[factors]\nstorage = [\"one\", \"two\"]\n\
        workload = [\"tpcb-like\", \"select-only\"]\n\
        [[exclude]]\nstorage = \"two\"\nworkload = \"select-only\"\n";
    // Eight clients: commits share flushes.
    let file = experiment_of(&world, "", 8, &[factors, &storages.concat()].concat());
    let (shown, text) = run(&world, &file);
    for (n, trial) in elements(&shown["trials"]).enumerate() {
        let (judged, early) = counts(&shown, n);
        assert_eq!(early, 0, "{trial}");
        if trial["factors"]["workload"] == "select-only" {
            assert_eq!(judged, 0, "{trial}");
        } else {
            let all = trial["transactions"].as_u64().unwrap();
            assert!(judged >= all && all > 0, "also those of the warm-up: {judged} of {all}");
        }
    }
    assert_contains(
        &text,
        &[
            "was acknowledged after a flush of its own",
            "the server said of none that it changed rows",
        ],
    );
    assert!(!cautions(&shown).contains(&"early-acknowledgements"), "{:?}", cautions(&shown));
}

#[test]
fn a_filesystem_that_passes_no_flush_on_is_told_of_in_every_output() {
    needs!(emulates_disks);
    let world = World::new();
    let more = "mount = [\"barrier=0\"]\nflush_accounting = true";
    let file = experiment(&world, 2, &on_an_emulated_disk(&world, "disk", more));
    let (shown, text) = run(&world, &file);
    let (judged, early) = counts(&shown, 0);
    assert!(early > 0 && early <= judged, "{early} of {judged}");
    let instants = shown["trials"][0]["flush_accounting"]["first_early_s"].as_array().unwrap();
    assert_eq!(instants.len(), usize::try_from(early.min(10)).unwrap());
    assert!(text.contains("commits acknowledged without a flush of their own"), "{text}");
    assert_eq!(shown["cautions"][0]["tier"], "conclusion");
    assert!(cautions(&shown).contains(&"early-acknowledgements"), "{:?}", cautions(&shown));
    let proofs = shown["headline"]["proofs"].as_array().unwrap();
    assert!(proofs.iter().any(|p| p["kind"] == "early-acknowledgements"), "{proofs:?}");
    let page = world.page(&["latest"]).to_string();
    assert!(page.contains("early-acknowledgements"), "the page says so too");
    let exported = world.run(&["export", "latest", "--format", "json"]).json();
    let trial = &exported["trials"][0];
    assert_eq!(
        (&trial["commits_judged"], &trial["commits_early"]),
        (&judged.into(), &early.into())
    );
}

#[test]
fn a_server_that_leaves_out_one_flush_of_wal_in_fifty_is_caught_while_it_is_measured() {
    needs!(emulates_disks);
    let world = World::new();
    let programs = lying_server::unflushing(&world, "/pg_wal/", 50);
    let more = [
        format!("[postgres]\nbindir = \"{}\"\n", programs.display()),
        on_an_emulated_disk(&world, "disk", "flush_accounting = true"),
    ];
    let file = experiment(&world, 2, &more.concat());
    let (shown, _) = run(&world, &file);
    let (judged, early) = counts(&shown, 0);
    assert!(early > 0 && early < judged / 5, "{early} of {judged}");
}

#[test]
fn commits_that_wait_for_no_flush_by_a_setting_are_not_judged_and_the_report_says_why() {
    needs!(emulates_disks);
    let world = World::new();
    let more = [
        "[factors]\nsynchronous_commit = [\"on\", \"off\"]\n",
        &on_an_emulated_disk(&world, "disk", "flush_accounting = true"),
    ];
    let (shown, text) = run(&world, &experiment(&world, 2, &more.concat()));
    let (judged, early) = counts(&shown, 0);
    assert!(judged > 0 && early == 0, "{early} of {judged}");
    assert_eq!(counts(&shown, 1), (0, 0));
    assert_eq!(shown["trials"][1]["flush_accounting"]["not_judged"], "asynchronous");
    assert!(text.contains("synchronous_commit is off"), "{text}");
    assert!(cautions(&shown).contains(&"commits-not-judged"), "{:?}", cautions(&shown));
}

#[test]
fn flushes_that_pgdyno_does_not_see_are_refused_with_advice() {
    let world = World::new();
    let refused = |more: &str, words: &[&str]| {
        let file = experiment(&world, 2, more);
        let ran = world.run(&["run", file.to_str().unwrap()]);
        assert!(ran.code != Some(0) && ran.out.is_empty(), "{more}: {}", ran.out);
        for word in [words, &["flush", "help: "]].concat() {
            assert!(ran.err.contains(word), "{more}: `{word}` in {}", ran.err);
        }
    };
    let directory = format!("directory = \"{}\"\n", world.disk().display());
    refused(
        &format!("[storage.disk]\n{directory}flush_accounting = true\n"),
        &["`storage.disk.flush_accounting`", "a directory", "emulated"],
    );
    let file = "[storage.disk]\nbacking = { loop = { size = \"1GiB\" } }\nfilesystem = \"ext4\"\n\
                flush_accounting = true\n";
    refused(file, &["a loop file"]);
    // The WAL of what lies on the emulated disk lies elsewhere.
    let apart = [
        on_an_emulated_disk(&world, "disk", "wal = \"log\"\nflush_accounting = true"),
        format!("[storage.log]\n{directory}"),
    ];
    refused(&apart.concat(), &["storage `log`", "a directory"]);
    let disk = on_an_emulated_disk(&world, "disk", "flush_accounting = true");
    for generators in [
        "[generators]\nlaunch = \"local:2\"\n",
        "[factors]\ngenerators = [\"none\", \"local:2\"]\n",
    ] {
        refused(&format!("{generators}{disk}"), &["storage `disk`", "generators"]);
    }
}
