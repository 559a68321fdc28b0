//! Why a probe could not be made.

use std::io;
use std::path::{Path, PathBuf};

use pgdyno_exec::StepError;
use pgdyno_exec::directory::DirectoryError;
use pgdyno_exec::journal::JournalError;
use pgdyno_model::units::Bytes;
use pgdyno_model::{Advice, FailureKind};

/// Where the size of a disk probe's file comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeSource {
    /// `pgdyno disk --size`.
    Option,
    /// `size` in an experiment's `[probe]`.
    Experiment,
}

impl SizeSource {
    fn name(self) -> &'static str {
        match self {
            Self::Option => "`--size`",
            Self::Experiment => "`probe.size`",
        }
    }
}

/// The storage could not be probed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ProbeError {
    /// A file, directory or device cannot be used.
    #[error("cannot {what} {} to probe it", path.display())]
    Io {
        /// The attempt, as a verb for the message.
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// The target is neither a directory nor a block device.
    #[error("cannot probe {}: it is neither a directory nor a block device", path.display())]
    NoTarget { path: PathBuf },
    /// Files are to be written, and the target is no directory.
    #[error(
        "cannot write files to {} to probe it: it is {}",
        path.display(), if *is_device { "a block device" } else { "no directory" }
    )]
    NoDirectory {
        path: PathBuf,
        /// Whether the target is a block device.
        is_device: bool,
        /// Where a filesystem on the device is mounted.
        mounted: Option<PathBuf>,
    },
    /// The filesystem has not enough room for the files.
    #[error("cannot probe {}: the files take {needed}, where {available} are free", path.display())]
    NoRoom {
        path: PathBuf,
        /// Origin of the files' size, where the user can change it.
        size: Option<SizeSource>,
        needed: Bytes,
        available: Bytes,
    },
    /// The span is too small to measure anything.
    #[error(
        "cannot probe {}: {span} are less than the {least} that the zones of the curves take",
        path.display()
    )]
    TooSmall {
        path: PathBuf,
        span: Bytes,
        least: Bytes,
        /// Origin of the size, where the user can change it.
        size: Option<SizeSource>,
    },
    /// fio's answer cannot be read.
    #[error("cannot read what fio measured ({point}): {found}")]
    Fio { point: String, found: String },
    /// The directory cannot carry files of a probe.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// A step on the host failed.
    #[error(transparent)]
    Step(#[from] StepError),
    /// The journal cannot be kept.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The probe was stopped before anything was measured.
    #[error("interrupted")]
    Interrupted,
}

impl ProbeError {
    /// Returns a function that makes the error of the attempt `what` on `path`.
    pub(super) fn io(what: &'static str, path: &Path) -> impl Fn(io::Error) -> Self {
        move |source| Self::Io { what, path: path.to_owned(), source }
    }
}

impl Advice for ProbeError {
    fn help(&self) -> Option<String> {
        match self {
            Self::Io { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull => {
                    Some("free room there, or name another directory".into())
                }
                io::ErrorKind::PermissionDenied => Some(
                    "run as root, outside a container that keeps devices away; \
                     or name a directory of your own"
                        .into(),
                ),
                io::ErrorKind::NotFound => Some("name a directory that exists".into()),
                _ => None,
            },
            Self::NoTarget { .. } => {
                Some("name a directory, or a device such as /dev/nvme0n1".into())
            }
            Self::NoDirectory { path, is_device: true, mounted } => {
                let path = path.display();
                let place = match mounted {
                    Some(point) => format!("name a directory on it, such as {}", point.display()),
                    None => {
                        "make a filesystem on it, mount that, and name the directory".to_owned()
                    }
                };
                Some(format!(
                    "{place}; `pgdyno disk {path}` measures how fast the device itself is read"
                ))
            }
            Self::NoDirectory { .. } => Some("name a directory".into()),
            Self::NoRoom { size: Some(size), .. } => Some(format!(
                "free room there, name another directory, or ask for less with {}",
                size.name()
            )),
            Self::NoRoom { size: None, .. } => {
                Some("free room there, or name another directory".into())
            }
            Self::TooSmall { size: Some(size), .. } => {
                Some(format!("ask for more with {}", size.name()))
            }
            Self::TooSmall { size: None, .. } => Some("name a larger device".into()),
            Self::Directory(e) => e.help(),
            Self::Step(e) => e.help(),
            Self::Journal(e) => e.help(),
            Self::Fio { .. } => Some("`pgdyno disk --builtin` measures without fio".into()),
            Self::Interrupted => None,
        }
    }

    fn kind(&self) -> FailureKind {
        match self {
            Self::Interrupted | Self::Step(StepError::Interrupted) => FailureKind::Interrupted,
            _ => FailureKind::Storage,
        }
    }
}
