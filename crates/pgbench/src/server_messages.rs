//! Messages of the server and of the system, in libpq's words.

use pgdyno_connect::control::{ControlClient, error_text, server_error};

use crate::usage_error::UsageError;

/// Returns the server's `server_version_num`; 90400 if it does not tell.
pub(crate) fn server_version(client: &mut ControlClient) -> Result<u32, UsageError> {
    let query = "SHOW server_version_num";
    let rows = client.simple_query(query).map_err(|e| failed(&e, query))?;
    let number = rows.iter().find_map(|m| match m {
        tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0)?.parse().ok(),
        _ => None,
    });
    // A server without a version is taken for an old one.
    Ok(number.unwrap_or(90_400))
}

/// Creates the error of a statement that the server refused.
pub(crate) fn failed(error: &tokio_postgres::Error, query: &str) -> UsageError {
    UsageError::new(format!("query failed: {}", server_words(error, query)))
        .detail(format!("Query was: {query}"))
}

/// Returns the error that `query` met, as libpq words it.
pub(crate) fn server_words(error: &tokio_postgres::Error, query: &str) -> String {
    match error.as_db_error() {
        Some(db) => server_error(db).libpq_text(Some(query)),
        None => error_text(error),
    }
}

/// Returns the system's message for an error, without the number that Rust appends.
pub(crate) fn system_words(error: &std::io::Error) -> String {
    without_number(&error.to_string()).to_owned()
}

/// Returns `words` without the number of a system's error that Rust appends.
pub(crate) fn without_number(words: &str) -> &str {
    words.find(" (os error").map_or(words, |end| &words[..end])
}
