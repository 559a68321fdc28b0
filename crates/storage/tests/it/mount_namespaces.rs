//! Alone, because a mount namespace holds the mounts of every test that runs beside it.
//!
//! Mount namespaces of others that hold a filesystem of pgdyno's, or a device that is to be written.
//! The tests go one at a time.
#![allow(clippy::unwrap_used, reason = "tests and their helpers fail by panicking")]

#[path = "it/common/mod.rs"]
#[allow(dead_code, reason = "the other program uses the rest")]
mod common;

use std::fs;
use std::process::{Child, Command};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use common::disks::{Disk, Running, run};
use common::stacks::{assert_nothing_left, can, loop_file, on, plan};
use common::{Place, RUN};
use pgdyno_exec::account::server_account;
use pgdyno_storage::{StorageError, Wipe};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A mount namespace of its own that somebody else has made, with all mounts there are.
struct Namespace(Child);

impl Namespace {
    fn new() -> Self {
        let mut child = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-c", "echo made; exec sleep 600"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut said = std::io::BufReader::new(child.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut said, &mut line).unwrap();
        assert_eq!(line, "made\n");
        Self(child)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_filesystem_that_another_mount_namespace_holds_is_not_mounted_again_as_if_it_were_new() {
    let test =
        "a_filesystem_that_another_mount_namespace_holds_is_not_mounted_again_as_if_it_were_new";
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let place = Place::new();
    let storage = on(loop_file(place.path()), "ext4");
    if !can(test, &storage, place.path()) {
        return;
    }
    let stack = plan(&storage, place.path(), &Wipe::default()).unwrap();
    let mut made = stack.make(&server_account().unwrap(), &place.journal, &RUN).unwrap();
    let namespace = Namespace::new();
    pgdyno_storage::fault::PowerSwitch::of(&made).unwrap().cut().unwrap();
    let refused = made.unmount().unwrap_err();
    assert!(matches!(refused, StorageError::NotReleased { .. }), "{refused:?}");
    drop(namespace);
    made.mount(&RUN).unwrap();
    fs::write(made.path().join("file"), "what was cut takes writes again").unwrap();
    assert_eq!(made.take_down(), [""; 0]);
    assert_nothing_left(&place);
}

#[test]
fn a_device_that_is_mounted_in_another_mount_namespace_is_refused() {
    if !common::disks::can("a_device_that_is_mounted_in_another_mount_namespace_is_refused") {
        return;
    }
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let place = Place::new();
    let disk = Disk::new(&place, "disk", &[]);
    run("mkfs.ext4", &["-q", disk.path()]);
    let point = place.path().join("elsewhere");
    fs::create_dir(&point).unwrap();
    let mut child = Command::new("unshare");
    child.args(["--mount", "sh", "-c", "mount -o ro \"$1\" \"$2\" && exec sleep 600", "sh"]);
    let child = Running(child.arg(&disk.device).arg(&point).spawn().unwrap());
    let until = Instant::now() + Duration::from_secs(60);
    let mounts = format!("/proc/{}/mountinfo", child.0.id());
    while !fs::read_to_string(&mounts).unwrap().contains("/elsewhere ") {
        assert!(Instant::now() < until, "nothing was mounted");
        std::thread::sleep(Duration::from_millis(10));
    }
    let error = disk.refused(&disk.wipe());
    assert!(error.to_string().contains(&format!("(seen by process {})", child.0.id())), "{error}");
}
