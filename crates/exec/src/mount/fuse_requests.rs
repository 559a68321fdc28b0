//! Requests that zfs-fuse has yet to answer.
//!
//! The kernel tells a FUSE daemon of a closed file without waiting for its answer, and drops what
//! the daemon has not read when the filesystem is unmounted. zfs-fuse then takes the file for open
//! and its pool for busy, and serves nobody else, for as long as it lives.

use std::fs::File;
use std::io::{self, Read as _};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};

use crate::mountinfo::MountEntry;

/// Waits until zfs-fuse has answered all requests, at most until `until`, if it serves `mounted`.
///
/// # Errors
/// The kernel does not tell how many requests wait.
pub(super) fn wait_for_answers(mounted: &MountEntry, until: Instant) -> io::Result<()> {
    if mounted.filesystem != "fuse.zfs" {
        return Ok(());
    }
    while waiting(mounted)? > 0 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Returns how many requests the daemon has yet to answer, from the control filesystem of FUSE,
/// which is mounted nowhere for that.
fn waiting(mounted: &MountEntry) -> io::Result<u64> {
    let (_major, connection) = mounted.numbers.split_once(':').unwrap_or_default();
    let context = rustix::mount::fsopen("fusectl", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_create(&context)?;
    let control =
        rustix::mount::fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
    let path = format!("{connection}/waiting");
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let mut text = String::new();
    File::from(rustix::fs::openat(control, path, flags, Mode::empty())?)
        .read_to_string(&mut text)?;
    text.trim().parse().map_err(io::Error::other)
}
