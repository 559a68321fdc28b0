//! Errors of reading a report.

use std::path::PathBuf;

/// Why a file could not be audited.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum AuditError {
    /// The file could not be read.
    #[error("cannot read the report {}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    /// The file is no text.
    #[error("cannot audit {}: it is no text", path.display())]
    NoText { path: PathBuf },
}

impl AuditError {
    /// What the user can do about it, where there is something.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Read { .. } => None,
            Self::NoText { .. } => Some(
                "save the report as text, Markdown or HTML; archives and PDF are not read".into(),
            ),
        }
    }
}
