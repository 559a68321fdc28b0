//! Why a host has no result.

use std::io;

use pgdyno_generators::Fault;
use pgdyno_store::StoreError;
use thiserror::Error;

use pgdyno_provision::BenchError;

/// Why a host has no result, or none that could be merged.
#[derive(Debug, Error)]
pub enum HostError {
    /// The host cannot be reached, or does not run this program.
    #[error("it cannot be used: {0}")]
    Unusable(Fault),
    /// The connection ended before the result was there.
    #[error("the connection to it ended ({0})")]
    Ended(String),
    /// The host's run could not begin or go on.
    #[error("{0}")]
    Run(String),
    /// A signal ended the run; the host keeps what is complete.
    #[error("interrupted")]
    Interrupted,
    /// The host's store cannot be written here.
    #[error("its store cannot be written here: {0}")]
    File(io::Error),
    /// The host's store cannot be merged into the store here.
    #[error("its run cannot be merged: {0}")]
    Merge(BenchError),
}

impl From<StoreError> for HostError {
    fn from(error: StoreError) -> Self {
        Self::Merge(error.into())
    }
}
