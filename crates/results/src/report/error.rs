//! Errors of making a report.

use std::io;
use std::path::PathBuf;

/// Why a report could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The template or the data could not be put into HTML: a fault of pgdyno's.
    #[error("cannot render the report of run {run}")]
    Render {
        /// The run.
        run: String,
        /// What the template engine said.
        source: minijinja::Error,
    },
    /// The file could not be written; what was there before is as it was.
    #[error("cannot write the report to {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl ReportError {
    /// What the user can do about it, where there is something.
    pub fn help(&self) -> Option<String> {
        let help = match self {
            Self::Render { .. } => {
                "this is a fault in pgdyno; `pgdyno show RUN --json` has all the data"
            }
            Self::Write { .. } => {
                "name a file in a folder that you may write to with `-o FILE.html`"
            }
        };
        Some(help.to_owned())
    }
}
