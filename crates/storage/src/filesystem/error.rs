//! Errors of a filesystem that an experiment asks for.

use std::io;
use std::path::PathBuf;

use pgdyno_exec::StepError;
use pgdyno_model::{Advice, FailureKind};

use super::Tool;

/// A filesystem cannot be made, or differs from the wanted one.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum FilesystemError {
    /// There is no such filesystem.
    #[error("pgdyno knows no filesystem `{name}`")]
    Unknown {
        name: String,
        /// Every known one, the most alike first.
        nearest: Vec<&'static str>,
    },
    /// The kernel has no such filesystem, not as a module either.
    #[error(
        "cannot mount {name}: this kernel ({kernel}) has no such filesystem, built in or as a \
         module"
    )]
    NotInKernel {
        name: &'static str,
        kernel: String,
        /// A kernel that has it.
        runs_on: &'static str,
        /// The programs that it needs besides.
        tools: &'static [Tool],
    },
    /// The kernel takes no blocks of this size.
    #[error(
        "cannot mount {filesystem} with blocks of {asked} bytes: this kernel ({kernel}) takes none \
         beyond its memory's pages ({page} bytes)"
    )]
    LargeBlocks {
        filesystem: &'static str,
        /// The block size (bytes).
        asked: u64,
        /// The kernel's page size (bytes).
        page: u64,
        kernel: String,
        /// The first version of Linux that takes larger ones (major, minor).
        since: Option<(u32, u32)>,
    },
    /// The kernel did not let itself be asked.
    #[error("cannot ask the kernel whether it has {name}")]
    Kernel { name: &'static str, source: io::Error },
    /// A program is missing.
    #[error(
        "cannot make {filesystem}: the program {}, which {}, is not installed",
        tool.program, tool.purpose
    )]
    ToolMissing { filesystem: &'static str, tool: &'static Tool },
    /// An argument or option that pgdyno does not pass on.
    #[error("cannot make {filesystem} with `{word}` in `{field}`: {why}")]
    Refused {
        filesystem: &'static str,
        /// `mkfs`, `mount`, `pool`, `dataset`, …
        field: &'static str,
        /// The argument, option or property.
        word: String,
        why: &'static str,
        /// Returns advice, where there is some.
        help: &'static str,
    },
    /// The kernel or the program took it and did something else.
    #[error(
        "asked {filesystem} on {} for `{option}`, which it does not show as obtained: {shown}",
        mount_point.display()
    )]
    NotObtained { filesystem: &'static str, mount_point: PathBuf, option: String, shown: String },
    /// Nothing, or something else, is mounted there.
    #[error("cannot read back {filesystem} on {}: {found}", mount_point.display())]
    NotMounted { filesystem: &'static str, mount_point: PathBuf, found: String },
    /// A program that tells of it failed.
    #[error(transparent)]
    Program(Box<StepError>),
    /// Neither of the two implementations of ZFS answers.
    #[error("cannot use ZFS: the kernel has no OpenZFS, and zfs-fuse does not answer ({answer})")]
    NoZfs {
        /// The error of `zpool list`.
        answer: String,
    },
    /// `/proc/self/mountinfo` or the like.
    #[error("cannot read {}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

impl From<StepError> for FilesystemError {
    fn from(error: StepError) -> Self {
        Self::Program(Box::new(error))
    }
}

impl Advice for FilesystemError {
    fn help(&self) -> Option<String> {
        match self {
            Self::Unknown { nearest, .. } => {
                Some(format!("known are, the most alike first: {}", nearest.join(", ")))
            }
            Self::NoZfs { .. } => Some(
                "install OpenZFS (Debian: zfsutils-linux and zfs-dkms) and load its module; or \
                 install zfs-fuse and start its daemon: `zfs-fuse`"
                    .into(),
            ),
            Self::NotInKernel { runs_on, tools, .. } => {
                let mut packages: Vec<&str> = tools.iter().map(|tool| tool.debian).collect();
                packages.dedup();
                let packages = if packages.is_empty() {
                    String::new()
                } else {
                    format!("; its programs: on Debian `{}`", packages.join("`, `"))
                };
                Some(format!("it runs on {runs_on}{packages}"))
            }
            Self::LargeBlocks { asked, since, .. } => {
                let newer = since.map_or_else(String::new, |(major, minor)| {
                    format!("Linux {major}.{minor} or later, or on ")
                });
                Some(format!(
                    "it runs on {newer}a kernel whose pages have at least {asked} bytes, as some \
                     for arm64 and ppc64le"
                ))
            }
            Self::Kernel { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                Some(
                    "run pgdyno as root, outside of a container that withholds CAP_SYS_ADMIN"
                        .into(),
                )
            }
            Self::Kernel { source, .. } if source.kind() == io::ErrorKind::Unsupported => {
                Some("fsopen(2) needs Linux 5.2 or later".into())
            }
            Self::ToolMissing { tool, .. } => {
                let fedora = tool.fedora.map_or_else(String::new, |p| format!(", on Fedora `{p}`"));
                Some(format!("install its package: on Debian `{}`{fedora}", tool.debian))
            }
            Self::Refused { help, .. } => Some((*help).to_owned()),
            Self::NotObtained { .. } => Some(
                "leave it out: what cannot be read back cannot be told from what was dropped; \
                 dmesg may tell more"
                    .into(),
            ),
            _ => None,
        }
    }

    fn kind(&self) -> FailureKind {
        match self {
            Self::NotInKernel { .. }
            | Self::LargeBlocks { .. }
            | Self::ToolMissing { .. }
            | Self::NoZfs { .. } => FailureKind::Unavailable,
            Self::Program(source) if source.kind() == FailureKind::Interrupted => {
                FailureKind::Interrupted
            }
            _ => FailureKind::Storage,
        }
    }
}
