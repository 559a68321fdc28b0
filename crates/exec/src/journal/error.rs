//! A journal that cannot be kept.

use std::io;
use std::path::{Path, PathBuf};

use pgdyno_model::Advice;

use crate::trust::TrustError;

/// The journal could not be kept; nothing is made without it.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum JournalError {
    /// The journal's directory or a file in it cannot be read, written, removed or locked.
    #[error("cannot keep the journal of made things: cannot {what} {}", path.display())]
    Io {
        /// The attempt, as a verb for the message.
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// Another account can change the journal.
    #[error("cannot trust the journal of made things")]
    Untrusted(#[source] Box<TrustError>),
    /// An entry is none that pgdyno wrote.
    #[error("cannot trust the journal of made things: {} {found}", path.display())]
    Foreign {
        path: PathBuf,
        /// A description of the problem.
        found: String,
    },
    /// This process's own identity cannot be read from `/proc`.
    #[error("cannot tell this process's identity")]
    Owner(#[source] io::Error),
    /// The kernel gives no random numbers, and so the thing has no id.
    #[error("cannot draw random numbers")]
    Random(#[source] io::Error),
}

impl Advice for JournalError {
    fn help(&self) -> Option<String> {
        match self {
            Self::Io { .. } => Some(
                "make that path writable, or set XDG_STATE_HOME to a directory that is".to_owned(),
            ),
            Self::Untrusted(e) => Some(format!(
                "{}; for the journal, set XDG_STATE_HOME to one that nobody else may write to",
                e.help().unwrap_or_else(|| "see that it can be looked at".to_owned())
            )),
            Self::Foreign { path, .. } => Some(format!(
                "find out who put it there; once you have removed it (`rm {}`), pgdyno goes on",
                path.display()
            )),
            Self::Owner(_) | Self::Random(_) => None,
        }
    }
}

/// Returns the error of an attempt to do `what` on `path`.
pub(super) fn io_error(what: &'static str, path: &Path, source: io::Error) -> JournalError {
    JournalError::Io { what, path: path.to_owned(), source }
}
