//! Statements on a control connection.

use pgdyno_connect::control::Client;

use crate::LabError;

/// Executes `sql`; `doing` says in messages what it is for.
///
/// # Errors
/// [`LabError::Sql`], with the server's message.
pub(crate) fn execute(client: &mut Client, doing: &str, sql: &str) -> Result<(), LabError> {
    client.batch_execute(sql).map_err(|e| LabError::sql(doing, &e))
}

/// Executes the query `sql` and returns its only value, a bigint.
///
/// # Errors
/// [`LabError::Sql`]: the server refuses, or the query does not return one bigint.
pub(crate) fn query_number(client: &mut Client, doing: &str, sql: &str) -> Result<i64, LabError> {
    let failed = |found: String| LabError::Sql { doing: doing.to_owned(), found };
    let row = client.query_one(sql, &[]).map_err(|e| LabError::sql(doing, &e))?;
    row.try_get(0).map_err(|e| failed(format!("`{sql}` did not give one bigint ({e})")))
}

/// Executes the query `sql` and returns its only value, a text.
///
/// # Errors
/// As [`query_number`].
pub(crate) fn query_text(client: &mut Client, doing: &str, sql: &str) -> Result<String, LabError> {
    let failed = |found: String| LabError::Sql { doing: doing.to_owned(), found };
    let row = client.query_one(sql, &[]).map_err(|e| LabError::sql(doing, &e))?;
    row.try_get(0).map_err(|e| failed(format!("`{sql}` did not give one text ({e})")))
}
