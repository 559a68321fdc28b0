//! Probes of a storage: measured, stored, shown, and gone from the disk however they end.

use crate::support::{self, World, ended, finish, is_root, signal};
use pgdyno_test_support::{RELEASE_MOUNTS, assert_contains, needs};

#[test]
fn an_fsync_probe_is_stored_and_shown_again() {
    let world = World::new();
    let disk: &str = &world.disk().display().to_string();
    let probed =
        world.run(&["fsync", disk, "--duration", "10ms", "--block-size", "16k", "--json"]).exits(0);
    let view = probed.json();
    assert_eq!((&view["name"], &view["result"]["block_bytes"]), (&disk.into(), &16384.into()));
    assert_eq!(view["result"]["tests"].as_array().unwrap().len(), 25);
    assert!(
        view["host"]["cpus"].as_u64().unwrap() > 0 && view["storage"]["filesystem"].is_string()
    );
    world.assert_nothing_left();

    let listed = world.run(&["list", "--probes", "--json"]).json();
    let id = listed[0]["id"].as_str().unwrap();
    assert_eq!((listed.as_array().unwrap().len(), &view["id"]), (1, &id.into()));
    assert_eq!(world.show(id), view);
    let page = world.page(&[id]);
    assert_eq!((&page["kind"], &page["view"]["result"]), (&"probe".into(), &view["result"]));
    let written = world.run(&["report", id]);
    let file = world.path("data/pgdyno/reports").join(format!("{id}.html"));
    assert_eq!(written.out, format!("report of {id}: {}\n", file.display()));
    let page = world.run(&["show", "fsync-"]).out;
    assert!(page.contains("One 16kB write") && page.contains("Ceiling for commits"), "{page}");
    assert!(world.run(&["list"]).out.contains(id));
}

#[test]
fn a_disk_probe_shows_its_steps_first_and_leaves_nothing() {
    let world = World::new();
    let disk: &str = &world.disk().display().to_string();
    let args = ["disk", disk, "--builtin", "--size", "48MiB", "--duration", "10ms"];
    world.run(&[&args[..], &["--dry-run"]].concat()).prints("randrw of").prints("takes 310ms");
    assert!(world.run(&["list", "--probes", "--json"]).json().as_array().unwrap().is_empty());
    world.run(&args).exits(0).prints("queue depth 64").prints("simpler than fio");
    world.assert_nothing_left();
}

/// Linux's bit in the flags of an open file.
const O_DSYNC: u32 = 0o10000;

/// The flags of each file of the world's disk that the process has open.
fn opened_with(world: &World, pid: u32) -> impl Iterator<Item = u32> {
    let disk = world.disk().canonicalize().unwrap();
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    open.filter_map(move |descriptor| {
        let file = std::fs::read_link(descriptor.path()).ok()?;
        let number = descriptor.file_name().into_string().unwrap();
        let facts = std::fs::read_to_string(format!("/proc/{pid}/fdinfo/{number}")).ok()?;
        let flags = facts.lines().find_map(|line| line.strip_prefix("flags:"))?.trim().to_owned();
        (file.starts_with(&disk) && file.is_file()).then(|| u32::from_str_radix(&flags, 8).unwrap())
    })
}

#[test]
fn a_signal_prints_what_was_measured_and_a_kill_leaves_what_the_next_start_removes() {
    let world = World::new();
    let disk = world.disk();
    let args = ["fsync", disk.to_str().unwrap(), "--duration", "300ms"];
    let child = world.spawn(&args);
    world.until("the files to be made", || std::fs::read_dir(world.disk()).unwrap().count() == 1);
    let files = || world.left_behind().iter().any(|p| p.join("64").exists());
    world.until("all files to be made", files);
    // The first test writes with O_DSYNC and the next one without, of 7 s together.
    let pid = child.id();
    world.until("the first test", || opened_with(&world, pid).any(|flags| flags & O_DSYNC != 0));
    world.until("the next test", || opened_with(&world, pid).any(|flags| flags & O_DSYNC == 0));
    signal(pid.cast_signed(), "INT");
    let stopped = finish(child).exits(130);
    // Lines are broken where they are too long.
    let said = stopped.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("not complete") && said.contains("open_datasync"), "{}", stopped.out);
    world.assert_nothing_left();

    let mut child = world.spawn(&args);
    world.until("the files to be made", files);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(world.left_behind().len(), 2, "its directory and its journal entry");
    world
        .run(&["fsync", disk.to_str().unwrap(), "--duration", "1ms"])
        .says("left behind by a killed pgdyno");
    world.assert_nothing_left();
}

#[test]
fn a_run_probes_its_storages_before_and_after_its_trials() {
    let world = World::new();
    let sets = [
        "probe.before=[\"fsync\"]",
        "probe.after=[\"fsync\",\"disk\"]",
        "probe.duration=10ms",
        "probe.size=48MiB",
    ];
    let args = support::quick(&world, "quickstart", &[&sets[..], &support::ONE_TRIAL].concat());
    let planned = world.run(&[&args[..], &["--dry-run".to_owned()]].concat());
    let words = planned.out;
    assert_contains(&words, &["Before the first trial", "over a file of 50.3 MB"]);
    // Without fio, whose start takes longer than its work here: pgdyno then offers the disk a load
    // of its own.
    let ended = ended(world.command(&args).env("PATH", "/usr/sbin").output().unwrap()).exits(0);
    let runs = world.run(&["list", "--json"]).json();
    let run = runs[0]["id"].as_str().unwrap();
    let view = world.show(run);
    let probes = view["probes"].as_array().unwrap();
    let seen: Vec<_> =
        probes.iter().map(|p| (&p["kind"], p["attempts_before"].as_u64().unwrap() > 0)).collect();
    assert_eq!(
        seen,
        [(&"fsync".into(), false), (&"fsync".into(), true), (&"disk".into(), true)],
        "{probes:?}"
    );
    assert!(probes[0]["flushes_per_second"].as_f64().unwrap() > 0.0, "{probes:?}");
    assert!(probes[2]["randread_iops"].as_f64().unwrap() > 0.0, "{probes:?}");
    let id = probes[2]["id"].as_str().unwrap();
    assert_eq!(world.show(id)["run"], run);
    ended.prints("before the first trial").prints(id);
    world.assert_nothing_left();
}

#[test]
fn what_cannot_be_probed_is_told_and_not_stored() {
    let world = World::new();
    let told = |args: &[&str]| {
        let ended = world.run(args).exits(1);
        ended.err
    };
    assert!(told(&["fsync", "nowhere"]).contains("help: name a directory that exists"));
    assert!(told(&["disk", "nowhere"]).contains("nowhere"));
    world.file("file", "x");
    assert!(told(&["disk", "file"]).contains("neither a directory nor a block device"));
    assert!(told(&["fsync", "disk", "--duration", "0s"]).contains("no time"));
    assert!(told(&["disk", "disk", "--size", "4"]).contains("4GB"));
    assert!(told(&["disk", "disk", "--size", "1MiB"]).contains("--size"));
    assert!(told(&["disk", "disk", "--size", "900TB"]).contains("are free"));
    assert!(world.run(&["list", "--probes", "--json"]).json().as_array().unwrap().is_empty());
    world.assert_nothing_left();
}

#[test]
fn a_filesystem_that_counts_no_room_is_not_full() {
    needs!(is_root);
    let world = World::new();
    let disk: &str = &world.disk().display().to_string();
    let mount = format!("{RELEASE_MOUNTS}mount -t ramfs none \"$0\" && exec \"$@\"");
    let wrapper = ["unshare", "--mount", "sh", "-c", &mount, disk];
    let args = ["fsync", disk, "--duration", "5ms", "--json"];
    let probed = ended(world.wrapped(&wrapper, &args).output().unwrap()).exits(0);
    assert_eq!(probed.json()["storage"]["filesystem"], "ramfs");
}
