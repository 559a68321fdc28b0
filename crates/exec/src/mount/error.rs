//! Mounts and unmounts that fail.

use std::io;
use std::path::PathBuf;

use pgdyno_model::Advice;
use rustix::io::Errno;

/// A mount that failed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum MountError {
    /// The mount point cannot be used at all.
    #[error("cannot mount on {}", target.display())]
    Target { target: PathBuf, source: io::Error },
    /// The mount point holds files, which a mount would hide.
    #[error("cannot mount on {}: it is not empty, it holds `{found}`", target.display())]
    NotEmpty {
        target: PathBuf,
        /// One name in it.
        found: String,
    },
    /// Something is mounted there already.
    #[error("cannot mount on {}: {found} is mounted there", target.display())]
    Occupied { target: PathBuf, found: String },
    /// The kernel has no such filesystem or does not let us.
    #[error("cannot mount {filesystem}: the kernel does not open such a filesystem")]
    Open { filesystem: String, source: io::Error },
    /// One option.
    #[error("the kernel refuses the mount option `{option}` for {filesystem}: {kernel}")]
    Option { filesystem: String, option: String, kernel: String },
    /// The mount as a whole.
    #[error("the kernel refuses `{mount}`: {kernel}")]
    Refused {
        /// The mount, as mount(8) would be told.
        mount: String,
        kernel: String,
    },
    /// Somebody uses it.
    #[error("cannot unmount {}: it is in use by {users}", target.display())]
    Busy {
        target: PathBuf,
        /// Processes, mounts and loop devices.
        users: String,
    },
    /// Something else is mounted there.
    #[error(
        "left {} mounted: {expected} was mounted there, and now it is {found}",
        target.display()
    )]
    NotOurs {
        target: PathBuf,
        /// The filesystem that was mounted.
        expected: String,
        /// The filesystem that is mounted now.
        found: String,
    },
    /// The unmount failed otherwise.
    #[error("cannot unmount {}", target.display())]
    Unmount { target: PathBuf, source: io::Error },
    /// The table of mounts.
    #[error("cannot read /proc/self/mountinfo")]
    Table(#[source] io::Error),
}

impl Advice for MountError {
    fn help(&self) -> Option<String> {
        let help = match self {
            Self::NotEmpty { .. } | Self::Occupied { .. } => "name an empty directory",
            Self::Open { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                "run pgdyno as root, outside of a container that withholds CAP_SYS_ADMIN"
            }
            Self::Open { source, .. }
                if source.raw_os_error() == Some(Errno::NODEV.raw_os_error()) =>
            {
                "`cat /proc/filesystems` lists what is there; install or boot a kernel that has it"
            }
            Self::Open { source, .. }
                if source.raw_os_error() == Some(Errno::NOSYS.raw_os_error()) =>
            {
                "fsopen(2) needs Linux 5.2 or later"
            }
            Self::Refused { .. } => "the words are the kernel's own; dmesg may hold more of them",
            Self::Option { .. } => "leave it out of `mount`, or write it as this kernel knows it",
            Self::Busy { .. } => "end what uses it, then run `pgdyno clean`",
            Self::NotOurs { .. } => "unmount it yourself if it is yours",
            _ => return None,
        };
        Some(help.into())
    }
}
