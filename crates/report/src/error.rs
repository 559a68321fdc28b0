//! Errors of making a report.

use std::io;
use std::path::PathBuf;

use pgdyno_analysis::comparison::runs::CompareError;
use pgdyno_model::Advice;
use pgdyno_store::StoreError;

/// Why a report could not be made.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ReportError {
    /// The result cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Two results cannot be compared.
    #[error(transparent)]
    Compare(#[from] CompareError),
    /// The data could not be written as JSON: a fault of pgdyno's.
    #[error("cannot render the report of {subject}")]
    Render {
        /// Name of the result.
        subject: String,
        /// Error of the JSON writer.
        source: serde_json::Error,
    },
    /// The file could not be written; an earlier file is unchanged.
    #[error("cannot write the report to {}", path.display())]
    Write {
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
}

impl Advice for ReportError {
    fn help(&self) -> Option<String> {
        let help = match self {
            Self::Store(error) => return error.help(),
            Self::Compare(error) => return error.help(),
            Self::Render { .. } => {
                "this is a fault in pgdyno; `pgdyno show ID --json` has all the data"
            }
            Self::Write { .. } => {
                "name a file in a folder that you may write to with `-o FILE.html`"
            }
        };
        Some(help.to_owned())
    }
}
