//! Why a witness, or a session of the fault `plug`, could not go on.

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use pgdyno_exec::trust::TrustError;
use pgdyno_generators::protocol::frame::FrameError;
use pgdyno_model::{Advice, FailureKind};
use pgdyno_postgres::ClusterError;
use pgdyno_postgres::install::InstallError;
use thiserror::Error;

use super::local;

/// A session of the fault `plug` cannot begin, go on, or be judged.
#[derive(Debug, Error)]
pub(super) enum PlugError {
    /// The session that this machine keeps cannot be read or written.
    #[error(
        "cannot crash with a session of the fault `plug`: what this machine keeps of it in {} \
         cannot be used",
        path.display()
    )]
    Unusable { path: PathBuf, source: io::Error },
    /// Another account could change the session that this machine keeps.
    #[error("cannot crash with a session of the fault `plug`")]
    Untrusted(#[source] TrustError),
    /// A process still offers load for the session.
    #[error(
        "cannot crash {name}: process {pid} offers load for that already, and the machine was not \
         restarted"
    )]
    StillRunning { name: String, pid: i32 },
    /// pgdyno itself mounts the storage.
    #[error("cannot crash storage `{storage}`: nobody mounts it again when the machine comes back")]
    NotMountedAgain { storage: String },
    /// The witness has no open session of that id.
    #[error(
        "cannot crash {name} anew, whose session {id} waits for its judgement: the witness on \
         {host} {found}"
    )]
    NotOpen {
        name: String,
        id: String,
        host: String,
        /// State of the session at the witness, such as `has closed it`.
        found: &'static str,
    },
    /// The witness has an open session of this machine, which knows nothing of it.
    #[error(
        "cannot crash anything: the witness on {host} has the open session {id} of this machine: \
         what this machine kept of it, {}, is missing",
        local::path().display()
    )]
    NotKept { host: String, id: String },
    /// The programs that the session's server ran with are not there.
    #[error("cannot crash {name}: the programs it ran with are gone")]
    ProgramsGone { name: String, source: InstallError },
    /// The cluster of the session cannot be taken over.
    #[error(
        "cannot crash {name}: its cluster cannot be taken over{}",
        not_closed.as_ref().map_or_else(String::new, |why| {
            format!(", and its session stays open at the witness ({why})")
        })
    )]
    NotAdopted {
        name: String,
        source: ClusterError,
        /// Why the session could not be closed either.
        not_closed: Option<String>,
    },
    /// The witness cannot be started.
    #[error("cannot reach the witness on {host}")]
    Unreachable { host: String, source: io::Error },
    /// The witness did not do what it was asked.
    #[error("cannot {what} the witness on {host}: {found}")]
    Witness {
        /// The attempt, as a verb for the message.
        what: &'static str,
        host: String,
        found: String,
    },
}

impl Advice for PlugError {
    fn help(&self) -> Option<String> {
        Some(match self {
            Self::Unusable { path, .. } => {
                format!("remove {} if that session is given up", path.display())
            }
            Self::Untrusted(source) => return source.help(),
            Self::StillRunning { .. } => "pull the plug while it does, or end it first".into(),
            Self::NotMountedAgain { .. } => {
                "name a directory on the real filesystem with `--storage DIR`, without \
                 `--filesystem`"
                    .into()
            }
            Self::NotOpen { .. } => format!(
                "name the host and account that it began with, or give that session up: remove {}",
                local::path().display()
            ),
            Self::NotKept { id, .. } => format!(
                "bring that file back; or remove {id}.witness from the witness's directory if \
                 that session is given up"
            ),
            Self::ProgramsGone { .. } => "install them again where they were".into(),
            Self::NotAdopted { source, .. } => source.help().unwrap_or_else(|| {
                "what a pgdyno that was killed left behind goes at the next start of any other \
                 command of pgdyno's: this one has to be the first"
                    .into()
            }),
            Self::Unreachable { host, .. } => {
                format!("does `ssh {host}` work without a question?")
            }
            Self::Witness { host, .. } => {
                format!("`ssh {host}` has to stay connected, and the disk there to have room")
            }
        })
    }

    fn kind(&self) -> FailureKind {
        match self {
            Self::Unreachable { source, .. } if source.kind() == io::ErrorKind::Interrupted => {
                FailureKind::Interrupted
            }
            Self::Unreachable { .. } | Self::Witness { .. } => FailureKind::Generators,
            Self::ProgramsGone { .. } | Self::NotAdopted { .. } => FailureKind::Server,
            Self::Unusable { .. }
            | Self::Untrusted(_)
            | Self::StillRunning { .. }
            | Self::NotMountedAgain { .. }
            | Self::NotOpen { .. }
            | Self::NotKept { .. } => FailureKind::Input,
        }
    }
}

/// A witness cannot go on keeping ledgers.
#[derive(Debug, Error)]
pub(super) enum WitnessError {
    /// The directory of ledgers cannot be used.
    #[error("cannot keep ledgers in {}", directory.display())]
    Directory { directory: PathBuf, source: Box<dyn Error + Send + Sync> },
    /// The connection or a ledger failed.
    #[error("cannot go on as a witness")]
    Ledger(#[source] FrameError),
    /// The machine under test is silent.
    #[error(
        "the machine under test has said nothing for {} s; its ledger is in {}",
        patience.as_secs(), directory.display()
    )]
    Silent { patience: Duration, directory: PathBuf },
}

impl Advice for WitnessError {}
