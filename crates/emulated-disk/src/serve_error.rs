//! Why a disk cannot be served.

use std::io;
use std::path::PathBuf;

use pgdyno_exec::service::DIRECTORY;

/// A disk that cannot be served.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ServeError {
    /// The environment names no disk.
    #[error("`emulated-disk` is started by pgdyno itself: {DIRECTORY} does not name a disk")]
    NotAsked,
    /// This build lacks what serves disks.
    #[error("cannot serve an emulated disk: this build of pgdyno has none")]
    NotIncluded,
    /// One of its files.
    #[error("cannot {what} {}", path.display())]
    Io {
        /// The attempt, as a verb for the message.
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// The process that started it is gone.
    #[error("the pgdyno that wanted this disk is gone")]
    Orphaned,
}
