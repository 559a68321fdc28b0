//! Records of `jsonlog`. Source of the format: PostgreSQL's documentation, "Using JSON-Format Log
//! Output".

use std::borrow::Cow;

use serde::Deserialize;

use super::{LogError, LogRecord, LogTime};

/// Keys of a record. The server leaves out what is empty.
#[derive(Deserialize)]
#[serde(default)]
struct Keys<'a> {
    // A timestamp has nothing to escape.
    timestamp: &'a str,
    #[serde(borrow)]
    user: Cow<'a, str>,
    #[serde(borrow)]
    dbname: Cow<'a, str>,
    #[serde(borrow)]
    session_id: Cow<'a, str>,
    line_num: u64,
    #[serde(borrow)]
    error_severity: Cow<'a, str>,
    #[serde(borrow)]
    state_code: Cow<'a, str>,
    #[serde(borrow)]
    message: Cow<'a, str>,
    #[serde(borrow)]
    detail: Cow<'a, str>,
    #[serde(borrow)]
    context: Cow<'a, str>,
    #[serde(borrow)]
    statement: Cow<'a, str>,
    #[serde(borrow)]
    backend_type: Cow<'a, str>,
}

impl Default for Keys<'_> {
    fn default() -> Self {
        let none = || Cow::Borrowed("");
        Self {
            timestamp: "",
            user: none(),
            dbname: none(),
            session_id: none(),
            line_num: 0,
            error_severity: none(),
            state_code: none(),
            message: none(),
            detail: none(),
            context: none(),
            statement: none(),
            backend_type: none(),
        }
    }
}

/// Reads a record.
pub(super) fn record(text: &str) -> Result<LogRecord<'_>, LogError> {
    let keys: Keys<'_> = serde_json::from_str(text)
        .map_err(|_| LogError::Malformed("a line is no JSON object of jsonlog"))?;
    if keys.session_id.is_empty() || keys.line_num == 0 {
        return Err(LogError::Malformed("a record has no session or no line number"));
    }
    Ok(LogRecord {
        line: 0,
        time: LogTime::read(keys.timestamp)?,
        user: keys.user,
        database: keys.dbname,
        session: keys.session_id,
        number: keys.line_num,
        severity: keys.error_severity,
        sqlstate: keys.state_code,
        message: keys.message,
        detail: keys.detail,
        context: keys.context,
        statement: keys.statement,
        backend: keys.backend_type,
        is_utf8: true,
    })
}
