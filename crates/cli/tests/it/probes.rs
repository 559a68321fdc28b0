//! Probes of a storage: measured, stored, shown, and gone from the disk however they end.

use crate::support;
use crate::support::{World, ended, is_root, signal};
use pgdyno_test_support::{RELEASE_MOUNTS, needs};

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn an_fsync_probe_is_stored_and_shown_again() {
    let world = World::new();
    let disk = world.disk();
    let disk = disk.to_str().unwrap();
    let probed = world.run(&["fsync", disk, "--duration", "10ms", "--block-size", "16k", "--json"]);
    assert_eq!(probed.code, Some(0), "{}", probed.err);
    let view = json(&probed.out);
    assert_eq!((&view["name"], &view["result"]["block_bytes"]), (&disk.into(), &16384.into()));
    assert_eq!(view["result"]["tests"].as_array().unwrap().len(), 25);
    assert!(
        view["host"]["cpus"].as_u64().unwrap() > 0 && view["storage"]["filesystem"].is_string()
    );
    world.assert_nothing_left();

    let listed = json(&world.run(&["list", "--probes", "--json"]).out);
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
    let disk = world.disk();
    let disk = disk.to_str().unwrap();
    let args = ["disk", disk, "--builtin", "--size", "48MiB", "--duration", "10ms"];
    let planned = world.run(&[&args[..], &["--dry-run"]].concat());
    assert!(
        planned.out.contains("randrw of") && planned.out.contains("takes 310ms"),
        "{}",
        planned.out
    );
    assert!(json(&world.run(&["list", "--probes", "--json"]).out).as_array().unwrap().is_empty());
    let probed = world.run(&args);
    assert_eq!(probed.code, Some(0), "{}", probed.err);
    assert!(
        probed.out.contains("queue depth 64") && probed.out.contains("simpler than fio"),
        "{}",
        probed.out
    );
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
    let stopped = ended(child.wait_with_output().unwrap());
    assert_eq!(stopped.code, Some(130), "{}", stopped.err);
    // Lines are broken where they are too long.
    let said = stopped.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("not complete") && said.contains("open_datasync"), "{}", stopped.out);
    world.assert_nothing_left();

    let mut child = world.spawn(&args);
    world.until("the files to be made", files);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(world.left_behind().len(), 2, "its directory and its journal entry");
    let again = world.run(&["fsync", disk.to_str().unwrap(), "--duration", "1ms"]);
    assert!(again.err.contains("left behind by a killed pgdyno"), "{}", again.err);
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
    assert!(
        words.contains("Before the first trial") && words.contains("over a file of 50.3 MB"),
        "{words}"
    );
    // Without fio, whose start takes longer than its work here: pgdyno then offers the disk a load
    // of its own.
    let ended = ended(world.command(&args).env("PATH", "/usr/sbin").output().unwrap());
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let runs = json(&world.run(&["list", "--json"]).out);
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
    assert!(
        ended.out.contains("before the first trial") && ended.out.contains(id),
        "{}",
        ended.out
    );
    world.assert_nothing_left();
}

#[test]
fn what_cannot_be_probed_is_told_and_not_stored() {
    let world = World::new();
    let told = |args: &[&str]| {
        let ended = world.run(args);
        assert_eq!(ended.code, Some(1), "{}", ended.err);
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
    assert!(json(&world.run(&["list", "--probes", "--json"]).out).as_array().unwrap().is_empty());
    world.assert_nothing_left();
}

#[test]
fn a_filesystem_that_counts_no_room_is_not_full() {
    needs!(is_root);
    let world = World::new();
    let disk = world.disk();
    let disk = disk.to_str().unwrap();
    let mount = format!("{RELEASE_MOUNTS}mount -t ramfs none \"$0\" && exec \"$@\"");
    let wrapper = ["unshare", "--mount", "sh", "-c", &mount, disk];
    let args = ["fsync", disk, "--duration", "5ms", "--json"];
    let probed = ended(world.wrapped(&wrapper, &args).output().unwrap());
    assert_eq!(probed.code, Some(0), "{}", probed.err);
    assert_eq!(json(&probed.out)["storage"]["filesystem"], "ramfs");
}
