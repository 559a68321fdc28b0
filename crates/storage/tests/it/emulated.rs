//! Emulated disks of the tests' own: real filesystems on them, cut, lying, failing, slow; taken
//! down.
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::common::stacks::on;
use crate::common::{Place, RUN, is_lacking, traces};
use crate::storage::start_server;
use pgdyno_emulated_disk as emulated;
use pgdyno_emulated_disk::{
    Control, Cut, DiskError, DiskLog, Effect, EventKind, Hits, Operation, Rule, Selector, TearUnit,
    image_at,
};
use pgdyno_exec::account::server_account;
use pgdyno_exec::image::LoopDevice;
use pgdyno_exec::mount::Mount;
use pgdyno_exec::undo::Undo;
use pgdyno_exec::{ExecContext, Executor as _, Step};
use pgdyno_model::crash::Fsck;
use pgdyno_model::storage::{Backing, DeviceSettings, DiskLatency, EmulatedDisk, Raid0, Storage};
use pgdyno_model::units::{Bytes, Span};
use pgdyno_postgres::cluster::cluster_directory;
use pgdyno_storage::probe::fsync_rate;
use pgdyno_storage::{MountedStack, Stack, StorageError, Surroundings, Wipe};
use pgdyno_test_support::test_name;

/// Runs only in the process that serves a disk.
#[test]
fn emulated_disk_server() {
    if emulated::is_asked_to_serve() {
        emulated::serve().unwrap();
    }
}

fn emulated(disk: EmulatedDisk, filesystem: &str, mount: &[&str]) -> Storage {
    let mount = mount.iter().map(|&o| o.to_owned()).collect();
    let mut storage = on(Backing::Emulated(disk), filesystem);
    storage.filesystem.as_mut().unwrap().mount = mount;
    storage
}

fn small() -> EmulatedDisk {
    EmulatedDisk { size: Bytes(400 << 20), sector_size: Some(4096), ..EmulatedDisk::default() }
}

/// Makes `storage`; none, and a word about it, where this machine cannot.
fn made(test: &str, storage: &Storage, place: &Place) -> Option<MountedStack> {
    emulated::serve_by(&["--exact", "emulated::emulated_disk_server", "--nocapture"]);
    let account = server_account().unwrap();
    let around =
        Surroundings { default_directory: place.path(), account: &account, wipe: &Wipe::default() };
    match Stack::plan("disk", storage, &around) {
        Ok(stack) => Some(stack.make(&account, &place.journal, &RUN).unwrap()),
        Err(e) if is_lacking(test, &e) => None,
        Err(e) => panic!("{e:?}"),
    }
}

/// Makes `filesystem` on an emulated disk in a place of its own; none where that cannot be.
fn mounted(test: &str, filesystem: &str) -> Option<(Place, MountedStack)> {
    let place = Place::new();
    let made = made(test, &emulated(small(), filesystem, &[]), &place)?;
    Some((place, made))
}

/// Takes `made` down, and asserts that nothing of it is left.
fn assert_taken_down(made: MountedStack, place: &Place) {
    assert_eq!(made.take_down(), [""; 0]);
    assert_nothing_left(place);
}

fn control(made: &MountedStack) -> Control {
    made.disks()[0].control().unwrap()
}

fn write_synced(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    File::open(path.parent().unwrap())?.sync_all()
}

fn assert_nothing_left(place: &Place) {
    assert_eq!(traces(place.path()), [""; 0]);
    assert!(place.is_clean());
}

const FILESYSTEMS: [&str; 3] = ["ext4", "xfs", "btrfs"];

#[test]
fn an_honest_disk_keeps_what_was_flushed_and_loses_the_rest() {
    for filesystem in FILESYSTEMS {
        // A `sync` of any process on the machine flushes the rest too.
        let is_left_alone = |_| {
            let place = Place::new();
            let storage = emulated(small(), filesystem, &[]);
            made(test_name!(), &storage, &place).is_none_or(|made| {
                let is_left_alone = loses_the_rest(filesystem, made);
                assert_nothing_left(&place);
                is_left_alone
            })
        };
        assert!((0..10).any(is_left_alone), "{filesystem}: flushed by others each time");
    }
}

/// Cuts the power of `made`, asserts that what was flushed is kept, and returns whether nobody else
/// flushed the disk. If so, asserts that the rest is lost.
fn loses_the_rest(filesystem: &str, mut made: MountedStack) -> bool {
    let flushes = |made: &MountedStack| control(made).status().unwrap().counters.flushes;
    let kept = made.path().join("kept");
    write_synced(&kept, &"kept ".repeat(10_000)).unwrap();
    let flushed = flushes(&made);
    fs::write(made.path().join("lost"), "lost").unwrap();
    let before = Instant::now();
    let facts = control(&made).cut(&Cut::default()).unwrap();
    let is_left_alone = flushes(&made) == flushed;
    assert!(!facts.torn && facts.rule.is_none(), "{facts:?}");
    // The disk's process told when, and that is within this one's call.
    let at = facts.at.to_instant().unwrap();
    assert!(before <= at + Duration::from_secs(10) && at <= Instant::now(), "{facts:?}");
    let done = facts.flushes.done.unwrap();
    assert!(done.began < done.completed && done.completed <= facts.at, "{facts:?}");
    write_synced(&made.path().join("after"), "after").unwrap_err();
    made.power_cycle(&RUN).unwrap();
    assert_eq!(fs::read_to_string(&kept).unwrap(), "kept ".repeat(10_000), "{filesystem}");
    assert!(!made.path().join("after").exists(), "{filesystem}");
    assert!(!is_left_alone || !made.path().join("lost").exists(), "{filesystem}");
    let found = made.fsck(Duration::from_secs(60), &RUN).unwrap();
    assert!(matches!(found, Fsck::Clean { .. }), "{filesystem}: {found:?}");
    assert_eq!(fs::read_to_string(&kept).unwrap(), "kept ".repeat(10_000), "{filesystem}");
    write_synced(&made.path().join("again"), "again").unwrap();
    assert_eq!(made.take_down(), [""; 0]);
    is_left_alone
}

#[test]
fn a_lying_disk_loses_what_it_acknowledged() {
    for filesystem in FILESYSTEMS {
        let Some((place, mut made)) = mounted(test_name!(), filesystem) else { return };
        write_synced(&made.path().join("before"), "before").unwrap();
        let mut control = control(&made);
        control.begin_baseline().unwrap();
        control.lie(true).unwrap();
        write_synced(&made.path().join("lost"), "acknowledged").unwrap();
        assert!(control.status().unwrap().counters.lies > 0);
        let facts = control.cut(&Cut::default()).unwrap();
        assert!(facts.dropped > 0, "{facts:?}");
        drop(control);
        made.power_cycle(&RUN).unwrap();
        assert_eq!(fs::read_to_string(made.path().join("before")).unwrap(), "before");
        assert!(!made.path().join("lost").exists(), "{filesystem}");
        assert_taken_down(made, &place);
    }
}

#[test]
fn a_flush_that_fails_reaches_the_caller_of_fsync() {
    for (error, number) in [(DiskError::Eio, 5), (DiskError::Enospc, 28)] {
        let Some((place, made)) = mounted(test_name!(), "ext4") else { return };
        let mut control = control(&made);
        let on = Selector::all(Operation::Flush);
        control.arm(&Rule { on, hits: Hits::From(1), effect: Effect::Fail(error) }).unwrap();
        let told = write_synced(&made.path().join("file"), "text").unwrap_err();
        // The filesystem is read-only already where the kernel's own flush came first.
        let read_only = rustix::io::Errno::ROFS.raw_os_error();
        let known = [number, 5, read_only].map(Some);
        assert!(known.contains(&told.raw_os_error()), "{told}");
        assert!(control.status().unwrap().counters.failed > 0);
        drop(control);
        assert_taken_down(made, &place);
    }
}

#[test]
fn a_disk_whose_process_was_killed_is_taken_down() {
    let Some((place, made)) = mounted(test_name!(), "ext4") else { return };
    write_synced(&made.path().join("file"), "text").unwrap();
    let server = fs::read_to_string(made.disks()[0].directory.join("server.json")).unwrap();
    let server: serde_json::Value = serde_json::from_str(&server).unwrap();
    let pid = i32::try_from(server["pid"].as_i64().unwrap()).unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    write_synced(&made.path().join("after"), "text").unwrap_err();
    assert_taken_down(made, &place);
}

#[test]
fn a_cut_is_made_at_the_very_flush_that_it_is_aimed_at() {
    let Some((place, mut made)) = mounted(test_name!(), "ext4") else { return };
    let mut control = control(&made);
    let before = control.status().unwrap().counters.flushes;
    let on = Selector::all(Operation::Flush);
    let cut = Effect::Cut(Cut::default());
    let rule = control.arm(&Rule { on, hits: Hits::Nth(5), effect: cut }).unwrap();
    // A `sync` of another process flushes too.
    let armed = control.status().unwrap().counters.flushes;
    let mut written = Vec::new();
    for n in 0..20 {
        let path = made.path().join(format!("file-{n}"));
        match write_synced(&path, "text") {
            Ok(()) => written.push(path),
            Err(_) => break,
        }
    }
    let facts = control.wait_for_cut(Duration::from_secs(10), &RUN).unwrap().unwrap();
    assert_eq!(facts.rule, Some(rule));
    assert!((before + 4..=armed + 4).contains(&facts.after_flushes), "{before} {armed} {facts:?}");
    drop(control);
    made.power_cycle(&RUN).unwrap();
    assert!(!written.is_empty() && written.iter().all(|path| path.exists()), "{written:?}");
    assert_taken_down(made, &place);
}

#[test]
fn whatever_part_of_the_cache_survives_what_was_flushed_is_there() {
    for (seed, filesystem) in (1..).zip(FILESYSTEMS.repeat(3)) {
        let place = Place::new();
        let storage = emulated(EmulatedDisk { seed, ..small() }, filesystem, &[]);
        let Some(mut made) = made(test_name!(), &storage, &place) else { return };
        for n in 0..20 {
            write_synced(&made.path().join(format!("kept-{n}")), &n.to_string()).unwrap();
            // Of these the kernel writes some, and flushes none for their own sake.
            fs::write(made.path().join(format!("other-{n}")), "other ".repeat(20_000)).unwrap();
        }
        let cut = Cut { survives: 0.5, tear: Some(TearUnit::Bytes4096) };
        let facts = control(&made).cut(&cut).unwrap();
        made.power_cycle(&RUN).unwrap();
        for n in 0..20 {
            let found = fs::read_to_string(made.path().join(format!("kept-{n}")));
            assert_eq!(found.unwrap(), n.to_string(), "{filesystem}, seed {seed}: {facts:?}");
        }
        assert_taken_down(made, &place);
    }
}

#[test]
fn a_volume_over_two_disks_comes_back_with_its_settings() {
    let place = Place::new();
    let members = vec![Backing::Emulated(small()), Backing::Emulated(small())];
    let device = DeviceSettings { read_ahead_kb: Some(64), ..DeviceSettings::default() };
    let storage = emulated(small(), "btrfs", &[]);
    let backing = Backing::Raid0(Raid0 { members, by: None, chunk: None });
    let storage = Storage { backing, device, ..storage };
    let Some(mut made) = made(test_name!(), &storage, &place) else { return };
    write_synced(&made.path().join("kept"), "kept").unwrap();
    for disk in made.disks() {
        disk.control().unwrap().cut(&Cut::default()).unwrap();
    }
    made.power_cycle(&RUN).unwrap();
    assert_eq!(fs::read_to_string(made.path().join("kept")).unwrap(), "kept");
    let facts = made.facts(false).unwrap();
    assert_eq!(facts.devices.len(), 2);
    assert!(facts.settings.iter().all(|(_, value)| value == "64"), "{:?}", facts.settings);
    assert!(facts.notes[0].contains("no real device"), "{:?}", facts.notes);
    assert_taken_down(made, &place);
}

#[test]
fn power_comes_back_only_when_nothing_has_the_disk_open() {
    let Some((place, made)) = mounted(test_name!(), "ext4") else { return };
    let mut control = control(&made);
    control.cut(&Cut::default()).unwrap();
    let refused = control.power_on().unwrap_err();
    assert!(refused.to_string().contains("still open"), "{refused}");
    assert!(!control.status().unwrap().powered);
    drop(control);
    assert_taken_down(made, &place);
}

#[test]
fn a_filesystem_in_use_is_not_taken_for_one_that_does_not_mount() {
    let Some((place, mut made)) = mounted(test_name!(), "ext4") else { return };
    let held = File::create(made.path().join("held")).unwrap();
    let refused = made.power_cycle(&RUN).unwrap_err();
    assert!(matches!(refused, StorageError::Remount { .. }), "{refused:?}");
    drop(held);
    made.power_cycle(&RUN).unwrap();
    assert_taken_down(made, &place);
}

#[test]
fn a_read_that_fails_and_a_write_that_finds_no_room_reach_the_caller() {
    let Some((place, made)) = mounted(test_name!(), "ext4") else { return };
    let path = made.path().join("file");
    write_synced(&path, &"text ".repeat(1000)).unwrap();
    let mut control = control(&made);
    let every = |operation, error| {
        let on = Selector::all(operation);
        Rule { on, hits: Hits::From(1), effect: Effect::Fail(error) }
    };
    let reads = control.arm(&every(Operation::Read, DiskError::Eio)).unwrap();
    rustix::fs::fadvise(File::open(&path).unwrap(), 0, None, rustix::fs::Advice::DontNeed).unwrap();
    assert_eq!(fs::read(&path).unwrap_err().raw_os_error(), Some(5));
    control.disarm(reads).unwrap();
    assert_eq!(fs::read(&path).unwrap().len(), 5000);
    // A disk that is full, as one of a thin pool: to the filesystem an error of its device.
    control.arm(&every(Operation::Write, DiskError::Enospc)).unwrap();
    let told = write_synced(&made.path().join("more"), "text").unwrap_err();
    assert!([Some(5), Some(28), Some(30)].contains(&told.raw_os_error()), "{told}");
    assert!(control.status().unwrap().counters.failed >= 2);
    drop(control);
    assert_taken_down(made, &place);
}

#[test]
fn the_write_log_gives_a_filesystem_as_it_was_after_each_flush() {
    let place = Place::new();
    let disk = EmulatedDisk { log: true, ..small() };
    let storage = emulated(disk.clone(), "ext4", &[]);
    let Some(made) = made(test_name!(), &storage, &place) else { return };
    let mut control = control(&made);
    let mut durable_after = Vec::new();
    for n in 0..6 {
        write_synced(&made.path().join(format!("file-{n}")), "text").unwrap();
        durable_after.push(control.status().unwrap().events);
    }
    let log = place.path().join("writes");
    fs::copy(control.log().unwrap(), &log).unwrap();
    drop(control);
    assert_eq!(made.take_down(), [""; 0]);
    let is_flush = |kind: &EventKind| matches!(kind, EventKind::Flush { .. });
    let events = DiskLog::read(&log).unwrap().events.into_iter();
    let flushed: Vec<u64> = events.filter(|e| is_flush(&e.kind)).map(|e| e.number).collect();
    let last = flushed.iter().rev().take(8).copied().collect::<Vec<_>>();
    for n in last {
        let image = place.path().join(format!("image-{n}"));
        if !image.exists() {
            image_at(&log, n, &image).unwrap();
        }
        let link = place.path().join("device");
        let device = LoopDevice {
            image: image.clone(),
            link: link.clone(),
            sector_size: Some(4096),
            direct_io: true,
            offset: None,
        };
        let target = place.path().join("mnt");
        fs::create_dir(&target).unwrap();
        let mount = Mount {
            filesystem: "ext4".into(),
            source: link,
            target: target.clone(),
            options: vec![],
        };
        let mut performing = ExecContext { journal: &place.journal, stop: &RUN, made: Vec::new() };
        for step in [Step::AttachLoop(device.clone()), Step::Mount(mount.clone())] {
            performing.execute(&step).unwrap();
        }
        let there = (0..6).filter(|n| target.join(format!("file-{n}")).exists()).count();
        let due = durable_after.iter().filter(|after| **after <= n).count();
        let (filesystem, source, target_of) = (mount.filesystem, mount.source, mount.target);
        let unmount = Undo::Unmount { target: target_of, filesystem, source };
        let detach = Undo::DetachLoop { image: device.image, link: device.link };
        for undo in [unmount, detach] {
            performing.execute(&Step::Undo(undo)).unwrap();
        }
        fs::remove_dir(target).unwrap();
        fs::remove_file(image).unwrap();
        assert!(there >= due, "after flush {n} there are {there} files, and {due} were durable");
    }
    fs::remove_file(log).unwrap();
    assert_nothing_left(&place);
}

/// A latency that dwarfs what the emulation adds.
const INJECTED: Duration = Duration::from_millis(40);

#[test]
fn an_injected_latency_is_what_fsync_and_commits_wait_for() {
    let Some((place, made)) = mounted(test_name!(), "ext4") else { return };
    let directory = cluster_directory(&made.path()).unwrap();
    let cluster = start_server(directory, place.path(), &place.journal);
    let mut client = cluster.control("postgres").unwrap();
    client.batch_execute("CREATE TABLE t (n int); CHECKPOINT").unwrap();
    let for_ = Duration::from_millis(400);
    // The fastest of several: a busy machine adds to each, and seldom to all.
    let flush = || {
        let rate = fsync_rate("disk", &made.path(), for_, &place.journal, &RUN).unwrap();
        Duration::from_secs_f64(rate.latency.quantile_us(0.0).unwrap() / 1e6)
    };
    let mut commits = || {
        let commit = || {
            let began = Instant::now();
            client.execute("INSERT INTO t VALUES (1)", &[]).unwrap();
            began.elapsed()
        };
        std::iter::repeat_with(commit).take(10).min().unwrap()
    };
    let without = (flush(), commits());
    let mut control = control(&made);
    control.set_latency(&DiskLatency { flush: Span(INJECTED), ..DiskLatency::default() }).unwrap();
    let with = (flush(), commits());
    control.set_latency(&DiskLatency::default()).unwrap();
    // Each waits for one flush at least.
    for (without, with) in [(without.0, with.0), (without.1, with.1)] {
        assert!(with >= INJECTED, "without {without:?}, with {with:?}");
    }
    drop((control, client));
    cluster.remove().unwrap();
    assert_taken_down(made, &place);
}

#[test]
fn waits_overlap_unless_the_disk_serves_one_at_a_time() {
    let Some((place, made)) = mounted(test_name!(), "ext4") else { return };
    let mut control = control(&made);
    let mut took = |parallel: Option<u32>| {
        let parallel = parallel.and_then(std::num::NonZeroU32::new);
        control
            .set_latency(&DiskLatency { read: Span(INJECTED), parallel, ..DiskLatency::default() })
            .unwrap();
        let file = File::open(made.disks()[0].file()).unwrap();
        let next = AtomicU32::new(0);
        let began = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let n = u64::from(next.fetch_add(1, Ordering::Relaxed));
                    file.read_exact_at(&mut [0; 4096], n * 4096).unwrap();
                });
            }
        });
        began.elapsed()
    };
    let alone = took(Some(1));
    assert!(alone >= 8 * INJECTED, "{alone:?}");
    // The fastest of several: what a busy machine adds may hide that the waits overlapped.
    let together = std::iter::repeat_with(|| took(None)).take(5).min().unwrap();
    assert!(together >= INJECTED && together < alone, "{together:?}, one by one {alone:?}");
    drop(control);
    assert_taken_down(made, &place);
}
