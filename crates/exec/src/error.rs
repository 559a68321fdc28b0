//! Steps that fail, and tools that do not answer.

use std::io;
use std::path::{Path, PathBuf};

use pgdyno_model::{Advice, FailureKind};

use crate::account::Account;
use crate::device::refusal::SafetyError;
use crate::journal::JournalError;
use crate::mount::MountError;
use crate::setting::SettingError;
use crate::trust::TrustError;

/// A step that failed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum StepError {
    /// A file or directory.
    #[error("cannot {what} {}", path.display())]
    Io {
        /// The attempt, as a verb for the message.
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// A program that could not be run.
    #[error("cannot run {}{}", program.display(), as_whom(as_account.as_ref()))]
    Spawn {
        program: PathBuf,
        /// The account it runs as; none means this process's own.
        as_account: Option<Account>,
        source: io::Error,
    },
    /// A program that ran and failed.
    #[error("{} ended with {status} and said:\n{output}", program.display())]
    Failed { program: PathBuf, status: std::process::ExitStatus, output: String },
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A directory that something was to be made in: another account can change where its path
    /// leads to.
    #[error(transparent)]
    Untrusted(Box<TrustError>),
    /// A mount point.
    #[error(transparent)]
    Mount(#[from] MountError),
    /// A named device.
    #[error(transparent)]
    Safety(#[from] SafetyError),
    /// Something to be set on a device.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The user interrupted it.
    #[error("interrupted")]
    Interrupted,
}

impl Advice for StepError {
    fn help(&self) -> Option<String> {
        match self {
            Self::Journal(e) => e.help(),
            Self::Untrusted(e) => e.help(),
            Self::Mount(e) => e.help(),
            Self::Safety(e) => e.help(),
            Self::Setting(e) => e.help(),
            Self::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => Some(
                "free room there, or name another directory in `storage.<name>.directory`".into(),
            ),
            Self::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                Some("name a directory that you may write to, or run as root".into())
            }
            _ => None,
        }
    }

    fn kind(&self) -> FailureKind {
        match self {
            Self::Safety(e) => e.kind(),
            Self::Interrupted => FailureKind::Interrupted,
            _ => FailureKind::Host,
        }
    }
}

/// Returns ` as ACCOUNT`, or nothing for the own account.
pub(crate) fn as_whom(account: Option<&Account>) -> String {
    account.map_or_else(String::new, |a| format!(" as {a}"))
}

/// Returns the error of an attempt to do `what` on `path`.
pub fn io_error(what: &'static str, path: &Path, source: io::Error) -> StepError {
    StepError::Io { what, path: path.to_owned(), source }
}
