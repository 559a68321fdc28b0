//! Statements on a control connection.

use pgdyno_connect::control::Client;

use crate::BenchError;

/// Executes `sql`; `doing` says in messages what it is for.
///
/// # Errors
/// [`BenchError::Sql`], with the server's message.
pub fn execute(client: &mut Client, doing: &str, sql: &str) -> Result<(), BenchError> {
    client.batch_execute(sql).map_err(|e| BenchError::sql(doing, &e))
}

/// Executes the query `sql` and returns its only value, a bigint.
///
/// # Errors
/// [`BenchError::Sql`]: the server refuses, or the query does not return one bigint.
pub fn query_number(client: &mut Client, doing: &str, sql: &str) -> Result<i64, BenchError> {
    let failed = |found: String| BenchError::Sql { doing: doing.to_owned(), found };
    let row = client.query_one(sql, &[]).map_err(|e| BenchError::sql(doing, &e))?;
    row.try_get(0).map_err(|e| failed(format!("`{sql}` did not give one bigint ({e})")))
}

/// Executes the query `sql` and returns its only value, a text.
///
/// # Errors
/// As [`query_number`].
pub fn query_text(client: &mut Client, doing: &str, sql: &str) -> Result<String, BenchError> {
    let failed = |found: String| BenchError::Sql { doing: doing.to_owned(), found };
    let row = client.query_one(sql, &[]).map_err(|e| BenchError::sql(doing, &e))?;
    row.try_get(0).map_err(|e| failed(format!("`{sql}` did not give one text ({e})")))
}
