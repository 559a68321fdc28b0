//! `pgdyno crash` on emulated disks: honest ones keep every commit, and lying, tearing and
//! unflushed ones are caught.

use std::fs;

use crate::support::{self, World, elements, emulates_disks};
use pgdyno_emulated_disk::{Control, Cut};
use pgdyno_test_support::{assert_contains, needs};
use serde_json::Value;

/// Runs `crash` with a short load. Returns the verdict on its only fault and its JSON.
fn crash(options: &str) -> (String, Value) {
    let world = World::new();
    let ended = world.crash(&format!("--load 500ms {options}"));
    let shown = ended.json();
    let verdict = shown["faults"][0]["verdict"].as_str().unwrap().to_owned();
    assert!(shown["notes"].to_string().contains("pgdyno emulates"), "{}", shown["notes"]);
    let expected = match shown["verdict"].as_str().unwrap() {
        failed if failed.starts_with("FAIL") => Some(4),
        // Without its control a pass proves nothing of the session.
        "invalid" if options.contains("--no-controls") && !verdict.starts_with("FAIL") => Some(5),
        "unknown" => Some(5),
        _ => Some(0),
    };
    assert_eq!(ended.code, expected, "{options}: {}", shown["reason"]);
    world.assert_gone();
    (verdict, shown)
}

/// Returns the notes of all rounds of the only fault.
fn notes(shown: &Value) -> Vec<String> {
    let rounds = elements(&shown["faults"][0]["each"]);
    rounds
        .flat_map(|r| r["notes"].as_array().unwrap())
        .map(|n| n.as_str().unwrap().to_owned())
        .collect()
}

/// Returns the verdicts of the rounds of the only fault.
fn verdicts(shown: &Value) -> Vec<String> {
    let rounds = elements(&shown["faults"][0]["each"]);
    rounds.map(|round| round["verdict"].as_str().unwrap().to_owned()).collect()
}

/// Cuts the power of an emulated disk: each round passes, and the second is aimed.
fn assert_honest(filesystem: &str) {
    let options = format!("--fault power --filesystem {filesystem} --rounds 2 --no-controls");
    let (verdict, shown) = crash(&options);
    // What hung on the last flush is a matter of chance.
    let reason = &shown["reason"];
    assert!(["pass", "unknown"].contains(&verdict.as_str()), "{filesystem}: {reason}");
    assert!(verdicts(&shown).iter().all(|verdict| verdict == "pass"), "{shown}");
    assert!(notes(&shown).iter().any(|n| n.contains("of WAL")), "{shown}");
}

/// Cuts the power under a filesystem that sends no flushes.
fn assert_without_flushes(filesystem: &str) {
    // A statement on a damaged index may have no end.
    let options = format!(
        "--fault power --filesystem {filesystem} --rounds 1 --no-controls --recovery-limit 10s"
    );
    let (verdict, shown) = crash(&options);
    assert!(verdict.starts_with("FAIL"), "{filesystem}: {}", shown["reason"]);
}

#[test]
#[ignore = "long: crash rounds on three filesystems"]
fn an_honest_disk_keeps_what_was_acknowledged_whatever_of_the_cache_survives() {
    needs!(emulates_disks);
    assert_honest("ext4 --emulated");
    assert_honest("xfs --emulated");
    assert_honest("btrfs");
}

#[test]
#[ignore = "long: crash rounds on further filesystems"]
fn a_filesystem_that_sends_no_flushes_loses_what_was_acknowledged() {
    needs!(emulates_disks);
    assert_without_flushes("ext4 --emulated --mount barrier=0");
}

#[test]
#[ignore = "long: crash rounds on further filesystems"]
fn btrfs_without_flushes_loses_what_was_acknowledged() {
    needs!(emulates_disks);
    assert_without_flushes("btrfs --mount nobarrier");
}

#[test]
fn a_torn_page_is_repaired_from_the_wal_and_without_full_page_writes_it_is_not() {
    needs!(emulates_disks);
    let (verdict, shown) = crash("--fault torn-write --filesystem ext4 --rounds 1 --seed 5");
    assert_eq!(verdict, "pass", "{}", shown["reason"]);
    assert!(
        notes(&shown).iter().all(|n| n.contains("over an older version that recovery needs")),
        "{shown}"
    );
    let control = &shown["controls"][0];
    assert!(control["name"].as_str().unwrap().contains("full_page_writes=off"), "{control}");
    assert_eq!(control["seen"], true, "{control}");
}

#[test]
#[ignore = "long: a series of crash rounds"]
fn without_full_page_writes_a_torn_page_shows() {
    needs!(emulates_disks);
    for filesystem in ["ext4", "xfs", "btrfs --mount nodatacow"] {
        let (_, shown) = crash(&format!(
            "--fault torn-write --filesystem {filesystem} --rounds 4 --no-controls \
             --setting full_page_writes=off"
        ));
        let failed = verdicts(&shown).iter().filter(|verdict| verdict.starts_with("FAIL")).count();
        // Which page is torn is drawn: recovery need not meet it in every round.
        assert!(failed > 0, "{filesystem}: {shown}");
    }
}

#[test]
#[ignore = "long: a crash round that waits for a checkpoint"]
fn a_server_that_retries_a_failed_fsync_loses_the_page_when_its_checkpoint_has_completed() {
    needs!(emulates_disks);
    // The second round of two fails a write of a data page.
    let (verdict, shown) = crash(
        "--fault io-error --under data --filesystem ext4 --rounds 2 --no-controls \
         --setting data_sync_retry=on",
    );
    let notes = notes(&shown);
    let retried =
        notes.iter().find(|n| n.contains("a write of a data page failed with EIO")).unwrap();
    assert!(retried.contains("the server went on; a checkpoint completed afterwards"), "{retried}");
    assert_eq!(verdict, "FAIL (corrupt)", "{}", shown["reason"]);
}

/// Rounds with an I/O error pass, but for what a failed write of WAL does where it held the first
/// page of a segment. Recovery finds that page in the kernel's memory, and nobody writes it again:
/// once the power has gone, the segment with the newest checkpoint cannot be read.
fn assert_kept(shown: &Value) {
    for round in shown["faults"][0]["each"].as_array().unwrap() {
        let (verdict, log) = (&round["verdict"], round["log"].as_str().unwrap_or_default());
        let is_first_page = |line: &str| {
            line.contains("unexpected pageaddr") && line.trim_end().ends_with(", offset 0")
        };
        let is_lost = verdict == "FAIL (will not start)"
            && round["notes"][0].as_str().unwrap().starts_with("a write of WAL failed")
            && log.lines().any(is_first_page);
        assert!(verdict == "pass" || is_lost, "{round}");
    }
}

/// Kinds of I/O errors in the first rounds, one a round.
const IO_ERRORS: [&str; 4] = [
    "a flush of the disk under PGDATA",
    "a flush of the disk under pg_wal",
    "a write of WAL",
    "a write of a data page",
];

/// Plays a round of I/O errors for each of `kinds`. Asserts that each came once, and nothing is
/// lost.
fn assert_io_errors(kinds: &[&str]) {
    let rounds = kinds.len();
    let options = format!("--fault io-error --filesystem xfs --rounds {rounds} --no-controls");
    let (_, shown) = crash(&options);
    assert_kept(&shown);
    let notes = notes(&shown);
    for kind in kinds {
        let of_kind = notes.iter().filter(|note| note.starts_with(kind));
        assert_eq!(of_kind.count(), 1, "{kind}: {notes:?}");
    }
    assert!(
        notes.iter().all(|note| note.contains("failed with EIO") && note.contains("checkpoint")),
        "{notes:?}"
    );
}

#[test]
fn a_failed_flush_under_pgdata_loses_nothing() {
    needs!(emulates_disks);
    assert_io_errors(&IO_ERRORS[..1]);
}

#[test]
#[ignore = "long: more crash rounds of one fault"]
fn four_io_errors_are_of_four_kinds_and_lose_nothing() {
    needs!(emulates_disks);
    assert_io_errors(&IO_ERRORS);
}

#[test]
#[ignore = "long: more crash rounds of one fault"]
fn an_io_error_loses_nothing() {
    needs!(emulates_disks);
    for under in ["wal", "data"] {
        let options =
            format!("--fault io-error --under {under} --filesystem ext4 --rounds 2 --no-controls");
        let (_, shown) = crash(&options);
        assert_kept(&shown);
        assert!(notes(&shown).iter().all(|n| n.contains("failed with EIO")), "{shown}");
        assert!(notes(&shown).iter().all(|n| n.contains("checkpoint")), "{shown}");
    }
}

#[test]
#[ignore = "long: one of several faults of a disk"]
fn a_full_filesystem_loses_nothing() {
    needs!(emulates_disks);
    // WAL alone lies on it: nothing but WAL that is kept fills the room that checkpoints give back.
    let options = "--fault disk-full --under wal --filesystem xfs --rounds 1 --no-controls";
    let (verdict, shown) = crash(options);
    assert_eq!(verdict, "pass", "{}", shown["reason"]);
    assert!(notes(&shown).iter().all(|n| n.contains("was full")), "{shown}");
}

/// The control channel of the disk of the world's running crash test, once there is one.
fn control(world: &World) -> Option<Control> {
    let mut stacks = fs::read_dir(world.disk()).ok()?.flatten();
    stacks.find_map(|stack| Control::connect(&stack.path().join("emulated-0")).ok())
}

#[test]
fn what_a_pgdyno_leaves_that_is_killed_while_the_power_is_cut_is_removed_at_once() {
    needs!(emulates_disks);
    let world = World::new();
    let disk = world.disk();
    let options =
        "crash --load 60s --fault power --filesystem btrfs --rounds 1 --no-controls --storage";
    let args: Vec<&str> = options.split(' ').chain([disk.to_str().unwrap()]).collect();
    let mut child = world.spawn(&args);
    world.until("the server to run", || !world.servers().is_empty());
    // By the test: pgdyno's own cut lasts for an instant.
    let mut control = control(&world).unwrap();
    control.cut(&Cut { survives: 0.0, tear: None }).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    world.run(&["clean"]).exits(0);
    world.assert_gone();
}

#[test]
#[ignore = "long: a crash test beside a killed one"]
fn btrfs_is_made_beside_the_dead_disk_of_a_killed_pgdyno() {
    needs!(emulates_disks);
    let dead = World::new();
    let disk = dead.disk();
    let options = "crash --load 60s --fault power --filesystem ext4 --emulated --rounds 1 \
                   --no-controls --storage";
    let args: Vec<&str> = options.split_whitespace().chain([disk.to_str().unwrap()]).collect();
    let mut child = dead.spawn(&args);
    dead.until("the disk to be mounted", || {
        fs::read_to_string("/proc/self/mounts")
            .unwrap()
            .lines()
            .any(|line| line.starts_with("/dev/loop") && line.contains(disk.to_str().unwrap()))
    });
    child.kill().unwrap();
    child.wait().unwrap();
    for server in dead.disk_servers() {
        support::signal(server, "KILL");
    }
    dead.until("the disk to be dead", || dead.disk_servers().is_empty());

    let (_, shown) = crash("--fault power --filesystem btrfs --rounds 1 --no-controls");
    assert!(verdicts(&shown).iter().all(|verdict| verdict == "pass"), "{shown}");

    dead.run(&["clean"]).exits(0);
    dead.assert_gone();
}

/// A disk that lies under one of PGDATA and pg_wal.
const LIE: &str = "--fault emulated-lie --filesystem ext4 --rounds 1 --no-controls --under";

#[test]
#[ignore = "long: more crash rounds of one fault"]
fn a_disk_that_lies_under_pgdata_is_caught() {
    needs!(emulates_disks);
    let (verdict, shown) = crash(&format!("{LIE} data"));
    assert!(verdict.starts_with("as planted"), "{}", shown["reason"]);
}

#[test]
fn a_disk_that_lies_under_pg_wal_is_caught_which_is_no_verdict_on_a_drive() {
    needs!(emulates_disks);
    let world = World::new();
    let disk = world.disk();
    let line = format!("crash --load 500ms --storage {} {LIE} wal", disk.display());
    let ended = world.run_line(&line).exits(0);
    let page = ended.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_contains(
        &page,
        &[
            "as planted (",
            "says nothing about a drive of",
            "pgdyno fsync DIR",
            "--fault plug --witness HOST",
        ],
    );
    assert!(!world.path("data/pgdyno/crashes").exists(), "what was meant to fail is not kept");
    world.assert_gone();
}

#[test]
#[ignore = "long: crash rounds of 12 s"]
fn under_asynchronous_commit_a_disk_that_lies_fails_and_one_that_is_slow_does_not() {
    needs!(emulates_disks);
    let (_, shown) = crash(
        "--fault emulated-lie --filesystem ext4 --rounds 2 --no-controls \
         --setting synchronous_commit=off",
    );
    assert!(verdicts(&shown).iter().all(|verdict| verdict.starts_with("FAIL")), "{shown}");
    // With flushes of 5 ms the WAL writer comes later than its delay says.
    let (_, shown) = crash(
        "--fault power --filesystem ext4 --emulated --rounds 2 --no-controls \
         --setting synchronous_commit=off --setting wal_writer_delay=1ms \
         --set storage.disk.backing.emulated.flush=5ms",
    );
    assert!(
        verdicts(&shown).iter().all(|v| ["bounded-loss", "pass"].contains(&v.as_str())),
        "{shown}"
    );
}
