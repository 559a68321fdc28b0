//! Errors of experiments that come to no plan.

use pgdyno_dataset::trust::NotTrusted;
use pgdyno_dataset::workload::WorkloadError;
use pgdyno_engine::script::ScriptError;
use pgdyno_generators::DealError;
use pgdyno_model::{Advice, FailureKind};
use pgdyno_storage::StorageError;
use thiserror::Error;

use crate::file::FileError;

/// The reason why an experiment comes to no plan, or to one that may not be carried out.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names say it")]
pub enum ExperimentError {
    /// The experiment file, or an override.
    #[error(transparent)]
    File(#[from] FileError),
    /// A workload.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// A script of a workload.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// Generators that cannot share a load.
    #[error(transparent)]
    Deal(#[from] DealError),
    /// A storage that contradicts itself, or the device settings of a treatment.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// As root: a file that another account may change.
    #[error(transparent)]
    NotTrusted(#[from] NotTrusted),
    /// Names and levels that come to no plan, or to one that cannot be carried out.
    #[error("{what}")]
    Refused {
        /// The attempt, and the obstacle.
        what: String,
        help: String,
    },
    /// The system gave no seed.
    #[error("cannot draw a seed")]
    Seed(#[source] std::io::Error),
}

impl ExperimentError {
    /// Creates the error `what`, which `help` mends.
    pub(crate) fn refused(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Refused { what: what.into(), help: help.into() }
    }
}

impl Advice for ExperimentError {
    fn help(&self) -> Option<String> {
        match self {
            Self::File(error) => error.help(),
            Self::Workload(error) => error.help(),
            Self::Script(error) => error.help(),
            Self::Storage(error) => error.help(),
            Self::NotTrusted(error) => error.help(),
            Self::Refused { help, .. } => Some(help.clone()),
            Self::Deal(_) | Self::Seed(_) => None,
        }
    }

    fn kind(&self) -> FailureKind {
        FailureKind::Input
    }
}
