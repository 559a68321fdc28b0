//! Errors of reading a log and of replaying it.

use std::path::PathBuf;

use pgdyno_connect::ConnectError;
use pgdyno_connect::conninfo::ConninfoError;
use pgdyno_connect::control::ControlError;
use pgdyno_engine::LoadError;
use pgdyno_model::{Advice, FailureKind};

use crate::log::LogError;
use crate::recording::Place;

/// A log cannot be made a recording.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum RecordingError {
    /// A file cannot be read, or is no log.
    #[error("cannot read the log {}{}: {cause}", path.display(), line_of(*line))]
    Read {
        path: PathBuf,
        /// Line that the record begins in; 0 if none was read.
        line: u64,
        /// Part of the message.
        cause: LogError,
    },
    /// A record of a session was read before.
    #[error(
        "cannot put the log in order: {}, line {}, repeats a record of session {session}",
        place.path.display(), place.line
    )]
    Repeated { place: Place, session: String },
    /// The clock of the log changed.
    #[error(
        "cannot tell the times of the log: its time zone changes from {before} to {after} in {}, \
         line {}",
        place.path.display(), place.line
    )]
    ZoneChanged { place: Place, before: String, after: String },
    /// No record tells of a statement.
    #[error("cannot find a statement in the log: none of {records} records tells of one")]
    NoStatements {
        records: u64,
        /// Databases that the log names.
        databases: Vec<String>,
    },
    /// A signal came.
    #[error("interrupted while the log was read")]
    Interrupted,
}

fn line_of(line: u64) -> String {
    if line == 0 { String::new() } else { format!(", line {line}") }
}

impl Advice for RecordingError {
    fn help(&self) -> Option<String> {
        match self {
            Self::Read { cause, .. } => match cause {
                LogError::UnknownFormat => Some(
                    "pgdyno reads what `log_destination = 'csvlog'` and `'jsonlog'` write; a log \
                     of `stderr` does not tell its sessions' statements for certain"
                        .into(),
                ),
                LogError::Cut => Some(
                    "the server still writes it, or the copy is incomplete: take the whole file, \
                     or leave its last record out with `--allow-cut`"
                        .into(),
                ),
                LogError::Malformed(_) => Some(
                    "take that record out of a copy of the file; a server that crashed may have \
                     left a piece of one"
                        .into(),
                ),
                LogError::Io(_) | LogError::TooLong => None,
            },
            Self::Repeated { .. } => Some(
                "name each file once, and not both the csvlog and the jsonlog of a server".into(),
            ),
            Self::ZoneChanged { .. } => Some(
                "replay the parts before and after by themselves; `log_timezone = 'UTC'` keeps \
                 one clock"
                    .into(),
            ),
            Self::NoStatements { databases, .. } if !databases.is_empty() => Some(format!(
                "it tells of databases {}; the server logs statements with `log_statement = 'all'` \
                 or `log_min_duration_statement = 0`, and in English with `lc_messages = 'C'`",
                databases.join(", ")
            )),
            Self::NoStatements { .. } => Some(
                "have the server log them: `log_statement = 'all'` or \
                 `log_min_duration_statement = 0`, and `lc_messages = 'C'`"
                    .into(),
            ),
            Self::Interrupted => None,
        }
    }

    fn kind(&self) -> FailureKind {
        match self {
            Self::Read { cause: LogError::Io(_), .. } => FailureKind::Host,
            Self::Interrupted => FailureKind::Interrupted,
            _ => FailureKind::Input,
        }
    }
}

/// A recording cannot be replayed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ReplayError {
    /// The connection options cannot be used.
    #[error(transparent)]
    Conninfo(#[from] ConninfoError),
    /// The server cannot be asked.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// Databases are missing.
    #[error(
        "cannot replay the log on {address}: it has no database {}",
        missing.join(", ")
    )]
    NoDatabase {
        address: String,
        /// Databases of the log that the server lacks.
        missing: Vec<String>,
    },
    /// The sessions of the log are more than may be connected.
    #[error(
        "cannot replay the log on {address}: {needed} of its sessions are connected at one time, \
         and {}",
        if *is_by_server { format!("the server has room for {limit}") }
        else { format!("at most {limit} are allowed") }
    )]
    TooManySessions {
        address: String,
        needed: usize,
        limit: usize,
        /// Whether the server sets the limit, not an option.
        is_by_server: bool,
    },
    /// No session could be connected before the replay began.
    #[error("cannot connect the sessions that the log begins with: {cause}")]
    Connect {
        /// Part of the message.
        cause: ConnectError,
    },
    /// The process may not open enough connections.
    #[error(transparent)]
    OpenFiles(LoadError),
    /// Polling of connections, or a thread, failed.
    #[error("cannot drive the connections: {cause}")]
    System { cause: std::io::Error },
    /// A signal came before anything was sent.
    #[error("interrupted before anything was sent")]
    Interrupted,
}

impl Advice for ReplayError {
    fn help(&self) -> Option<String> {
        match self {
            Self::Conninfo(error) => error.help(),
            Self::Control(error) => error.help(),
            Self::Connect { cause } => cause.help(),
            Self::OpenFiles(error) => error.help(),
            Self::NoDatabase { .. } => Some(
                "restore a copy of each, send all sessions to one with `--database`, or replay \
                 some with `--only-database`"
                    .into(),
            ),
            Self::TooManySessions { needed, is_by_server: true, .. } => Some(format!(
                "raise max_connections there, so that {needed} are free beside the reserved ones"
            )),
            Self::TooManySessions { needed, .. } => {
                Some(format!("allow {needed} with `--max-connections`"))
            }
            Self::System { .. } | Self::Interrupted => None,
        }
    }

    fn kind(&self) -> FailureKind {
        match self {
            Self::Conninfo(_) => FailureKind::Input,
            Self::Control(error) => error.kind(),
            Self::Connect { cause } => cause.kind(),
            Self::OpenFiles(error) => error.kind(),
            Self::NoDatabase { .. } | Self::TooManySessions { .. } => FailureKind::Server,
            Self::System { .. } => FailureKind::Host,
            Self::Interrupted => FailureKind::Interrupted,
        }
    }
}
