//! `pgdyno crash --exhaustive`: what is said of the states of a recorded stretch.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{self, Ended, World, elements, emulates_disks, lying_server};
use pgdyno_test_support::{RELEASE_MOUNTS, assert_contains, needs};
use serde_json::Value;

/// There if the kernel mounts two clones of a btrfs at a time.
const CLONES: &str = "/sys/fs/btrfs/features/temp_fsid";

/// `crash --exhaustive` with a short load in `world`, and what it shows.
fn exhaustive(world: &World, options: &str) -> (Ended, Value) {
    let ended = world.crash(&format!("--clients 2 {options}"));
    let shown = ended.json();
    assert_eq!(world.traces(), [""; 0]);
    (ended, shown)
}

/// Runs [`exhaustive`] with a load of `load` milliseconds, or of twice and four times as many: on a
/// busy machine no checkpoint completes within a short one.
fn exhaustive_over_a_checkpoint(world: &World, options: &str, load: u32) -> (Ended, Value) {
    let mut tries = [1, 2, 4].into_iter();
    let found = tries.find_map(|factor| {
        let (ended, shown) = exhaustive(world, &format!("{options} --load {}ms", factor * load));
        (count(&shown["states"]["stretch"]["checkpoints"]) > 0).then_some((ended, shown))
    });
    found.expect("a checkpoint completes within one of three stretches")
}

/// Runs [`exhaustive`] at every flush of an ext4, with the programs of PostgreSQL in `programs`.
fn exhaustive_with(world: &World, options: &str, programs: &Path) -> (Ended, Value) {
    exhaustive(world, &format!("{} {options}", at_every_flush_with(programs)))
}

fn at_every_flush_with(programs: &Path) -> String {
    format!("--exhaustive=flushes --filesystem ext4 --set postgres.bindir={}", programs.display())
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

#[test]
#[ignore = "long: `just crash-states`"]
fn honest_filesystems_keep_what_was_acknowledged_at_every_flush() {
    needs!(emulates_disks);
    let load = std::env::var("PGDYNO_STATES_LOAD").unwrap_or("250ms".into());
    // Where PGDYNO_TEST_POSTGRESQL names a folder, version 18 takes part.
    let newest = std::env::var("PGDYNO_TEST_POSTGRESQL");
    let newest = newest.map(|folder| format!(" --set postgres.bindir={folder}/18/bin"));
    let programs: Vec<String> = std::iter::once(String::new()).chain(newest).collect();
    let all = ["ext4", "xfs", "btrfs"].into_iter();
    let pairs = all.flat_map(|filesystem| programs.iter().map(move |of| (filesystem, of)));
    for (filesystem, of) in pairs {
        let on = format!("{filesystem}{of}");
        let world = World::new();
        let options = format!("--exhaustive=flushes --jobs 2 --load {load} --filesystem {on}");
        let (ended, shown) = exhaustive(&world, &options);
        assert_eq!(shown["verdict"], "pass", "{on}: {}", shown["reason"]);
        assert_eq!(ended.code, Some(0));
        let states = &shown["states"];
        assert_eq!(states["boundaries"]["judged"], states["boundaries"]["total"]);
        assert_eq!(count(&states["boundaries"]["total"]), count(&states["stretch"]["flushes"]) + 1);
        assert!(count(&states["stretch"]["acknowledged"]) > 0 && count(&states["thorough"]) > 0);
        assert_eq!((count(&states["lost"]), count(&states["failed"])), (0, 0));
        let stretch = &states["stretch"];
        assert_eq!(
            (&stretch["early"], &stretch["by_record"]),
            (&0.into(), &stretch["acknowledged"])
        );
        println!("{on}: {}", states["words"]);
        assert_eq!(shown["controls"][0]["seen"], true, "{}", shown["controls"]);
        // A note says so where the kernel does not mount two clones of a btrfs.
        let is_forced = filesystem == "btrfs" && !Path::new(CLONES).exists();
        let notes = shown["notes"].to_string();
        assert_eq!(notes.contains("one state was judged at a time in place of 2"), is_forced);
        world.assert_nothing_left();
    }
}

#[test]
fn a_server_that_sends_no_flushes_loses_what_was_acknowledged() {
    needs!(emulates_disks);
    assert_unflushed("--setting fsync=off", "10ms");
}

#[test]
#[ignore = "long: a hundred milliseconds of load, every flush judged"]
fn a_filesystem_that_sends_no_flushes_loses_what_was_acknowledged() {
    needs!(emulates_disks);
    assert_unflushed("--mount barrier=0", "100ms");
}

/// Records `load` on a disk that is asked for no flushes because of the option `planted`. The loss
/// is found, explained, kept, and found again in what was kept.
fn assert_unflushed(planted: &str, load: &str) {
    let world = World::new();
    let options =
        format!("--exhaustive=flushes --jobs 2 --load {load} --filesystem ext4 {planted}");
    let (ended, shown) = exhaustive(&world, &options);
    assert!(shown["verdict"].as_str().unwrap().starts_with("FAIL"), "{planted}: {shown}");
    assert_eq!(ended.code, Some(4));
    let states = &shown["states"];
    let stretch = &states["stretch"];
    assert!(count(&states["lost"]) > 0 && count(&stretch["early"]) > 0, "{planted}: {states}");
    assert_cause(&states["cause"], planted);
    let kept = Path::new(states["kept"].as_str().unwrap());
    for file in ["image-0", "disk-log"] {
        assert!(kept.join(file).exists(), "{file}");
    }
    let log = kept.join("disk-log");
    let printed = world.run(&["disk-log", log.to_str().unwrap()]).exits(0);
    let events = count(&stretch["writes"]);
    assert!(printed.out.lines().count() as u64 > events, "a line for each event");
    let (log, image) = (log.to_str().unwrap(), kept.join("state.img"));
    let newest = states["failures"][0]["newest"].to_string();
    let of = ["disk-log", log, "--newest", &newest, "--image", image.to_str().unwrap()];
    let made = world.run(&of);
    assert_eq!((made.code, made.err.as_str()), (Some(0), ""), "{}", made.out);
    let listed = Command::new("debugfs").args(["-R", "ls -p /"]).arg(&image).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.contains("/pgdyno-"), "the cluster's folder: {listed}");
    world.run(&of).with_case("what is there is not overwritten").exits(1).says("cannot make");
    assert_fails_again(&world, kept, &states["failures"][0]);
}

/// Has a state that failed judged again, from what was kept; it fails as it did. With all writes it
/// may not.
fn assert_fails_again(world: &World, kept: &Path, failed: &Value) {
    let (kept, newest) = (kept.to_str().unwrap(), failed["newest"].to_string());
    let mut args = vec!["crash", "judge", kept, "--json", "--newest", &newest];
    let until = failed["until"].to_string();
    if !failed["until"].is_null() {
        args.extend(["--before", &until]);
    }
    let said = world.run(&args).exits(4).json();
    assert_eq!((&said["verdict"], &said["before"]), (&failed["verdict"], &failed["until"]));
    assert_eq!(said["lost"].as_array().map(Vec::len), failed["lost"].as_u64().map(|n| n as usize));
    assert_eq!(world.traces(), [""; 0]);
    let words = world
        .run(&["crash", "judge", kept, "--newest", "0", "--before", "1"])
        .with_case("nothing had been acknowledged")
        .exits(0);
    assert!(words.out.starts_with("pass: "), "{}", words.out);
}

/// Without fsync WAL stays in the kernel's memory. Without barriers it gets to the disk, which is
/// not asked to keep it.
fn assert_cause(cause: &Value, planted: &str) {
    if planted == "--setting fsync=off" {
        assert_eq!(cause["cause"], "not-written", "{cause}");
        return;
    }
    assert_eq!(cause["cause"], "lost", "{cause}");
    // A block may be the filesystem's own, or the second half of a page of WAL.
    let first = &cause["first"][0];
    let mut pages = elements(&first["pages"]);
    assert!(pages.all(|page| page[0] == "wal"), "{cause}");
    let mut files = elements(&first["files"]).map(|part| &part["file"]);
    assert!(files.all(|file| file.as_str().unwrap().starts_with("pg_wal/")), "{cause}");
    // The flush that the first lost transaction had to wait for; none where the server did not
    // start.
    let (write, flush) = (count(&first["number"]), &cause["flush"]);
    if !flush.is_null() {
        assert!(count(&flush["after"]) >= write && count(&flush["before"]) > write, "{cause}");
        assert!(flush["token"]["client"].is_u64(), "{cause}");
    }
}

#[test]
#[ignore = "long: many states of a disk"]
fn a_segment_of_wal_that_is_never_flushed_is_named_as_the_cause() {
    needs!(emulates_disks);
    let world = World::new();
    // A switch of segments is among what goes on during the load.
    let one_in = 2;
    let programs = lying_server::unflushing_segments(&world, one_in);
    let (ended, shown) = exhaustive_with(&world, "--jobs 2 --load 200ms", &programs);
    let states = &shown["states"];
    assert_eq!((&shown["verdict"], ended.code), (&"FAIL (lost)".into(), Some(4)), "{states}");
    assert!(count(&states["lost"]) > 0 && count(&states["stretch"]["early"]) > 0, "{states}");
    let cause = &states["cause"];
    assert_eq!(cause["cause"], "lost", "{cause}");
    // A block may be the filesystem's own, or the second half of a page of WAL.
    let first = &cause["first"][0];
    let mut pages = elements(&first["pages"]);
    assert!(pages.all(|page| page[0] == "wal"), "{cause}");
    let file = first["files"][0]["file"].as_str().unwrap_or_default();
    assert!(lying_server::is_unkept_segment(file, one_in), "{cause}");
    world.assert_nothing_left();
}

#[test]
#[ignore = "long: many states of a disk"]
fn data_that_are_never_flushed_under_honest_wal_are_missed_after_a_checkpoint() {
    needs!(emulates_disks);
    let world = World::new();
    let programs = lying_server::unflushing(&world, "/base/", 1);
    let options = format!("{} --jobs 2", at_every_flush_with(&programs));
    let (ended, shown) = exhaustive_over_a_checkpoint(&world, &options, 200);
    let states = &shown["states"];
    assert!(shown["verdict"].as_str().unwrap().starts_with("FAIL"), "{states}");
    assert_eq!(ended.code, Some(4));
    // Each commit's own record was flushed in time. It is not known of rows that recovery lacks.
    let stretch = &states["stretch"];
    assert_eq!(stretch["early"], 0, "{stretch}");
    assert!(count(&stretch["by_record"]) > 0, "{stretch}");
    assert!(count(&states["failed"]) > 0, "{states}");
    // Pages of tables stayed in the kernel's memory, and recovery begins behind their changes.
    assert_eq!(states["cause"]["cause"], "not-written", "{states}");
    world.assert_nothing_left();
}

#[test]
#[ignore = "long: many states of a disk"]
fn one_flush_in_a_hundred_that_is_left_out_is_found_without_a_crash() {
    needs!(emulates_disks);
    let world = World::new();
    let programs = lying_server::unflushing(&world, "/pg_wal/", 100);
    let (ended, shown) = exhaustive_with(&world, "--load 2s --budget 1ms", &programs);
    let states = &shown["states"];
    assert_eq!((&shown["verdict"], ended.code), (&"FAIL (lost)".into(), Some(4)), "{states}");
    // Judged is the last state alone.
    assert!(count(&states["boundaries"]["judged"]) <= 1, "{states}");
    let stretch = &states["stretch"];
    let (early, acknowledged) = (count(&stretch["early"]), count(&stretch["acknowledged"]));
    // Clients that commit together share a flush.
    assert!(early > 0 && early < acknowledged / 20, "{stretch}");
    // Where the last flush of all is left out, or the last of a segment, records do not reach the
    // disk, and none is found behind them.
    let by_record = count(&stretch["by_record"]);
    assert!(by_record > 0 && by_record <= acknowledged, "{stretch}");
    let named = stretch["first_early"].as_array().unwrap();
    assert_eq!(named.len() as u64, early.min(10), "{stretch}");
    world.assert_nothing_left();
}

#[test]
#[ignore = "long: many states of a disk"]
fn a_server_that_leaves_out_one_flush_of_wal_in_fifty_is_caught_with_and_without_a_crash() {
    needs!(emulates_disks);
    let world = World::new();
    let programs = lying_server::unflushing(&world, "/pg_wal/", 50);
    let (ended, shown) = exhaustive_with(&world, "--jobs 2 --load 2s --budget 20s", &programs);
    let states = &shown["states"];
    assert!(shown["verdict"].as_str().unwrap().starts_with("FAIL"), "{states}");
    assert_eq!(ended.code, Some(4));
    // By flush accounting, whatever was judged.
    let (early, acknowledged) = (&states["stretch"]["early"], &states["stretch"]["acknowledged"]);
    assert!(count(early) > 0 && count(early) < count(acknowledged) / 5, "{states}");
    // By recovery of the states without that flush, once such a state was judged.
    let boundaries = &states["boundaries"];
    let is_whole = boundaries["judged"] == boundaries["total"];
    assert!(count(&states["lost"]) > 0 || !is_whole, "{states}");
    if count(&states["failed"]) > 0 {
        // The write of WAL whose flush was left out, where it had got as far as the disk.
        let cause = &states["cause"];
        let page = &cause["first"][0]["pages"][0][0];
        assert!(cause["cause"] == "not-written" || page == "wal", "{states}");
    }
    world.assert_nothing_left();
}

#[test]
#[ignore = "long: many states of a disk"]
fn a_treatment_that_is_meant_to_fail_is_as_planted_however_many_disks_judge_it() {
    needs!(emulates_disks);
    for jobs in [1, 2] {
        let world = World::new();
        let text = format!(
            "[experiment]\nrepeats = 1\n[answer]\nkind = \"safety\"\n\
             [factors]\nfsync = [\"on\", \"off\"]\n\
             [load]\nrate = 200\nduration = \"1s\"\nwarm_up = \"200ms\"\n[telemetry]\n\
             fsync = \"0s\"\n\
             [storage.disk]\nfilesystem = \"ext4\"\n\
             backing = {{ emulated = {{ size = \"1300MiB\", directory = \"{}\" }} }}\n\
             [crash]\nfaults = [\"power\"]\nstates = \"flushes\"\njobs = {jobs}\n\
             clients = 2\nload = \"100ms\"\n\
             [[crash.planted]]\nfaults = [\"power\"]\nlevels = {{ fsync = \"off\" }}\n",
            world.disk().display()
        );
        let file = world.file("experiment.toml", &text);
        world.run(&["run", file.to_str().unwrap()]).with_case(format!("{jobs} at a time")).exits(0);
        let shown = world.show("latest");
        let verdicts: Vec<&str> = elements(&shown["treatments"])
            .map(|treatment| treatment["crash"]["verdict"].as_str().unwrap())
            .collect();
        assert_eq!(verdicts, ["pass", "as planted (lost)"], "{jobs} at a time: {shown}");
        world.assert_nothing_left();
    }
}

#[test]
fn a_budget_that_ends_before_the_flushes_are_judged_leaves_the_verdict_partial() {
    needs!(emulates_disks);
    let world = World::new();
    let options = "--exhaustive --budget 1ms --load 150ms --filesystem ext4";
    let (ended, shown) = exhaustive(&world, options);
    assert_eq!((shown["verdict"].as_str(), ended.code), (Some("partial"), Some(5)), "{shown}");
    let boundaries = &shown["states"]["boundaries"];
    assert!(count(&boundaries["judged"]) < count(&boundaries["total"]), "{boundaries}");
    world.assert_nothing_left();
}

#[test]
#[ignore = "long: many states of a disk"]
fn states_between_flushes_are_judged_after_the_flushes() {
    needs!(emulates_disks);
    let world = World::new();
    let options = "--exhaustive --load 10ms --jobs 2 --filesystem ext4 --budget 60s";
    let (_, shown) = exhaustive(&world, options);
    let states = &shown["states"];
    let within = states["within"].as_array().unwrap();
    let judged: u64 = within.iter().map(|kind| count(&kind["judged"])).sum();
    let is_whole = states["boundaries"]["judged"] == states["boundaries"]["total"];
    assert!(judged > 0 && is_whole, "{states}");
    assert_eq!(count(&states["failed"]), 0, "{states}");
}

#[test]
#[ignore = "long: many states of a disk"]
fn a_page_that_was_torn_is_named_where_wal_has_no_whole_copy_of_it() {
    needs!(emulates_disks);
    let world = World::new();
    // Commits that wait for no flush leave time for checkpoints, which write the pages of tables.
    let options = "--exhaustive --jobs 2 --filesystem ext4 \
        --setting full_page_writes=off --setting synchronous_commit=off";
    let (ended, shown) = exhaustive_over_a_checkpoint(&world, options, 300);
    let states = &shown["states"];
    assert!(shown["verdict"].as_str().unwrap().starts_with("FAIL"), "{}", shown["reason"]);
    assert_eq!(ended.code, Some(4));
    // Whole pages need no copy.
    assert_eq!(states["boundaries"]["judged"], states["boundaries"]["total"]);
    assert!(states["cause"].is_null(), "{}", states["cause"]);
    let failures = states["failures"].as_array().unwrap();
    let is_torn = |failure: &&Value| failure["kind"].as_str().unwrap().starts_with("torn-");
    let torn: Vec<&Value> = failures.iter().filter(is_torn).collect();
    assert!(!torn.is_empty(), "{failures:?}");
    // Nothing else that the first one lacks does harm.
    let cause = &torn[0]["cause"];
    assert_eq!((&cause["cause"], &cause["writes"]), (&"lost".into(), &1.into()), "{cause}");
    assert_eq!(cause["first"][0]["number"], torn[0]["missing"][0]["number"], "{cause}");
    assert!(count(&cause["first"][0]["kept"]) > 0, "{cause}");
    for failure in torn {
        let write = &failure["missing"][0];
        assert!(count(&write["kept"]) > 0, "{failure}");
        let pages = write["pages"].as_array().unwrap();
        assert!(pages.iter().any(|page| page[0] == "data"), "{failure}");
        let file = write["files"][0]["file"].as_str().unwrap_or_default();
        assert!(file.starts_with("base/"), "{failure}");
    }
}

#[test]
fn what_a_pgdyno_leaves_that_is_killed_while_it_judges_states_is_removed() {
    needs!(emulates_disks);
    let world = World::new();
    let disk = world.disk();
    let options = "crash --exhaustive --load 200ms --filesystem ext4 --storage";
    let args: Vec<&str> = options.split(' ').chain([disk.to_str().unwrap()]).collect();
    let mut child = world.spawn(&args);
    // The file with what was written over the image is there once a stretch is recorded.
    let is_recorded = || {
        let stacks = fs::read_dir(world.disk()).into_iter().flatten().flatten();
        let mut positions = stacks.map(|stack| stack.path().join("emulated-0/position"));
        positions.any(|position| position.exists())
    };
    world.until("a stretch to be recorded", is_recorded);
    world.until("the server to recover", || !world.servers().is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
    world.run(&["clean"]).exits(0);
    world.assert_gone();
}

#[test]
fn what_is_no_disk_log_and_one_of_another_version_are_told_apart() {
    let world = World::new();
    let other = world.file("other", "{\"pgdyno-disk-log\":9,\"size\":4096}\n");
    world.run(&["disk-log", other.to_str().unwrap()]).exits(1).says("version 9");
    let nothing = world.file("nothing", "a text\n");
    world.run(&["disk-log", nothing.to_str().unwrap()]).says("is no log of an emulated disk");
}

#[test]
fn what_cannot_be_recorded_is_told_before_anything_is_made() {
    let world = World::new();
    let mut told = String::new();
    let apart = "--set storage.disk.wal=\"log\" --set storage.log.filesystem=\"ext4\" \
                 --set storage.log.backing={emulated={size=\"1300MiB\"}}";
    let logged = "--set storage.disk.backing={emulated={size=\"1300MiB\",log=true}}";
    for options in [
        format!("--filesystem ext4 {apart}").as_str(),
        "--filesystem f2fs --jobs 2",
        format!("--filesystem ext4 {logged}").as_str(),
    ] {
        let args: Vec<&str> =
            ["crash", "--exhaustive"].into_iter().chain(options.split(' ')).collect();
        let ended = world.run(&args).with_case(options).exits(1);
        told.push_str(&format!("$ pgdyno crash --exhaustive {options}\n{}\n", ended.err));
    }
    insta::assert_snapshot!(told);
    world.assert_nothing_left();
}

#[test]
fn without_root_no_stretch_is_recorded() {
    needs!(emulates_disks);
    let world = World::new();
    // The account may not enter the folder that the program was built in.
    let program = world.path("pgdyno");
    fs::copy(env!("CARGO_BIN_EXE_pgdyno"), &program).unwrap();
    for folder in ["disk", "home"] {
        fs::create_dir_all(world.path(folder)).unwrap();
        let given = Command::new("chown").arg("postgres:").arg(world.path(folder)).status();
        assert!(given.unwrap().success());
    }
    let ended = Command::new("setpriv")
        .args(["--reuid=postgres", "--regid=postgres", "--clear-groups"])
        .arg(&program)
        .args(["crash", "--exhaustive", "--filesystem", "ext4", "--storage"])
        .arg(world.disk())
        .env("HOME", world.path("home"))
        .env_remove("XDG_DATA_HOME")
        .env_remove("XDG_STATE_HOME")
        .current_dir(world.path("home"))
        .output();
    let ended = support::ended(ended.unwrap());
    assert_eq!((ended.code, ended.out.as_str()), (Some(1), ""), "{}", ended.err);
    ended.says("root").says("help: ");
    world.assert_nothing_left();
}

#[test]
fn the_room_for_the_log_is_told_before_anything_is_made() {
    needs!(emulates_disks);
    let world = World::new();
    let disk = world.disk();
    // Nobody else sees the mount, which goes with its process.
    let mount = "mount -t tmpfs -o size=300M,mode=755 none \"$0\" && \"$@\"; code=$?; \
                 echo \"left: $(ls -A \"$0\").\" >&2; exit $code";
    let mount = format!("{RELEASE_MOUNTS}{mount}");
    let small = ["unshare", "--mount", "sh", "-c", &mount, disk.to_str().unwrap()];
    let load = ["--load", "2500ms", "--filesystem", "ext4", "--storage", disk.to_str().unwrap()];
    let args = [&["crash", "--exhaustive"], load.as_slice()].concat();
    let ended = support::ended(world.wrapped(&small, &args).output().unwrap());
    assert_eq!((ended.code, ended.out.as_str()), (Some(1), ""), "{}", ended.err);
    let place = disk.display();
    assert_contains(
        &ended.err,
        &["the disk log of 3 s of load", &format!("in {place}"), " MB are free", "help: "],
    );
    assert!(ended.err.ends_with("left: .\n"), "{}", ended.err);
    let dry = [args.as_slice(), &["--dry-run"]].concat();
    let planned = support::ended(world.wrapped(&small, &dry).output().unwrap()).exits(0);
    let told = format!("Room in {place}: up to 1.3 GB for the disk log of 3 s of load");
    planned.prints(&told).prints("That is not enough");
    // A run says so before its trials.
    let text = format!(
        "[experiment]\nrepeats = 1\n[answer]\nkind = \"safety\"\n[load]\nduration = \"1s\"\n\
         [storage.disk]\nfilesystem = \"ext4\"\n\
         backing = {{ emulated = {{ size = \"1300MiB\", directory = \"{place}\" }} }}\n\
         [crash]\nfaults = [\"power\"]\nstates = \"flushes\"\nload = \"2500ms\"\n"
    );
    let file = world.file("experiment.toml", &text);
    let args = ["run", file.to_str().unwrap()];
    let ended = support::ended(world.wrapped(&small, &args).output().unwrap()).exits(1);
    ended.says("the disk log of 3 s of load");
    assert!(!ended.err.contains("trial 1"), "{}", ended.err);
    assert!(ended.err.ends_with("left: .\n"), "{}", ended.err);
    world.assert_nothing_left();
}
