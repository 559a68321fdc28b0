//! Emulated disks of the tests' own: real filesystems on them, cut, lying, failing, slow; taken down.
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use common::{Place, RUN};
use pgdyno_host::server_account;
use pgdyno_host::storage::emulated::{
    self, Control, Cut, DiskError, Effect, Hits, Operation, Rule, Selector,
};
use pgdyno_host::storage::{MadeStack, Stack, StorageError, Surroundings, Wipe};
use pgdyno_model::storage::{Backing, EmulatedDisk, FilesystemChoice, Storage};
use pgdyno_model::units::Bytes;

/// Runs only in the process that serves a disk.
#[test]
fn emulated_disk_server() {
    if emulated::is_asked_to_serve() {
        emulated::serve().unwrap();
    }
}

fn emulated(disk: EmulatedDisk, filesystem: &str, mount: &[&str]) -> Storage {
    let mount = mount.iter().map(|&o| o.to_owned()).collect();
    let filesystem = FilesystemChoice { name: filesystem.into(), mount, ..FilesystemChoice::default() };
    Storage { backing: Backing::Emulated(disk), filesystem: Some(filesystem), ..Storage::default() }
}

fn small() -> EmulatedDisk {
    EmulatedDisk { size: Bytes(400 << 20), sector_size: Some(4096), ..EmulatedDisk::default() }
}

/// Makes `storage`; none, and a word about it, where this machine cannot.
fn made(test: &str, storage: &Storage, place: &Place) -> Option<MadeStack> {
    emulated::serve_by(&["--exact", "emulated_disk_server", "--nocapture"]);
    let account = server_account().unwrap();
    let around = Surroundings { default_directory: place.path(), account: &account, wipe: &Wipe::default() };
    match Stack::plan("disk", storage, &around) {
        Ok(stack) => Some(stack.make(&account, &place.journal, &RUN).unwrap()),
        Err(
            e @ (StorageError::NotRoot { .. }
            | StorageError::ToolMissing { .. }
            | StorageError::Fuse { .. }
            | StorageError::Filesystem { .. }),
        ) => {
            // Past the test runner, which captures what passing tests print.
            let cause = std::error::Error::source(&e).map_or_else(String::new, |c| format!(": {c}"));
            let _ = writeln!(std::io::stderr(), "\nskipped: {test}: {e}{cause}");
            None
        }
        Err(e) => panic!("{e:?}"),
    }
}

fn control(made: &MadeStack) -> Control {
    made.disks()[0].control().unwrap()
}

fn write_synced(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    File::open(path.parent().unwrap())?.sync_all()
}

/// Whether anything of the place is still mounted, attached or running.
fn traces(place: &Path) -> Vec<String> {
    let place = place.canonicalize().unwrap();
    let place = place.to_str().unwrap();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mut traces: Vec<String> = mounts.lines().filter(|l| l.contains(place)).map(String::from).collect();
    for device in fs::read_dir("/sys/block").unwrap().flatten() {
        let backing = fs::read_to_string(device.path().join("loop/backing_file")).unwrap_or_default();
        if backing.contains(place) {
            traces.push(format!("{:?} over {backing}", device.file_name()));
        }
    }
    for process in fs::read_dir("/proc").unwrap().flatten() {
        let environment = fs::read(process.path().join("environ")).unwrap_or_default();
        if String::from_utf8_lossy(&environment).contains(&format!("PGDYNO_EMULATED_DISK={place}")) {
            traces.push(format!("process {:?}", process.file_name()));
        }
    }
    traces
}

fn assert_nothing_left(place: &Place) {
    assert_eq!(traces(place.path()), [""; 0]);
    assert!(place.is_clean());
}

const FILESYSTEMS: [&str; 3] = ["ext4", "xfs", "btrfs"];

#[test]
fn an_honest_disk_keeps_what_was_flushed_and_loses_the_rest() {
    for filesystem in FILESYSTEMS {
        let place = Place::new();
        let storage = emulated(small(), filesystem, &[]);
        let test = "an_honest_disk_keeps_what_was_flushed_and_loses_the_rest";
        let Some(mut made) = made(test, &storage, &place) else { return };
        let kept = made.path().join("kept");
        write_synced(&kept, &"kept ".repeat(10_000)).unwrap();
        fs::write(made.path().join("lost"), "lost").unwrap();
        let facts = control(&made).cut(&Cut::default()).unwrap();
        assert!(!facts.torn && facts.rule.is_none(), "{facts:?}");
        write_synced(&made.path().join("after"), "after").unwrap_err();
        made.power_cycle(&RUN).unwrap();
        assert_eq!(fs::read_to_string(&kept).unwrap(), "kept ".repeat(10_000), "{filesystem}");
        assert!(!made.path().join("lost").exists() && !made.path().join("after").exists(), "{filesystem}");
        write_synced(&made.path().join("again"), "again").unwrap();
        assert_eq!(made.take_down(), [""; 0]);
        assert_nothing_left(&place);
    }
}

#[test]
fn a_lying_disk_loses_what_it_acknowledged() {
    for filesystem in FILESYSTEMS {
        let place = Place::new();
        let storage = emulated(small(), filesystem, &[]);
        let Some(mut made) = made("a_lying_disk_loses_what_it_acknowledged", &storage, &place) else {
            return;
        };
        write_synced(&made.path().join("before"), "before").unwrap();
        let mut control = control(&made);
        control.destage().unwrap();
        control.lie(true).unwrap();
        write_synced(&made.path().join("lost"), "acknowledged").unwrap();
        assert!(control.status().unwrap().counters.lies > 0);
        let facts = control.cut(&Cut::default()).unwrap();
        assert!(facts.dropped > 0, "{facts:?}");
        drop(control);
        made.power_cycle(&RUN).unwrap();
        assert_eq!(fs::read_to_string(made.path().join("before")).unwrap(), "before");
        assert!(!made.path().join("lost").exists(), "{filesystem}");
        assert_eq!(made.take_down(), [""; 0]);
        assert_nothing_left(&place);
    }
}

#[test]
fn a_flush_that_fails_reaches_the_caller_of_fsync() {
    for (error, number) in [(DiskError::Eio, 5), (DiskError::Enospc, 28)] {
        let place = Place::new();
        let storage = emulated(small(), "ext4", &[]);
        let Some(made) = made("a_flush_that_fails_reaches_the_caller_of_fsync", &storage, &place) else {
            return;
        };
        let mut control = control(&made);
        let on = Selector::all(Operation::Flush);
        control.arm(&Rule { on, hits: Hits::From(1), effect: Effect::Fail(error) }).unwrap();
        let told = write_synced(&made.path().join("file"), "text").unwrap_err();
        assert!(told.raw_os_error() == Some(number) || told.raw_os_error() == Some(5), "{told}");
        assert!(control.status().unwrap().counters.failed > 0);
        drop(control);
        assert_eq!(made.take_down(), [""; 0]);
        assert_nothing_left(&place);
    }
}

#[test]
fn a_disk_whose_process_was_killed_is_taken_down() {
    let place = Place::new();
    let storage = emulated(small(), "ext4", &[]);
    let Some(made) = made("a_disk_whose_process_was_killed_is_taken_down", &storage, &place) else { return };
    write_synced(&made.path().join("file"), "text").unwrap();
    let server = fs::read_to_string(made.disks()[0].directory.join("server.json")).unwrap();
    let server: serde_json::Value = serde_json::from_str(&server).unwrap();
    let pid = i32::try_from(server["pid"].as_i64().unwrap()).unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    write_synced(&made.path().join("after"), "text").unwrap_err();
    assert_eq!(made.take_down(), [""; 0]);
    assert_nothing_left(&place);
}

#[test]
fn a_cut_is_made_at_the_very_flush_that_it_is_aimed_at() {
    let place = Place::new();
    let storage = emulated(small(), "ext4", &[]);
    let Some(mut made) = made("a_cut_is_made_at_the_very_flush_that_it_is_aimed_at", &storage, &place) else {
        return;
    };
    let mut control = control(&made);
    let before = control.status().unwrap().counters.flushes;
    let on = Selector::all(Operation::Flush);
    let cut = Effect::Cut(Cut::default());
    let rule = control.arm(&Rule { on, hits: Hits::Nth(5), effect: cut }).unwrap();
    let mut written = Vec::new();
    for n in 0..20 {
        let path = made.path().join(format!("file-{n}"));
        match write_synced(&path, "text") {
            Ok(()) => written.push(path),
            Err(_) => break,
        }
    }
    let facts = control.wait_for_cut(Duration::from_secs(10), &RUN).unwrap().unwrap();
    assert_eq!((facts.rule, facts.after_flushes), (Some(rule), before + 4));
    drop(control);
    made.power_cycle(&RUN).unwrap();
    assert!(!written.is_empty() && written.iter().all(|path| path.exists()), "{written:?}");
    assert_eq!(made.take_down(), [""; 0]);
    assert_nothing_left(&place);
}
