//! Bad input is refused with its place and a remedy, before anything is made.

use crate::support::{Ended, World, elements, finish, quick};
use pgdyno_test_support::{Tmpfs, assert_contains};
use rustix::fs::FallocateFlags;

/// Asserts exit code 1, an error, and nothing on disk or in the store. Returns the error.
fn refused(world: &World, sets: &[&str]) -> String {
    let Ended { code, err, .. } = world.run(&quick(world, "quickstart", sets));
    assert_eq!(code, Some(1), "{err}");
    world.assert_nothing_left();
    assert_eq!(world.trials_stored(), 0);
    let listed = world.run(&["list"]);
    assert!(listed.out.contains("no runs yet"), "a refused run is none: {}", listed.out);
    // Notes come first.
    err[err.find("error: ").unwrap()..].to_owned()
}

#[test]
fn words_that_mean_nothing_are_answered_with_the_nearest() {
    let world = World::new();
    let error = refused(&world, &["load.clents=2"]);
    assert_contains(&error, &["unknown key `clents`", "nearest is `clients`"]);
    let error = refused(&world, &["workload.scale=0"]);
    assert!(error.contains("--set workload.scale=0"), "{error}");
    let error = refused(&world, &["workload.name=tpcb-lik"]);
    assert!(error.contains("built in are tpcb-like"), "{error}");
    world.run(&["run", "quickstrat"]).exits(1).says("quickstart");
    world.run(&["rum"]).exits(1);
    world.run(&["show", "latest"]).exits(1);
}

#[test]
fn settings_are_judged_by_the_server_before_anything_is_measured() {
    let world = World::new();
    let error = refused(&world, &["factors.synchronous_commit=[\"on\", \"maybe\"]"]);
    assert_contains(&error, &["synchronous_commit", "maybe", "remote_apply"]);
    let error = refused(&world, &["factors.shared_bufers=[\"8MB\"]"]);
    assert!(error.contains("shared_bufers") && error.contains("shared_buffers"), "{error}");
    let error = refused(&world, &["factors.port=[5433]"]);
    assert!(error.contains("pgdyno sets it itself"), "{error}");
    for (levels, one) in [
        ("factors.max_wal_size=[\"1GB\", \"2GB\", 1024]", "both 1024"),
        ("factors.work_mem=[\"4MB\", \"4096kB\"]", "both 4096"),
        ("factors.enable_sort=[\"on\", \"yes\"]", "both on"),
    ] {
        let error = refused(&world, &[levels, "factors.clients=[1, 2]"]);
        assert!(error.contains("two levels are one") && error.contains(one), "{error}");
    }
}

#[test]
fn a_directory_that_will_not_do_is_named_with_the_reason() {
    let world = World::new();
    let missing = format!("storage.disk.directory={}", world.path("nowhere").display());
    let error = refused(&world, &[&missing]);
    assert!(error.contains("nowhere") && error.contains("help:"), "{error}");
    let file = world.file("a-file", "x");
    let error = refused(&world, &[&format!("storage.disk.directory={}", file.display())]);
    assert!(error.contains("a-file"), "{error}");
    let error = refused(&world, &["workload.scale=2000000000"]);
    assert!(error.contains("it takes about") && error.contains("are free"), "{error}");
}

#[test]
fn a_refused_connection_is_told_without_the_password() {
    let world = World::new();
    // Nobody listens on port 1.
    let dsn = "postgresql://anna:hunter2@127.0.0.1:1/test";
    let ended = world.run(&["run", "quickstart", "--dsn", dsn]).exits(1);
    ended.says("127.0.0.1").says("refused");
    assert!(!ended.err.contains("hunter2"), "{}", ended.err);
}

#[test]
fn a_script_that_cannot_be_parsed_is_shown_with_its_place() {
    let world = World::new();
    let script = world.file("bad.sql", "\\set aid random(1,\nSELECT 1;\n");
    let set = format!("workload.scripts=[{{file=\"{}\"}}]", script.display());
    let error = refused(&world, &[&set]);
    assert!(error.contains("bad.sql") && error.contains('1'), "{error}");
}

#[test]
fn a_disk_that_fills_up_fails_its_trials_and_says_so() {
    const TEST: &str = "a_disk_that_fills_up_fails_its_trials_and_says_so";
    if !pgdyno_test_support::is_root(TEST, "mounting a tmpfs needs root") {
        assert!(std::env::var("CI").is_err(), "CI runs as root");
        return;
    }
    let world = World::new();
    let small = Tmpfs::mount(&world.path("small"), "size=600m");
    let disk = format!("storage.disk.directory={}", small.0.display());
    // Of two clusters, the second one writes its settings after the disk is full.
    let child = world.spawn(&quick(
        &world,
        "quickstart",
        &[
            &disk,
            "experiment.repeats=1",
            "experiment.order=\"sequential\"",
            "factors={ scale = [1, 2], clients = [1, 8] }",
            "postgres.settings.max_wal_size=64MB",
            "load.duration=3s",
            "load.rate=1000",
        ],
    ));
    // The room is there when it is asked for; then somebody else takes it.
    world.until("the first trial to be stored", || world.trials_stored() >= 1);
    let ballast = std::fs::File::create(small.0.join("ballast")).unwrap();
    let mut size = 0;
    world.until("the disk to be full", || {
        let room = rustix::fs::statvfs(&small.0).unwrap();
        let free = room.f_bavail * room.f_bsize;
        // The server may have taken some meanwhile.
        if free > 0 && rustix::fs::fallocate(&ballast, FallocateFlags::empty(), size, free).is_ok()
        {
            size += free;
        }
        free == 0
    });
    finish(child).exits(2);
    let trials = world.show("latest")["trials"].clone();
    assert_eq!(trials[0]["state"], "completed", "what was complete is kept");
    // Whatever the server had words for: its log is on that disk.
    let failures = elements(&trials).filter_map(|trial| trial["failure"].as_str());
    let failures: Vec<&str> = failures.collect();
    assert!(
        !failures.is_empty() && failures.iter().all(|f| f.contains(" is full: ")),
        "{failures:?}"
    );
    let left: Vec<_> =
        std::fs::read_dir(&small.0).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(left, ["ballast"]);
}
