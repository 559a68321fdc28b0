//! Messages of the server and of the system, in libpq's words.

use pgdyno_connect::control::ControlClient;
use pgdyno_engine::ServerError;
use postgres::error::{DbError, ErrorPosition};

use crate::usage_error::UsageError;

/// Returns the server's `server_version_num`; 90400 if it does not tell.
pub(crate) fn server_version(client: &mut ControlClient) -> Result<u32, UsageError> {
    let query = "SHOW server_version_num";
    let rows = client.simple_query(query).map_err(|e| failed(&e, query))?;
    let number = rows.iter().find_map(|m| match m {
        postgres::SimpleQueryMessage::Row(row) => row.get(0)?.parse().ok(),
        _ => None,
    });
    // What does not tell its version is taken for an old one.
    Ok(number.unwrap_or(90_400))
}

/// A statement that the server refused.
pub(crate) fn failed(error: &postgres::Error, query: &str) -> UsageError {
    UsageError::new(format!("query failed: {}", server_words(error, query)))
        .detail(format!("Query was: {query}"))
}

/// The error that `query` met, as libpq words it.
pub(crate) fn server_words(error: &postgres::Error, query: &str) -> String {
    match error.as_db_error() {
        Some(db) => server_error(db).libpq_text(Some(query)),
        None => pgdyno_connect::control::error_text(error),
    }
}

/// An error or a notice of the client library's, as a value of the codec's.
pub(crate) fn server_error(db: &DbError) -> ServerError {
    let (position, internal) = match db.position() {
        Some(ErrorPosition::Original(position)) => (Some(*position), None),
        Some(ErrorPosition::Internal { position, query }) => {
            (None, Some((*position, query.clone())))
        }
        None => (None, None),
    };
    let owned = |text: Option<&str>| text.map(str::to_owned);
    ServerError {
        severity: db.parsed_severity().map_or_else(|| db.severity().to_owned(), |s| s.to_string()),
        localized_severity: db.severity().to_owned(),
        code: db.code().code().to_owned(),
        message: db.message().to_owned(),
        detail: owned(db.detail()),
        hint: owned(db.hint()),
        position,
        internal_position: internal.as_ref().map(|(position, _)| *position),
        internal_query: internal.map(|(_, query)| query),
        context: owned(db.where_()),
    }
}

/// The system's words for an error, without the number that Rust appends.
pub(crate) fn system_words(error: &std::io::Error) -> String {
    without_number(&error.to_string()).to_owned()
}

/// `words` without the number of a system's error that Rust appends.
pub(crate) fn without_number(words: &str) -> &str {
    words.find(" (os error").map_or(words, |end| &words[..end])
}
