//! Why a data set could not be loaded.

use pgdyno_connect::control::wait::{Waiting, wait_of};
use pgdyno_connect::control::{ControlError, error_text};
use pgdyno_model::{Advice, FailureKind};
use thiserror::Error;

use crate::bulk_load::BulkLoad;

/// A data set that could not be loaded.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names say it")]
pub enum DatasetError {
    /// The server refused a statement.
    #[error("cannot load {data}: {doing}: {found}")]
    Sql {
        /// The data set.
        data: String,
        /// The attempt, as a verb with its object.
        doing: String,
        /// The server's message.
        found: String,
        /// SQLSTATE, where the server answered.
        sqlstate: Option<String>,
    },
    /// A statement waited for somebody else until it was given up.
    #[error("cannot load {data}: {doing}: the statement {waiting}")]
    Waits {
        /// The data set.
        data: String,
        /// The attempt, as a verb with its object.
        doing: String,
        /// For whom, and how long.
        waiting: Waiting,
    },
    /// A connection.
    #[error("cannot load {data}")]
    Connect {
        /// The data set.
        data: String,
        /// Why there is none.
        #[source]
        source: Box<ControlError>,
    },
    /// A column that its generator cannot fill.
    #[error("cannot fill column `{column}` of `{table}`: {found}")]
    Column { table: String, column: String, found: String },
    /// The load was refused; nothing was made.
    #[error("cannot {what}")]
    Refused {
        /// The refused attempt with the reason, such as `load a at scale 1: somebody loads it now`.
        what: String,
        /// How to mend the error.
        help: String,
    },
    /// Stopped by a signal.
    #[error("stopped while {data} was loaded")]
    Interrupted {
        /// The data set.
        data: String,
    },
}

impl DatasetError {
    /// Creates the error of a statement of `load`, which was `doing` something.
    pub(crate) fn sql(load: &BulkLoad<'_>, doing: &str, error: &tokio_postgres::Error) -> Self {
        if let Some(waiting) = wait_of(error) {
            let (data, doing) = (load.identity(), doing.to_owned());
            return Self::Waits { data, doing, waiting: waiting.clone() };
        }
        Self::Sql {
            data: load.identity(),
            doing: doing.to_owned(),
            found: error_text(error),
            sqlstate: error.code().map(|c| c.code().to_owned()),
        }
    }

    /// Creates the error of a refused load: the attempt with the reason, and how to mend it.
    pub fn refused(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Refused { what: what.into(), help: help.into() }
    }

    /// Whether the connection was lost, or the server ended it.
    pub fn is_lost(&self) -> bool {
        const ENDED: [&str; 3] = ["57P01", "57P02", "57P03"];
        let Self::Sql { sqlstate, .. } = self else { return false };
        sqlstate.as_ref().is_none_or(|code| ENDED.contains(&code.as_str()))
    }
}

impl Advice for DatasetError {
    fn help(&self) -> Option<String> {
        match self {
            Self::Sql { sqlstate: Some(s), .. } if s == "53100" => Some(
                "the disk is full: free room, lower the scale, or name another `storage` directory"
                    .into(),
            ),
            Self::Sql { sqlstate: Some(s), .. } if s == "57014" => {
                Some("somebody cancelled it; the same load begun again goes on".into())
            }
            Self::Waits { waiting, .. } => waiting.wait.help(),
            Self::Connect { source, .. } => source.help(),
            Self::Refused { help, .. } => Some(help.clone()),
            Self::Sql { .. } | Self::Column { .. } | Self::Interrupted { .. } => None,
        }
    }

    fn kind(&self) -> FailureKind {
        match self {
            Self::Waits { .. } => FailureKind::Wait,
            Self::Connect { source, .. } => source.kind(),
            Self::Interrupted { .. } => FailureKind::Interrupted,
            _ => FailureKind::Data,
        }
    }
}
