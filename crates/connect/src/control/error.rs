//! Errors of control connections and their statements.

use pgdyno_model::advice::causes;
use pgdyno_model::{Advice, FailureKind};
use pgdyno_wire::ServerError;
use tokio_postgres::error::{DbError, ErrorPosition, SqlState};

use super::wait::{Waiting, wait_of};
use crate::error::ConnectError;

/// A control connection or one of its statements failed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ControlError {
    /// There is no connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A pooler in front of the server drops or refuses settings of the session.
    #[error(
        "{address} does not pass the session's settings on to the server, as a pooler does not"
    )]
    Pooled {
        /// The address that was connected to.
        address: String,
    },
    /// Each of several servers failed.
    #[error(
        "none of {} servers serves: {}",
        errors.len(), errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    )]
    NoneServes { errors: Vec<ControlError> },
    /// A statement failed, or its answer has another shape than asked for.
    #[error("cannot {what}: {why}")]
    Query {
        /// Purpose of the statement, as a verb with its object.
        what: &'static str,
        /// The server's or the system's error.
        why: String,
        /// The server's SQLSTATE, where the server refused.
        sqlstate: Option<String>,
    },
    /// A statement waited for somebody else until it was given up.
    #[error("cannot {what}: the statement {waiting}")]
    Waits {
        /// Purpose of the statement, as a verb with its object.
        what: &'static str,
        /// Wait, with its length so far.
        waiting: Waiting,
    },
}

impl ControlError {
    /// Returns the SQLSTATE, where the server refused.
    pub fn sqlstate(&self) -> Option<&str> {
        match self {
            Self::Connect(error) => error.sqlstate(),
            Self::Query { sqlstate, .. } => sqlstate.as_deref(),
            Self::Pooled { .. } | Self::NoneServes { .. } | Self::Waits { .. } => None,
        }
    }

    /// Whether the server asks for a password and there is none.
    pub fn needs_password(&self) -> bool {
        match self {
            Self::Connect(error) => error.needs_password(),
            Self::NoneServes { errors } => errors.iter().any(Self::needs_password),
            Self::Pooled { .. } | Self::Query { .. } | Self::Waits { .. } => false,
        }
    }

    /// Whether the server itself refused, and not because it is starting up or shutting down.
    pub fn is_refusal(&self) -> bool {
        self.sqlstate().is_some_and(|code| code != SqlState::CANNOT_CONNECT_NOW.code())
    }

    /// Whether the server runs and cannot serve this database: it is damaged, or not there.
    pub fn is_of_database(&self) -> bool {
        // Of the connection, of who may connect, of resources, and of what an operator does.
        const OTHERS: [&str; 4] = ["08", "28", "53", "57"];
        self.sqlstate().is_some_and(|code| !OTHERS.iter().any(|class| code.starts_with(class)))
    }

    /// Creates the error of a statement, which was to do `what`.
    pub fn query(what: &'static str, error: &tokio_postgres::Error) -> Self {
        if let Some(waiting) = wait_of(error) {
            return Self::Waits { what, waiting: waiting.clone() };
        }
        let sqlstate = error.code().map(|c| c.code().to_owned());
        Self::Query { what, why: error_text(error), sqlstate }
    }

    /// Whether the search among several servers ends with this error.
    pub(crate) fn ends_search(&self) -> bool {
        match self {
            Self::Connect(error) => error.ends_search(),
            _ => self.is_refusal(),
        }
    }
}

impl Advice for ControlError {
    fn help(&self) -> Option<String> {
        match self {
            Self::Connect(error) => error.help(),
            Self::Pooled { .. } => Some("connect to the server itself, past the pooler".into()),
            Self::NoneServes { errors } => errors.iter().find_map(Self::help),
            Self::Waits { waiting, .. } => waiting.wait.help(),
            Self::Query { .. } => None,
        }
    }

    fn kind(&self) -> FailureKind {
        match self {
            Self::Connect(error) => error.kind(),
            Self::Waits { .. } => FailureKind::Wait,
            _ => FailureKind::Server,
        }
    }
}

/// Returns the server's message with its detail and hint, or else the system's error and its
/// causes.
pub fn error_text(error: &tokio_postgres::Error) -> String {
    if let Some(db) = error.as_db_error() {
        let mut text = db.message().to_owned();
        for (label, more) in [("detail", db.detail()), ("hint", db.hint())] {
            if let Some(more) = more {
                text = format!("{text} ({label}: {more})");
            }
        }
        return text;
    }
    let mut text = error.to_string();
    for cause in causes(error).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// Converts an error or a notice of the client library.
pub fn server_error(error: &DbError) -> ServerError {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    let (position, internal_position, internal_query) = match error.position() {
        Some(ErrorPosition::Original(at)) => (Some(*at), None, None),
        Some(ErrorPosition::Internal { position, query }) => {
            (None, Some(*position), Some(query.clone()))
        }
        None => (None, None, None),
    };
    ServerError {
        severity: error
            .parsed_severity()
            .map_or_else(|| error.severity().to_owned(), |severity| severity.to_string()),
        localized_severity: error.severity().to_owned(),
        code: error.code().code().to_owned(),
        message: error.message().to_owned(),
        detail: owned(error.detail()),
        hint: owned(error.hint()),
        position,
        internal_position,
        internal_query,
        context: owned(error.where_()),
    }
}
