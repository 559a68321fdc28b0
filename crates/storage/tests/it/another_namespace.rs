//! Mount namespaces of others that hold a filesystem of pgdyno's, or a device that is to be
//! written.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::disks::{Disk, Running, run};
use crate::common::stacks::{assert_nothing_left, can, loop_file, make, on};
use crate::common::{self, Place, RUN};
use pgdyno_exec::mount::{Mount, unmount};
use pgdyno_storage::StorageError;
use pgdyno_test_support::{RELEASE_MOUNTS, needs, wait_for, zfs};

/// A process in a mount namespace that somebody else has made, with no mount but that at `kept`.
fn namespace_with(kept: &Path) -> Running {
    // For a moment it has all mounts.
    let _no_pools = zfs::keep_away();
    let mut child = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c"])
        .arg(format!("{RELEASE_MOUNTS}echo made; exec sleep 600"))
        .env("KEPT_MOUNT", kept)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    said.read_line(&mut line).unwrap();
    assert_eq!(line, "made\n");
    Running(child)
}

#[test]
fn a_filesystem_that_another_mount_namespace_holds_is_not_mounted_again_as_if_it_were_new() {
    let place = Place::new();
    let storage = on(loop_file(place.path()), "ext4");
    needs!(can, &storage, place.path());
    let mut made = make(&storage, &place).unwrap();
    let namespace = namespace_with(&made.path());
    pgdyno_storage::fault::PowerSwitch::find(&made).unwrap().cut().unwrap();
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
    needs!(common::disks::can);
    let _no_pools = zfs::keep_away();
    let place = Place::new();
    let disk = Disk::new(&place, "disk", &[]);
    run("mkfs.ext4", &["-q", disk.path()]);
    let point = place.path().join("elsewhere");
    fs::create_dir(&point).unwrap();
    let mut child = Command::new("unshare");
    let mount = format!("{RELEASE_MOUNTS}mount -o ro \"$1\" \"$2\" && exec sleep 600");
    child.args(["--mount", "sh", "-c", &mount, "sh"]);
    let child = Running(child.arg(&disk.device).arg(&point).spawn().unwrap());
    let mounts = format!("/proc/{}/mountinfo", child.0.id());
    wait_for("a mount", || {
        fs::read_to_string(&mounts).unwrap().contains("/elsewhere ").then_some(())
    });
    let error = disk.refused(&disk.wipe());
    assert!(error.to_string().contains(&format!("(seen by process {})", child.0.id())), "{error}");
}

#[test]
fn a_btrfs_whose_twin_is_still_held_elsewhere_is_mounted_once_that_is_gone() {
    needs!(common::disks::can);
    let place = Place::new();
    // Of two devices each: of one device, newer kernels mount twins beside each other.
    let [a1, a2, b1, b2] = ["a1", "a2", "b1", "b2"].map(|name| Disk::new(&place, name, &[]));
    run("mkfs.btrfs", &["-q", a1.path(), a2.path()]);
    for (from, to) in [(&a1, &b1), (&a2, &b2)] {
        let (from, to) = (format!("if={}", from.path()), format!("of={}", to.path()));
        run("dd", &[&from, &to, "bs=1M", "conv=fsync", "status=none"]);
    }
    let mount = |first: &Disk, second: &Disk, name: &str| {
        let target = place.path().join(name);
        fs::create_dir(&target).unwrap();
        let options = [first, second].map(|disk| format!("device={}", disk.path())).to_vec();
        Mount { filesystem: "btrfs".to_owned(), source: first.path().into(), target, options }
    };
    let (a, b) = (mount(&a1, &a2, "a"), mount(&b1, &b2, "b"));
    a.mount().unwrap();
    let namespace = namespace_with(&a.target);
    unmount(&a.target, "btrfs", &a.source).unwrap();
    let mounted = std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(Duration::from_secs(1));
            drop(namespace);
        });
        b.mount()
    });
    mounted.unwrap();
    unmount(&b.target, "btrfs", &b.source).unwrap();
}
