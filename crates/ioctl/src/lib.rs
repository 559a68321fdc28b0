//! The one system call of pgdyno's that nobody wraps safely (docs/adr/0013): a crate of its own, so that everything that
//! runs as root beside other people's data stays free of `unsafe`.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::AsFd;

use rustix::ioctl::{Setter, ioctl, opcode};

/// `EXT4_GOING_FLAGS_NOLOGFLUSH` and its like: the journal in memory is lost, as with the power. Mode 0 would freeze the
/// filesystem and save everything; mode 1 would save the journal: neither is a power loss, and this crate offers neither.
const NO_LOG_FLUSH: u32 = 2;

/// `FS_IOC_SHUTDOWN`: `_IOR('X', 125, u32)` in linux/fs.h; the kernel reads the number all the same.
const FS_IOC_SHUTDOWN: rustix::ioctl::Opcode = opcode::read::<u32>(b'X', 125);

/// Shuts the filesystem down that `directory` lies on, without flushing its journal: from here on every access to it fails
/// with EIO, and what had not reached the device never will. Unmounting and mounting brings it back.
///
/// Whether it is one's own is for the caller to know: everything on it is hit, whoever's it is.
///
/// # Errors
/// ENOTTY where the filesystem knows no such thing (btrfs), EPERM without `CAP_SYS_ADMIN`.
pub fn shut_down_without_flushing<F: AsFd>(directory: F) -> io::Result<()> {
    // SAFETY: by the kernel's definition the call takes a pointer to one u32, which it reads and nothing more; `Setter`
    // passes the address of its own copy of that.
    let call = unsafe { Setter::<FS_IOC_SHUTDOWN, u32>::new(NO_LOG_FLUSH) };
    // SAFETY: as above; the descriptor is borrowed, open while the call lasts.
    unsafe { ioctl(directory, call) }?;
    Ok(())
}
