//! Control connections: pgdyno's own, beside the load.

use std::error::Error as _;
use std::time::Duration;

use pgdyno_model::target::{Address, Target};
use postgres::error::SqlState;
use postgres::{Client, Config, NoTls};

/// A control connection or one of its statements failed.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// No connection.
    #[error("cannot connect to {address} as {user}, database {database}: {why}")]
    Connect {
        /// Where.
        address: String,
        /// As whom.
        user: String,
        /// To which database.
        database: String,
        /// What the server or the system said.
        why: String,
        /// The server's SQLSTATE, where it was the server that refused.
        sqlstate: Option<String>,
    },
    /// A statement failed.
    #[error("cannot {what}: {why}")]
    Query {
        /// What it was for.
        what: &'static str,
        /// What the server said.
        why: String,
        /// The server's SQLSTATE, where it was the server that refused.
        sqlstate: Option<String>,
    },
}

impl ControlError {
    /// What to do.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        let Self::Connect { sqlstate, why, .. } = self else { return None };
        match sqlstate.as_deref() {
            Some("28P01" | "28000") => Some("check user and password, and the server's pg_hba.conf".into()),
            Some("3D000") => Some("make the database first (`createdb`), or name another one".into()),
            Some("53300") => Some("raise max_connections, or lower the number of clients".into()),
            Some(_) => None,
            None if why.contains("refused") || why.contains("No such file") => {
                Some("is the server running, and does it listen there?".into())
            }
            None => None,
        }
    }

    pub(crate) fn query(what: &'static str, error: &postgres::Error) -> Self {
        Self::Query { what, why: said(error), sqlstate: error.code().map(|c| c.code().to_owned()) }
    }
}

/// What the server, or else the system, said; with the server's detail and hint.
#[must_use]
pub fn said(error: &postgres::Error) -> String {
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
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        cause = inner.source();
    }
    text
}

/// Connects to `target`.
///
/// # Errors
/// [`ControlError::Connect`].
pub fn connect(target: &Target) -> Result<Client, ControlError> {
    connect_or_why(target).map_err(|e| refused(target, &e))
}

pub(crate) fn connect_or_why(target: &Target) -> Result<Client, postgres::Error> {
    let mut config = Config::new();
    config
        .user(&target.user)
        .dbname(&target.database)
        .application_name("pgdyno control")
        .connect_timeout(Duration::from_secs(30));
    match &target.address {
        Address::Unix { directory, port } => config.host_path(directory).port(*port),
        Address::Tcp { host, port } => config.host(host).port(*port),
    };
    if let Some(password) = &target.password {
        config.password(password.reveal());
    }
    let options: Vec<String> = target
        .settings
        .iter()
        .map(|(name, value)| format!("-c {name}={}", value.replace('\\', "\\\\").replace(' ', "\\ ")))
        .collect();
    if !options.is_empty() {
        config.options(&options.join(" "));
    }
    config.connect(NoTls)
}

pub(crate) fn refused(target: &Target, error: &postgres::Error) -> ControlError {
    ControlError::Connect {
        address: target.address.to_string(),
        user: target.user.clone(),
        database: target.database.clone(),
        why: said(error),
        sqlstate: error.code().map(|c| c.code().to_owned()),
    }
}

/// Whether the server answered that it is there and not ready yet.
pub(crate) fn is_starting_up(error: &postgres::Error) -> bool {
    error.code() == Some(&SqlState::CANNOT_CONNECT_NOW)
}
