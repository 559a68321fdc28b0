//! Why a probe could not be made.

use std::io;
use std::path::PathBuf;

use pgdyno_model::units::Bytes;

use crate::directory::DirectoryError;
use crate::journal::JournalError;
use crate::step::StepError;

/// The storage could not be probed.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// A file, directory or device.
    #[error("cannot {what} {} to probe it", path.display())]
    Io {
        /// What was attempted.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// What was named is neither.
    #[error("cannot probe {}: it is neither a directory nor a block device", path.display())]
    NoTarget {
        /// What was named.
        path: PathBuf,
    },
    /// Not enough room for the files.
    #[error("cannot probe {}: the files take {needed}, where {available} are free", path.display())]
    NoRoom {
        /// Where.
        path: PathBuf,
        /// What the files take.
        needed: Bytes,
        /// What is free.
        available: Bytes,
    },
    /// Too small a span to measure anything.
    #[error("cannot probe {}: {span} are less than the {least} that the zones of the curves take", path.display())]
    TooSmall {
        /// What was to be probed.
        path: PathBuf,
        /// The size.
        span: Bytes,
        /// The least that would do.
        least: Bytes,
    },
    /// fio's answer.
    #[error("cannot read what fio measured ({point}): {found}")]
    Fio {
        /// Which point.
        point: String,
        /// What was found instead.
        found: String,
    },
    /// What lies under the directory.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// Something done to the host.
    #[error(transparent)]
    Step(#[from] StepError),
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// It was told to stop before anything was measured.
    #[error("interrupted")]
    Interrupted,
}

impl ProbeError {
    /// What to do.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Io { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull => Some("free room there, or name another directory".into()),
                io::ErrorKind::PermissionDenied => {
                    Some("run as root, outside a container that keeps devices away; or name a directory of your own".into())
                }
                io::ErrorKind::NotFound => Some("name a directory that exists".into()),
                _ => None,
            },
            Self::NoTarget { .. } => Some("name a directory, or a device such as /dev/nvme0n1".into()),
            Self::NoRoom { .. } => {
                Some("free room there, name another directory, or ask for less with --size".into())
            }
            Self::TooSmall { .. } => Some("ask for more with --size".into()),
            Self::Directory(e) => e.help(),
            Self::Step(e) => e.help(),
            Self::Journal(e) => e.help(),
            Self::Fio { .. } => Some("`--builtin` measures without fio".into()),
            Self::Interrupted => None,
        }
    }

    /// Whether it ended because it was told to.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        matches!(self, Self::Interrupted | Self::Step(StepError::Interrupted))
    }
}
