//! Advice: what kind of obstacle an error is, and what the user can do about it.
//!
//! Each error of a crate implements [`Advice`]. Whoever prints or stores the error asks it for kind
//! and help.
//!
//! ```
//! use pgdyno_model::advice::{Advice, FailureKind};
//!
//! #[derive(Debug)]
//! struct Full;
//!
//! impl std::fmt::Display for Full {
//!     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
//!         f.write_str("cannot write /mnt/log: no space is left")
//!     }
//! }
//!
//! impl std::error::Error for Full {}
//!
//! impl Advice for Full {
//!     fn help(&self) -> Option<String> {
//!         Some("free room there".into())
//!     }
//!
//!     fn kind(&self) -> FailureKind {
//!         FailureKind::Host
//!     }
//! }
//!
//! assert_eq!((Full.kind(), Full.help().as_deref()), (FailureKind::Host, Some("free room there")));
//! ```

use std::error::Error;
use std::fmt;

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// An error that says what kind of obstacle it is, and what the user can do.
pub trait Advice: Error + Send + Sync + 'static {
    /// Returns what the user can do, in the imperative and without a full stop, where that is
    /// known.
    fn help(&self) -> Option<String> {
        None
    }

    /// Returns the kind of obstacle: a file or program of this host, unless the error says
    /// otherwise.
    fn kind(&self) -> FailureKind {
        FailureKind::Host
    }
}

/// Kind of obstacle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The experiment or the command line has to be changed first, as for a storage that
    /// contradicts itself or a device that must not be written.
    Input,
    /// This machine cannot provide something at all: a kernel, a program or a privilege is missing.
    Unavailable,
    /// A signal asked to stop.
    Interrupted,
    /// A statement of pgdyno's own waited too long for a lock, a standby or another process.
    Wait,
    /// A storage could not be made, used or taken down.
    Storage,
    /// The server did not start, ended, or refused a connection, a setting or a statement.
    Server,
    /// The data set could not be loaded.
    Data,
    /// The load could not be offered to its end.
    Load,
    /// Generators on other hosts did not come together, or one of them failed.
    Generators,
    /// A file or program of this host failed.
    #[default]
    Host,
    /// Not known: an earlier version stored the failure as a text, or a later one its kind.
    #[serde(other)]
    Unknown,
}

/// A failure as records keep it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Kind of obstacle.
    pub kind: FailureKind,
    /// The attempt and the finding, with all causes.
    pub message: String,
    /// Advice to the user, where there is some.
    pub help: Option<String>,
}

impl Failure {
    /// Creates the failure `message` without advice.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), help: None }
    }

    /// Reads a failure as a store has it: JSON, or the text of an earlier version.
    pub fn from_stored(stored: String) -> Self {
        let read = stored.starts_with('{').then(|| serde_json::from_str(&stored).ok()).flatten();
        read.unwrap_or_else(|| Self::new(FailureKind::Unknown, stored))
    }
}

impl<E: Advice> From<&E> for Failure {
    fn from(error: &E) -> Self {
        Self { kind: error.kind(), message: with_causes(error), help: error.help() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.help.iter().try_for_each(|help| write!(f, " (help: {help})"))
    }
}

/// Returns the causes of `error`, each the cause of the one before.
pub fn causes(error: &dyn Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(error.source(), |&cause| cause.source())
}

/// Returns `error` with its causes, separated by `: `, for places where several complaints are
/// listed as text.
pub fn with_causes(error: &dyn Error) -> String {
    causes(error).fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_read_as_it_was_written_and_as_earlier_and_later_versions_write_it() {
        let help = Some("free room there".to_owned());
        let full = Failure { help, ..Failure::new(FailureKind::Storage, "cannot write: full") };
        let json = serde_json::to_string(&full).unwrap();
        assert_eq!(serde_json::from_str::<Failure>(&json).unwrap(), full);
        assert_eq!(full.to_string(), "cannot write: full (help: free room there)");
        assert_eq!(Failure::from_stored(json.clone()), full);
        for text in ["the server died", "\"quoted\" by a server", "{x} is no setting"] {
            let read = Failure::from_stored(text.to_owned());
            assert_eq!(read, Failure::new(FailureKind::Unknown, text));
        }
        let later = json.replace("storage", "quantum");
        let later: Failure = serde_json::from_str(&later).unwrap();
        assert_eq!((later.kind, later.message), (FailureKind::Unknown, full.message));
    }
}
