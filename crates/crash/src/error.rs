//! Why a crash test could not be carried out.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use pgdyno_emulated_disk::LogError;
use pgdyno_model::crash::States;
use pgdyno_model::units::{Bytes, Span};
use pgdyno_model::{Advice, FailureKind, Fault};
use thiserror::Error;

/// A crash test cannot be carried out on its storage or server.
#[derive(Debug, Error)]
pub(crate) enum CrashError {
    /// A disk refuses a request.
    #[error("cannot use the disk of storage `{storage}`")]
    Disk { storage: String, source: Box<dyn Error + Send + Sync> },
    /// The kernel does not say on which filesystem a directory lies.
    #[error("cannot tell the filesystem of {}", directory.display())]
    Filesystem { directory: PathBuf, source: io::Error },
    /// The log of a stretch may not find room.
    #[error(
        "cannot crash storage `{storage}`: recording it takes up to {needed} in {} ({data}), where \
         {free} are free",
        directory.display()
    )]
    NoLogRoom {
        storage: String,
        needed: Bytes,
        directory: PathBuf,
        /// Data that the log holds.
        data: String,
        free: Bytes,
    },
    /// A copy of a file of evidence may not find room.
    #[error(
        "a copy of {} takes {needed}, and {} has {free} free",
        file.display(), folder.display()
    )]
    NoCopyRoom { file: PathBuf, needed: Bytes, folder: PathBuf, free: Bytes },
    /// A file of evidence cannot be made or read.
    #[error("cannot {what} {}", path.display())]
    Io { what: &'static str, path: PathBuf, source: io::Error },
    /// The ledger cannot be written or read.
    #[error("cannot keep the ledger {}", path.display())]
    Ledger { path: PathBuf, source: io::Error },
    /// The load ended before its stretch was recorded.
    #[error("cannot crash {storage}: the load ended before the stretch was over: {said}")]
    EndedEarly {
        storage: String,
        /// The load's own message.
        said: String,
    },
    /// The log of a stretch cannot be read.
    #[error(transparent)]
    Log(LogError),
    /// The load has no backend that could be killed.
    #[error("cannot choose a backend: there is none")]
    NoBackend,
    /// No programs were installed for the version of a treatment.
    #[error("no programs of the treatment's version")]
    NoPrograms,
    /// No code injects a fault here.
    #[error("cannot crash {storage}: nothing brings the fault {fault} about here")]
    NoFault { storage: String, fault: Fault },
}

impl Advice for CrashError {
    fn help(&self) -> Option<String> {
        let help = match self {
            Self::NoLogRoom { .. } => {
                "free room there, shorten the load, or name a larger place: `--storage DIR`, in an \
                 experiment `directory` of the storage's backing"
            }
            Self::Ledger { .. } => {
                "its place is below XDG_STATE_HOME, which needs room and must not be the storage \
                 under test"
            }
            Self::EndedEarly { .. } => "the server's log and the room on the disk may tell why",
            Self::Log(_) => "record the stretch again",
            Self::NoPrograms | Self::NoFault { .. } => "this is a bug: please report it",
            Self::Disk { .. }
            | Self::Filesystem { .. }
            | Self::NoCopyRoom { .. }
            | Self::Io { .. }
            | Self::NoBackend => return None,
        };
        Some(help.to_owned())
    }

    fn kind(&self) -> FailureKind {
        match self {
            Self::NoLogRoom { .. } => FailureKind::Input,
            Self::Disk { .. } | Self::Filesystem { .. } => FailureKind::Storage,
            Self::EndedEarly { .. } => FailureKind::Load,
            Self::NoBackend => FailureKind::Server,
            Self::NoCopyRoom { .. }
            | Self::Io { .. }
            | Self::Ledger { .. }
            | Self::Log(_)
            | Self::NoPrograms
            | Self::NoFault { .. } => FailureKind::Host,
        }
    }
}

/// A recorded stretch of load cannot be judged on.
#[derive(Debug, Error)]
pub(crate) enum StretchError {
    /// No recorded stretch is kept, or none of the session that was named.
    #[error(
        "nothing to resume: no recorded load{} is kept in {}",
        named.as_ref().map_or_else(String::new, |named| format!(" of {named}")), folder.display()
    )]
    NoneKept {
        named: Option<String>,
        folder: PathBuf,
        /// Sessions whose stretches are kept.
        kept: Vec<String>,
    },
    /// The stretch belongs to a run.
    #[error("cannot resume {session} by itself: it belongs to run {run}")]
    PartOfRun { session: String, run: String },
    /// The session judged for as long as it was allowed.
    #[error("cannot resume {session}: its budget of {budget} is spent")]
    Spent { session: String, budget: Span },
    /// Other states were asked for than those that the session began with.
    #[error(
        "cannot resume {session} with `--exhaustive{}`: it began with `--exhaustive{}`",
        option(*asked), option(*recorded)
    )]
    OtherStates { session: String, asked: States, recorded: States },
    /// Another process judges the stretch.
    #[error("cannot resume {session}: another pgdyno judges its states now")]
    InUse { session: String },
    /// The stretch is missing, damaged, or of another version.
    #[error("cannot resume {session}: {found}")]
    Unreadable { session: String, found: String },
    /// The stretch was recorded with another server, settings or options.
    #[error("cannot {attempt}: {found}")]
    OtherSubject {
        /// The attempt, such as `resume power-1`.
        attempt: String,
        found: Difference,
    },
    /// The evidence of a state is missing, damaged, or of another version.
    #[error("cannot judge a state of {}: {found}", folder.display())]
    NoEvidence { folder: PathBuf, found: String },
}

/// Difference between the subject of a recorded stretch and another one.
#[derive(Debug, Error)]
pub(crate) enum Difference {
    /// The server is of another version.
    #[error("PostgreSQL {recorded} ran when it was recorded, and this is {found}")]
    Version { recorded: String, found: String },
    /// Settings or options are others.
    #[error("its settings or options were others")]
    Options,
}

/// Returns the value of `--exhaustive` that asks for `states`.
fn option(states: States) -> &'static str {
    if states == States::Flushes { "=flushes" } else { "" }
}

impl StretchError {
    /// Creates the error of a stretch of `session` that cannot be gone on with.
    pub(crate) fn unreadable(session: &str, found: impl Into<String>) -> Self {
        Self::Unreadable { session: session.to_owned(), found: found.into() }
    }
}

impl Advice for StretchError {
    fn help(&self) -> Option<String> {
        Some(match self {
            Self::NoneKept { kept, .. } if kept.is_empty() => {
                "a session whose states were all judged keeps none; begin one with `pgdyno crash \
                 --exhaustive --filesystem FS`"
                    .into()
            }
            Self::NoneKept { kept, .. } => format!("kept is that of {}", kept.join(", ")),
            Self::PartOfRun { run, .. } => format!("`pgdyno run --resume {run}` goes on with it"),
            Self::Spent { session, .. } => {
                format!("`pgdyno crash --resume {session} --budget 10m` gives it more")
            }
            Self::OtherStates { session, .. } => {
                format!("`pgdyno crash --resume {session}` judges the states that it began with")
            }
            Self::InUse { .. } => "wait until that is over, or end it".into(),
            Self::OtherSubject { found: Difference::Version { .. }, .. } => {
                "bring that version back, or record a stretch anew".into()
            }
            Self::Unreadable { .. } | Self::OtherSubject { .. } => {
                "record a stretch anew; `pgdyno clean --crashes` removes what is kept of this one"
                    .into()
            }
            Self::NoEvidence { .. } => {
                "name the folder that a report of `pgdyno crash --exhaustive` calls `kept`; \
                 `pgdyno disk-log` makes an image of a state"
                    .into()
            }
        })
    }

    fn kind(&self) -> FailureKind {
        FailureKind::Input
    }
}
