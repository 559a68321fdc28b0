//! Why a load measured nothing.

use std::io;

use pgdyno_connect::ConnectError;
use pgdyno_model::{Advice, FailureKind};
use thiserror::Error;

use crate::program::ProgramError;

/// Why nothing was measured.
#[derive(Debug, Error)]
pub enum LoadError {
    /// A client could not connect.
    #[error("client {client}: {cause}")]
    Connect {
        /// Client's number, from 0.
        client: u32,
        /// Why it could not.
        cause: ConnectError,
    },
    /// The scripts cannot be run.
    #[error("cannot run the workload: {0}")]
    Program(ProgramError),
    /// All clients gave up before the window opened, which ended the load.
    #[error(
        "{aborted} of {clients} clients gave up before the measured window opened, which ended the \
         load: {}",
        reasons.join("; ")
    )]
    Aborted {
        /// Clients that gave up (count).
        aborted: u32,
        /// All clients (count).
        clients: u32,
        /// Reasons of the first clients that gave up.
        reasons: Vec<String>,
    },
    /// The stop flag was set before the window opened.
    #[error("the load was interrupted before the measured window opened")]
    Interrupted,
    /// A transaction log cannot be opened.
    #[error("cannot open the transactions' log: {0}")]
    Log(io::Error),
    /// The scripts do not set a variable that a ledger keeps.
    #[error("cannot keep a ledger of the load: its scripts have no variable `{0}`")]
    NoLedger(&'static str),
    /// A client's ledger cannot be opened.
    #[error("cannot keep a ledger of the load: {0}")]
    Ledger(io::Error),
    /// The load needs more open files than the process may have.
    #[error("need at least {needed} open files, but system limit is {limit}")]
    OpenFiles {
        /// Files that are needed (count).
        needed: u64,
        /// The process's hard limit (count).
        limit: u64,
    },
    /// The system refused a thread or an event loop.
    #[error("cannot run an event loop: {0}")]
    System(io::Error),
    /// A thread panicked: a bug in pgdyno.
    #[error("an event loop panicked: {0}")]
    Panicked(String),
}

impl Advice for LoadError {
    fn help(&self) -> Option<String> {
        match self {
            Self::Connect { cause, .. } => cause.help(),
            Self::Program(ProgramError::NothingToRun) => {
                Some("give a script, with a weight above 0".to_owned())
            }
            Self::OpenFiles { .. } => {
                Some("use fewer clients, or raise the limit (ulimit -Hn)".to_owned())
            }
            Self::System(e) if e.raw_os_error() == Some(24) => {
                Some("raise the limit of open files (ulimit -n), or use fewer clients".to_owned())
            }
            Self::Panicked(_) => Some("this is a bug: please report it".to_owned()),
            Self::Program(_)
            | Self::Aborted { .. }
            | Self::Interrupted
            | Self::Log(_)
            | Self::NoLedger(_)
            | Self::Ledger(_)
            | Self::System(_) => None,
        }
    }

    fn kind(&self) -> FailureKind {
        match self {
            Self::Interrupted | Self::Connect { cause: ConnectError::Interrupted { .. }, .. } => {
                FailureKind::Interrupted
            }
            _ => FailureKind::Load,
        }
    }
}
