//! Mounting and unmounting, by the kernel's own mount API (fsopen(2) and its kin, Linux 5.2): it
//! tells in words why it refuses an option, where mount(2) knows but one error number for all.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fmt, io};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, UnmountFlags};
use serde::{Deserialize, Serialize};

use crate::kernel_log::KernelLog;
use crate::mountinfo::{self, MountEntry, real_source};
use crate::quote::quote;

mod error;
mod fuse_requests;
pub(crate) mod holders;

pub use error::MountError;

/// Bound on two waits: an unmount's for processes that still use the filesystem, and a mount's for
/// another btrfs of the same identity to be gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// A filesystem to be mounted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Filesystem type, as `mount -t` wants it.
    pub filesystem: String,
    /// The block device, or the filesystem's own kind of source.
    pub source: PathBuf,
    /// An empty directory.
    pub target: PathBuf,
    /// The options; of several about the access time the last counts.
    pub options: Vec<String>,
}

impl Mount {
    /// Mounts the filesystem.
    ///
    /// # Errors
    /// [`MountError`]; nothing is mounted then.
    pub fn mount(&self) -> Result<(), MountError> {
        let target = self.open_target()?;
        let log = KernelLog::from_now();
        let (context, attributes) = self.created(&log)?;
        let mount =
            rustix::mount::fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes.flags())
                .map_err(|e| self.refused(e, &context, &log))?;
        let to_the_open_directory =
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        rustix::mount::move_mount(&mount, "", &target, "", to_the_open_directory)
            .map_err(|e| self.refused(e, &context, &log))
    }

    /// Has the kernel make the filesystem ready in a context of its own.
    ///
    /// Of two btrfs of one identity, such as an image and its copy, most kernels mount one at a
    /// time. An unmounted one stays until the last mount namespace has let go of it. A program that
    /// is started in its own mount namespace holds it for a moment.
    fn created(&self, log: &KernelLog) -> Result<(OwnedFd, Attributes), MountError> {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.create(log) {
                Ok(created) => return Ok(created),
                Err((Errno::EXIST, _)) if Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(100));
                }
                Err((_, refused)) => return Err(refused),
            }
        }
    }

    /// Tries once to make the filesystem ready; an error comes with the kernel's error number.
    fn create(&self, log: &KernelLog) -> Result<(OwnedFd, Attributes), (Errno, MountError)> {
        let filesystem = || self.filesystem.clone();
        let context = rustix::mount::fsopen(self.filesystem.as_str(), FsOpenFlags::FSOPEN_CLOEXEC)
            .map_err(|e| (e, MountError::Open { filesystem: filesystem(), source: e.into() }))?;
        let source = real_source(&self.source);
        rustix::mount::fsconfig_set_string(&context, "source", source.as_path())
            .map_err(|e| (e, self.refused(e, &context, log)))?;
        let mut attributes = Attributes::none();
        for option in &self.options {
            if attributes.take(option) {
                continue;
            }
            configure(&context, option).map_err(|e| {
                let kernel = in_words(e, &context, log, &[&self.filesystem]);
                let option = option.clone();
                (e, MountError::Option { filesystem: filesystem(), option, kernel })
            })?;
        }
        rustix::mount::fsconfig_create(&context)
            .map_err(|e| (e, self.refused(e, &context, log)))?;
        Ok((context, attributes))
    }

    /// Returns the mount point, open, empty and not a mount point.
    fn open_target(&self) -> Result<OwnedFd, MountError> {
        let failed =
            |e: Errno| MountError::Target { target: self.target.clone(), source: e.into() };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory =
            rustix::fs::openat(CWD, &self.target, flags, Mode::empty()).map_err(failed)?;
        if let Some(there) = mountinfo::mounted_at(&self.target).map_err(MountError::Table)? {
            return Err(MountError::Occupied { target: self.target.clone(), found: named(&there) });
        }
        for entry in rustix::fs::Dir::read_from(&directory).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                return Err(MountError::NotEmpty { target: self.target.clone(), found: name });
            }
        }
        Ok(directory)
    }

    fn refused(&self, error: Errno, context: &OwnedFd, log: &KernelLog) -> MountError {
        let device = real_source(&self.source);
        let device = device.file_name().unwrap_or_default().to_string_lossy();
        let kernel = in_words(error, context, log, &[&self.filesystem, &device]);
        MountError::Refused { mount: self.to_string(), kernel }
    }
}

impl fmt::Display for Mount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mount -t {}", quote(self.filesystem.as_ref()))?;
        if !self.options.is_empty() {
            write!(f, " -o {}", quote(self.options.join(",").as_ref()))?;
        }
        write!(f, " {} {}", quote(self.source.as_os_str()), quote(self.target.as_os_str()))
    }
}

/// Unmounts `filesystem` from `source` at `target`, if it is mounted there.
///
/// # Errors
/// [`MountError`]: something else is mounted there, or it stays in use.
pub fn unmount(target: &Path, filesystem: &str, source: &Path) -> Result<(), MountError> {
    let is_ours = |m: &MountEntry| m.is(filesystem, source);
    unmount_if(target, is_ours, || format!("{filesystem} ({})", source.display()))
}

/// Unmounts the filesystem at `target` if `is_ours` accepts it; succeeds if nothing is mounted
/// there. Processes that still use it have a few seconds to end.
///
/// # Errors
/// [`MountError`]: something else is mounted there (`expected` says what should be), or the
/// filesystem stays in use.
pub fn unmount_if(
    target: &Path,
    is_ours: impl Fn(&MountEntry) -> bool,
    expected: impl Fn() -> String,
) -> Result<(), MountError> {
    let until = Instant::now() + PATIENCE;
    loop {
        let Some(there) = mountinfo::mounted_at(target).map_err(MountError::Table)? else {
            return Ok(());
        };
        if !is_ours(&there) {
            let (expected, found) = (expected(), named(&there));
            return Err(MountError::NotOurs { target: target.to_owned(), expected, found });
        }
        // Where the kernel does not tell, the daemon has probably answered long ago.
        let _ = fuse_requests::wait_for_answers(&there, until);
        match rustix::mount::unmount(target, UnmountFlags::NOFOLLOW) {
            Ok(()) => return Ok(()),
            Err(Errno::BUSY) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(100));
            }
            Err(Errno::BUSY) => {
                return Err(MountError::Busy {
                    target: target.to_owned(),
                    users: holders::users(target),
                });
            }
            Err(e) => {
                return Err(MountError::Unmount { target: target.to_owned(), source: e.into() });
            }
        }
    }
}

fn named(mounted: &MountEntry) -> String {
    format!("{} ({})", mounted.filesystem, mounted.source)
}

/// Options that mount(8) sets as attributes of the mount, not as options of the filesystem.
struct Attributes {
    set: MountAttrFlags,
    access_time: MountAttrFlags,
}

impl Attributes {
    fn none() -> Self {
        Self { set: MountAttrFlags::empty(), access_time: MountAttrFlags::empty() }
    }

    /// Takes `option` over if it is an attribute of the mount, and tells whether it is.
    fn take(&mut self, option: &str) -> bool {
        let (flag, on) = match option {
            "defaults" => return true,
            "noatime" => return self.access_time(MountAttrFlags::MOUNT_ATTR_NOATIME),
            "strictatime" => return self.access_time(MountAttrFlags::MOUNT_ATTR_STRICTATIME),
            // The kernel's default is relatime; `atime` only takes noatime back.
            "relatime" | "atime" => return self.access_time(MountAttrFlags::MOUNT_ATTR_RELATIME),
            "nodiratime" => (MountAttrFlags::MOUNT_ATTR_NODIRATIME, true),
            "diratime" => (MountAttrFlags::MOUNT_ATTR_NODIRATIME, false),
            "nosuid" => (MountAttrFlags::MOUNT_ATTR_NOSUID, true),
            "suid" => (MountAttrFlags::MOUNT_ATTR_NOSUID, false),
            "nodev" => (MountAttrFlags::MOUNT_ATTR_NODEV, true),
            "dev" => (MountAttrFlags::MOUNT_ATTR_NODEV, false),
            "noexec" => (MountAttrFlags::MOUNT_ATTR_NOEXEC, true),
            "exec" => (MountAttrFlags::MOUNT_ATTR_NOEXEC, false),
            "nosymfollow" => (MountAttrFlags::MOUNT_ATTR_NOSYMFOLLOW, true),
            _ => return false,
        };
        self.set.set(flag, on);
        true
    }

    /// Sets the handling of access times, one field of several values and not a set of flags.
    fn access_time(&mut self, value: MountAttrFlags) -> bool {
        self.access_time = value;
        true
    }

    fn flags(&self) -> MountAttrFlags {
        self.set | self.access_time
    }
}

/// Hands one option of the filesystem's to the kernel.
fn configure(context: &OwnedFd, option: &str) -> Result<(), Errno> {
    match option.split_once('=') {
        Some(("device", path)) => rustix::mount::fsconfig_set_string(
            context,
            "device",
            real_source(Path::new(path)).as_path(),
        ),
        Some((key, value)) => rustix::mount::fsconfig_set_string(context, key, value),
        None => rustix::mount::fsconfig_set_flag(context, option),
    }
}

/// Describes a refusal of the kernel: messages of the context's log and of the kernel's log that
/// name one of `about`, with the meaning of the error number.
fn in_words(error: Errno, context: &OwnedFd, log: &KernelLog, about: &[&str]) -> String {
    let mut words = context_log(context.as_fd());
    words.extend(log.lines_about(about));
    words.dedup();
    let meaning = io::Error::from(error).to_string();
    if words.is_empty() { meaning } else { format!("{} ({meaning})", words.join("; ")) }
}

/// Returns the messages that wait in a filesystem context: each read gives one, as `e xfs: text`.
fn context_log(context: BorrowedFd<'_>) -> Vec<String> {
    let mut words = Vec::new();
    let mut buffer = [0_u8; 1024];
    while let Ok(length @ 1..) = rustix::io::read(context, &mut buffer) {
        let text = String::from_utf8_lossy(&buffer[..length]);
        let text = text.trim();
        words.push(text.split_once(' ').map_or(text, |(_level, message)| message).to_owned());
    }
    words
}
