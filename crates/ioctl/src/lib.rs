//! Two system calls that no crate wraps safely (docs/adr/0013).
//!
//! They stand in a crate of their own, so that everything that runs as root beside other people's
//! data stays free of `unsafe`.
//!
//! [`shut_down_without_flushing`] is a power loss for one filesystem: open a directory on it, check
//! that the filesystem is yours, and call. Unmount and mount the filesystem afterwards.
//! [`loop_backing_number`] tells which block device a loop device lies over.
//!
//! ```
//! use std::fs::File;
//! use pgdyno_ioctl::loop_backing_number;
//!
//! // A directory is no loop device.
//! let directory = File::open("/")?;
//! assert!(loop_backing_number(&directory).is_err());
//! # Ok::<(), std::io::Error>(())
//! ```
#![allow(unsafe_code)]

use std::io;
use std::os::fd::AsFd;

use rustix::ioctl::{Getter, Setter, ioctl, opcode};

/// `EXT4_GOING_FLAGS_NOLOGFLUSH` and its like: the journal in memory is lost, as with the power.
/// Mode 0 would freeze the filesystem and save everything; mode 1 would save the journal: neither
/// is a power loss, and this crate offers neither.
const NO_LOG_FLUSH: u32 = 2;

/// `FS_IOC_SHUTDOWN`: `_IOR('X', 125, u32)` in linux/fs.h; the kernel reads the number all the
/// same.
const FS_IOC_SHUTDOWN: rustix::ioctl::Opcode = opcode::read::<u32>(b'X', 125);

/// Shuts the filesystem down that `directory` lies on, without flushing its journal.
///
/// From then on every access to the filesystem fails with EIO, and data that had not reached the
/// device never will. Unmounting and mounting brings the filesystem back. The caller must know that
/// the filesystem is its own: every user of it is hit.
///
/// # Errors
/// ENOTTY where the filesystem knows no such thing (btrfs), EPERM without `CAP_SYS_ADMIN`.
pub fn shut_down_without_flushing<F: AsFd>(directory: F) -> io::Result<()> {
    // SAFETY: by the kernel's definition the call takes a pointer to one u32, which it reads and
    // nothing more; `Setter` passes the address of its own copy of that.
    let call = unsafe { Setter::<FS_IOC_SHUTDOWN, u32>::new(NO_LOG_FLUSH) };
    // SAFETY: as above; the descriptor is borrowed, open while the call lasts.
    unsafe { ioctl(directory, call) }?;
    Ok(())
}

/// `LOOP_GET_STATUS64` of linux/loop.h.
const LOOP_GET_STATUS64: rustix::ioctl::Opcode = 0x4C05;

/// `struct loop_info64` of linux/loop.h, as far as it is read here.
#[repr(C)]
struct LoopInfo64 {
    device: u64,
    inode: u64,
    rdevice: u64,
    rest: [u8; 208],
}

/// Returns the number of the block device that `loop_device` lies over, as `st_rdev` has it; 0
/// where that is a file.
///
/// The name of what it lies over, which sysfs shows, says nothing of a node that was removed, or
/// that another mount namespace has.
///
/// # Errors
/// ENXIO where the loop device lies over nothing; ENOTTY where it is none.
pub fn loop_backing_number<F: AsFd>(loop_device: F) -> io::Result<u64> {
    // SAFETY: by the kernel's definition the call fills one `struct loop_info64`; `LoopInfo64` has
    // its size (232 bytes, asserted below) and holds integers alone, for which any bytes are valid.
    let call = unsafe { Getter::<LOOP_GET_STATUS64, LoopInfo64>::new() };
    // SAFETY: as above; the descriptor is borrowed, open while the call lasts.
    let info = unsafe { ioctl(loop_device, call) }?;
    Ok(info.rdevice)
}

const _: () = assert!(size_of::<LoopInfo64>() == 232);
