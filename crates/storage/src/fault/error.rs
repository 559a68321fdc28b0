//! Errors of faults.

use std::io;
use std::path::{Path, PathBuf};

use pgdyno_exec::StepError;
use pgdyno_model::{Advice, FailureKind};

/// The filesystems whose power can be cut without an emulated disk: they know how to be shut down.
/// It is the ext4 driver that serves ext2 and ext3.
pub const CUTTABLE: [&str; 4] = ["ext4", "ext3", "ext2", "xfs"];

/// A fault could not be injected, or the storage under it not restored.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum FaultError {
    /// Not pgdyno's, or not made in this way.
    #[error("cannot cut the power of storage `{storage}`: {found}")]
    NotOurs {
        storage: String,
        /// A description of the finding.
        found: String,
    },
    /// The filesystem cannot be shut down.
    #[error("cannot cut the power of storage `{storage}`: {filesystem} refuses to be shut down")]
    Refused { storage: String, filesystem: String, source: io::Error },
    /// Making it durable, unmounting or mounting.
    #[error("cannot {what} {}", path.display())]
    Io {
        /// The attempt, as a verb for the message.
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// A step on the way.
    #[error(transparent)]
    Step(#[from] StepError),
    /// A process that is none of the server's.
    #[error("cannot kill process {pid}: it is none of the server's")]
    NotTheServers { pid: i32 },
}

impl FaultError {
    /// Returns the error of an attempt to do `what` to `path`.
    pub(super) fn io(what: &'static str, path: &Path, source: impl Into<io::Error>) -> Self {
        Self::Io { what, path: path.to_owned(), source: source.into() }
    }
}

impl Advice for FaultError {
    fn help(&self) -> Option<String> {
        match self {
            Self::NotOurs { .. } => Some(format!(
                "name a filesystem for pgdyno to make in a file of its own: {}",
                CUTTABLE.map(|name| format!("`--filesystem {name}`")).join(", ")
            )),
            Self::Refused { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                Some("run pgdyno as root".into())
            }
            Self::Refused { .. } => Some(format!(
                "{} can be shut down; others need the emulated disk",
                CUTTABLE.join(", ")
            )),
            Self::Step(e) => e.help(),
            Self::Io { .. } | Self::NotTheServers { .. } => None,
        }
    }

    fn kind(&self) -> FailureKind {
        match self {
            Self::Step(StepError::Interrupted) => FailureKind::Interrupted,
            _ => FailureKind::Storage,
        }
    }
}
