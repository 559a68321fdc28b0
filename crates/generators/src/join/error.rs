//! Errors of workers that dial their coordinator, and of the coordinator that awaits them.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use pgdyno_model::{Advice, FailureKind};
use thiserror::Error;

/// Error of a token file. No error shows the file's contents.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the names say it")]
pub enum TokenError {
    /// The file cannot be read.
    #[error("cannot read the token file {}: {error}", path.display())]
    Read {
        path: PathBuf,
        /// The system's words.
        error: io::Error,
    },
    /// The file cannot be written.
    #[error("cannot write the token file {}: {error}", path.display())]
    Write {
        path: PathBuf,
        /// The system's words.
        error: io::Error,
    },
    /// The file holds something other than a token.
    #[error("{} holds no token of a coordinator", .0.display())]
    NoToken(PathBuf),
    /// Another file is in the way.
    #[error(
        "cannot write the token file {}: there is such a file, and it is no leftover",
        .0.display()
    )]
    Exists(PathBuf),
    /// The file belongs to a coordinator that is still at work.
    #[error("the token file {} belongs to another coordinator, which is at work", .0.display())]
    InUse(PathBuf),
}

/// Why a worker could not join.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the names say it")]
pub enum JoinError {
    /// The token file cannot be used.
    #[error(transparent)]
    Token(TokenError),
    /// Nobody can be reached there.
    #[error("cannot reach a coordinator at {address}: {error}")]
    Connect {
        address: String,
        /// The system's words.
        error: io::Error,
    },
    /// Who answers has another certificate.
    #[error("the coordinator at {0} has another certificate than the one of the token")]
    Certificate(String),
    /// Who answers does not speak TLS, or not as we do.
    #[error("what answers at {address} is no coordinator: {reason}")]
    NoCoordinator { address: String, reason: String },
    /// The coordinator refuses this worker.
    #[error("the coordinator at {address} refuses this worker: {reason}")]
    Refused { address: String, reason: String },
    /// The coordinator ended before all workers had come.
    #[error("the coordinator at {address} ended before the load began: {error}")]
    Ended {
        address: String,
        /// The system's words.
        error: String,
    },
}

impl Advice for JoinError {
    fn help(&self) -> Option<String> {
        let help = match self {
            Self::Token(error) => return error.help(),
            Self::Connect { .. } => {
                "start the coordinator first; see whether a firewall is in between"
            }
            Self::Certificate(_) => {
                "take the token file that this coordinator wrote: each run has its own"
            }
            Self::NoCoordinator { .. } => "name the address that the coordinator listens on",
            Self::Refused { .. } | Self::Ended { .. } => return None,
        };
        Some(help.to_owned())
    }

    fn kind(&self) -> FailureKind {
        FailureKind::Generators
    }
}

impl Advice for TokenError {
    fn help(&self) -> Option<String> {
        let help = match self {
            Self::NoToken(_) => "name the file that the coordinator wrote (token=FILE)",
            Self::Exists(_) | Self::InUse(_) => "name another file with token=FILE",
            Self::Read { .. } | Self::Write { .. } => return None,
        };
        Some(help.to_owned())
    }

    fn kind(&self) -> FailureKind {
        FailureKind::Generators
    }
}

/// Why the workers of a load did not come together.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the names say it")]
pub enum GatherError {
    /// A token file cannot be written.
    #[error(transparent)]
    Token(TokenError),
    /// Nobody can dial us.
    #[error("cannot listen for workers on {address}: {error}")]
    Listen {
        address: String,
        /// The system's words.
        error: io::Error,
    },
    /// No certificate, secret or thread.
    #[error("cannot prepare for workers: {0}")]
    Prepare(io::Error),
    /// Some did not come in time.
    #[error("{came} of {asked} workers came within {} s{others}", .wait.as_secs_f64())]
    Late {
        /// Workers that came.
        came: usize,
        /// Workers that were asked for.
        asked: usize,
        /// Time in which they had to come.
        wait: Duration,
        /// Who came and who was refused, in words.
        others: String,
    },
    /// A worker that had come left.
    #[error("the worker on {host} left while others were awaited ({came} of {asked} had come)")]
    Left {
        host: String,
        /// Workers that had come.
        came: usize,
        /// Workers that were asked for.
        asked: usize,
    },
    /// The launcher of the workers cannot be started.
    #[error("workers cannot be started: {how}")]
    Start {
        how: String,
        /// Advice to the user.
        help: &'static str,
    },
    /// The launcher of the workers ended.
    #[error("{came} of {asked} workers came, and their launcher ended: {how}")]
    Launcher {
        /// Workers that had come.
        came: usize,
        /// Workers that were asked for.
        asked: usize,
        how: String,
        /// Advice to the user.
        help: &'static str,
    },
}

impl GatherError {
    /// Tells whether workers may come another time: only their coming failed.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self, Self::Late { .. } | Self::Left { .. } | Self::Launcher { .. })
    }
}

impl Advice for GatherError {
    fn help(&self) -> Option<String> {
        let help = match self {
            Self::Token(error) => return error.help(),
            Self::Listen { error, .. } if error.kind() == io::ErrorKind::AddrInUse => {
                "another coordinator or program listens there: name another port"
            }
            Self::Listen { .. } => "name an address of this machine and a free port",
            Self::Late { .. } => "see what became of the others, or allow more time (wait=5m)",
            Self::Left { .. } => "see its own words, on its host",
            Self::Start { help, .. } | Self::Launcher { help, .. } => help,
            Self::Prepare(_) => return None,
        };
        Some(help.to_owned())
    }

    fn kind(&self) -> FailureKind {
        FailureKind::Generators
    }
}
