//! Why nothing was captured.

use std::io;
use std::path::PathBuf;

use pgdyno_connect::conninfo::ConninfoError;
use pgdyno_connect::control::{ControlError, error_text};
use pgdyno_dataset::workload::WorkloadError;
use pgdyno_engine::LoadError;
use pgdyno_engine::script::ScriptError;
use pgdyno_model::{Advice, FailureKind};

/// Why nothing was captured.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum CaptureError {
    /// The folder is there, with something in it.
    #[error("cannot capture into {}: it is not empty", .0.display())]
    NotEmpty(PathBuf),
    /// A file cannot be written.
    #[error("cannot write {}", path.display())]
    Write { path: PathBuf, source: io::Error },
    /// The folder holds no captured workload.
    #[error("cannot read {}: {why}", path.display())]
    NotCaptured { path: PathBuf, why: String },
    /// A file cannot be made.
    #[error("cannot write captured.json")]
    Json(#[source] serde_json::Error),
    /// A script of the folder cannot be parsed.
    #[error("cannot parse a script of the captured workload")]
    Script { source: ScriptError },
    /// The folder's workload cannot be read.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// A table of the workload is not on the server.
    #[error("cannot replay: the database has no table {table}")]
    NoTable { table: String },
    /// The load failed.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A fault of pgdyno's ended the load.
    #[error("the load ended by a fault of pgdyno's")]
    LoadPanicked,
    /// A signal came.
    #[error("interrupted")]
    Interrupted,
    /// The connection options cannot be understood.
    #[error(transparent)]
    Conninfo(#[from] ConninfoError),
    /// There is no connection.
    #[error(transparent)]
    Connect(#[from] ControlError),
    /// The extension is not in the database.
    #[error("cannot capture: the database has no extension pg_stat_statements")]
    NoExtension,
    /// The extension is older than the server.
    #[error("cannot capture: pg_stat_statements of the database is of an older PostgreSQL")]
    OldExtension,
    /// The library is not loaded.
    #[error("cannot capture: the server does not load pg_stat_statements")]
    NotLoaded,
    /// The role does not see statements of others.
    #[error("cannot capture: role {role} may not read the statistics of other roles")]
    NoRight { role: String },
    /// The schema is not there.
    #[error("cannot capture schema {0}: the database has no such schema")]
    NoSchema(String),
    /// No statement can be replayed.
    #[error("cannot capture schema {schema}: none of {statements} statements can be replayed")]
    NoStatements { schema: String, statements: usize },
    /// A statement of pgdyno's failed.
    #[error("cannot {what}: {why}")]
    Query { what: &'static str, why: String },
}

impl CaptureError {
    pub(crate) fn query(what: &'static str, error: &tokio_postgres::Error) -> Self {
        Self::Query { what, why: error_text(error) }
    }
}

impl Advice for CaptureError {
    fn help(&self) -> Option<String> {
        let help = match self {
            Self::NotEmpty(_) => "name a folder that is not there yet",
            Self::Write { .. } | Self::Json(_) | Self::Script { .. } | Self::Interrupted => {
                return None;
            }
            Self::LoadPanicked => "please report it",
            Self::NotCaptured { .. } => "name a folder that `pgdyno capture` wrote",
            Self::Workload(error) => return error.help(),
            Self::Load(error) => return error.help(),
            Self::NoTable { .. } => {
                "load the folder's tables into this database first, by `pgdyno load FOLDER`"
            }
            Self::OldExtension => "ALTER EXTENSION pg_stat_statements UPDATE",
            Self::Conninfo(error) => return error.help(),
            Self::Connect(error) => return error.help(),
            Self::NoExtension => {
                "CREATE EXTENSION pg_stat_statements in this database, and let the load run"
            }
            Self::NotLoaded => {
                "add pg_stat_statements to shared_preload_libraries, start the server again, and \
                 let the load run for a while"
            }
            Self::NoRight { role } => {
                return Some(format!(
                    "GRANT pg_read_all_stats TO {role}, or connect as another role"
                ));
            }
            Self::NoSchema(_) => "name another one by `--schema`",
            Self::NoStatements { .. } => {
                "let the load run for a while, name its schema by `--schema`, or take more \
                 statements by `--top`; ANALYZE tables without statistics, and GRANT SELECT on them"
            }
            Self::Query { .. } => return None,
        };
        Some(help.to_owned())
    }

    fn kind(&self) -> FailureKind {
        match self {
            Self::NotEmpty(_) | Self::NoSchema(_) => FailureKind::Input,
            Self::NotCaptured { .. } | Self::Script { .. } => FailureKind::Input,
            Self::Workload(error) => error.kind(),
            Self::Load(error) => error.kind(),
            Self::Interrupted => FailureKind::Interrupted,
            Self::Write { .. } | Self::Json(_) => FailureKind::Host,
            Self::Conninfo(error) => error.kind(),
            Self::Connect(error) => error.kind(),
            _ => FailureKind::Server,
        }
    }
}
