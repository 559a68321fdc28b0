//! Statements on a control connection.

use pgdyno_connect::control::wait::{Waiting, wait_of};
use pgdyno_connect::control::{Client, error_text};
use pgdyno_model::{Advice, FailureKind};

use crate::BenchError;

/// A statement on a control connection failed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum SqlError {
    /// The server refused it, or did not answer.
    #[error("cannot {doing}: {}", error_text(error))]
    Refused {
        /// The statement's purpose, as a verb with its object.
        doing: String,
        error: tokio_postgres::Error,
    },
    /// It waited for somebody else until it was given up.
    #[error("cannot {doing}: the statement {waiting}")]
    Waits { doing: String, waiting: Waiting },
    /// It returned something else than one value of a type.
    #[error("cannot {doing}: `{sql}` did not give one {wanted} ({error})")]
    NoValue { doing: String, sql: String, wanted: &'static str, error: tokio_postgres::Error },
}

impl SqlError {
    /// Creates the error of a statement whose purpose was `doing`.
    pub fn new(doing: impl Into<String>, error: tokio_postgres::Error) -> Self {
        let doing = doing.into();
        match wait_of(&error).cloned() {
            Some(waiting) => Self::Waits { doing, waiting },
            None => Self::Refused { doing, error },
        }
    }
}

impl Advice for SqlError {
    fn help(&self) -> Option<String> {
        match self {
            Self::Waits { waiting, .. } => waiting.wait.help(),
            Self::Refused { .. } | Self::NoValue { .. } => None,
        }
    }

    fn kind(&self) -> FailureKind {
        match self {
            Self::Waits { .. } => FailureKind::Wait,
            Self::Refused { .. } | Self::NoValue { .. } => FailureKind::Server,
        }
    }
}

/// Executes `sql`; `doing` says in messages what it is for.
pub fn execute(client: &mut Client, doing: &str, sql: &str) -> Result<(), BenchError> {
    Ok(client.batch_execute(sql).map_err(|e| SqlError::new(doing, e))?)
}

/// Executes the query `sql` and returns its only value, a bigint.
pub fn query_number(client: &mut Client, doing: &str, sql: &str) -> Result<i64, BenchError> {
    let row = client.query_one(sql, &[]).map_err(|e| SqlError::new(doing, e))?;
    Ok(row.try_get(0).map_err(|error| no_value(doing, sql, "bigint", error))?)
}

/// Executes the query `sql` and returns its only value, a text.
pub fn query_text(client: &mut Client, doing: &str, sql: &str) -> Result<String, BenchError> {
    let row = client.query_one(sql, &[]).map_err(|e| SqlError::new(doing, e))?;
    Ok(row.try_get(0).map_err(|error| no_value(doing, sql, "text", error))?)
}

fn no_value(
    doing: &str,
    sql: &str,
    wanted: &'static str,
    error: tokio_postgres::Error,
) -> SqlError {
    SqlError::NoValue { doing: doing.to_owned(), sql: sql.to_owned(), wanted, error }
}
