//! Messages of the server and of the system, in libpq's words.

use pgdyno_connect::control::{ControlClient, error_text, server_error};

use crate::usage_error::UsageError;

/// Returns the version that the server announced, as `server_version_num`; 90400 if it told none.
pub(crate) fn server_version(client: &ControlClient) -> u32 {
    // A server without a version is taken for an old one.
    client.announced_version().and_then(version_number).unwrap_or(90_400)
}

/// Returns the number of a version: 150004 of `15.4 (Debian …)`, 90624 of `9.6.24`, 160000 of
/// `16beta1`.
fn version_number(text: &str) -> Option<u32> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let mut parts = text[..end].split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let (major, second, third) = (parts.next()?, parts.next(), parts.next());
    let number = match major {
        0 => return None,
        10.. => major.checked_mul(10_000)?.checked_add(second.unwrap_or(0))?,
        _ => major * 10_000 + second.unwrap_or(0).min(99) * 100 + third.unwrap_or(0).min(99),
    };
    Some(number)
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

#[cfg(test)]
mod tests {
    use super::version_number;

    #[test]
    fn versions_are_read_as_servers_announce_them() {
        for (text, number) in [
            ("15.4", Some(150_004)),
            ("15.4 (Debian 15.4-1)", Some(150_004)),
            ("16beta1", Some(160_000)),
            ("18devel", Some(180_000)),
            ("9.6.24", Some(90_624)),
            ("9.4beta2", Some(90_400)),
            ("13.0.0", Some(130_000)),
            ("99999999.1", None),
            ("", None),
            ("none", None),
        ] {
            assert_eq!(version_number(text), number, "{text}");
        }
    }
}
