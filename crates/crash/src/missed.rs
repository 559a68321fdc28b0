//! Why a fault did not happen.

use std::path::PathBuf;
use std::time::Duration;

use pgdyno_model::Fault;
use thiserror::Error;

use pgdyno_provision::BenchError;

/// Why a fault did not happen in a round.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum Missed {
    /// The load did not begin.
    #[error("the load did not get going")]
    NoLoad,
    /// The load ended first.
    #[error("the load ended before the fault")]
    LoadEnded,
    /// The fault is none of a disk.
    #[error("{0} is no fault of a disk's")]
    NotOfADisk(Fault),
    /// No emulated disk lies under the cluster.
    #[error("there is no emulated disk under the cluster")]
    NoEmulatedDisk,
    /// The write to cut the power after did not come.
    #[error("there was no write of {of} within {within:?}")]
    NoWrite { of: &'static str, within: Duration },
    /// The request to fail did not come.
    #[error("there was no {of} to fail within {within:?}")]
    NoRequest { of: &'static str, within: Duration },
    /// The page to tear was not written.
    #[error("no checkpoint wrote a data page within {within:?}")]
    NoPageWritten { within: Duration },
    /// The server did not run into the full filesystem.
    #[error("the server needed no room on {} within {within:?}", on.display())]
    NeededNoRoom { on: PathBuf, within: Duration },
}

/// Notes on a fault that happened, or why it did not.
pub(super) type Met = Result<Result<Vec<String>, Missed>, BenchError>;
