//! Events of sessions that a record's message tells.
//!
//! Messages are matched in English: servers with another `lc_messages` translate them.

use std::time::Duration;

use super::LogRecord;

/// Event of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogEvent<'a> {
    /// A query of the simple protocol. A duration says that it is done, else it begins.
    Statement {
        /// SQL.
        text: &'a str,
        /// Time that it took.
        duration: Option<Duration>,
    },
    /// An Execute of the extended protocol. A duration says that it is done, else it begins.
    Execute {
        /// Name of the prepared statement; empty for the unnamed one.
        name: &'a str,
        /// SQL.
        text: &'a str,
        /// Time that it took.
        duration: Option<Duration>,
    },
    /// A Bind of the extended protocol. Its parameters are those of the Execute that follows.
    Bind {
        /// Name of the prepared statement; empty for the unnamed one.
        name: &'a str,
        /// SQL.
        text: &'a str,
    },
    /// Time that the statement took whose begin was logged.
    Duration(Duration),
    /// A statement failed, or the session did.
    Failure,
    /// Somebody connected.
    Connection,
    /// The session is over.
    Disconnection,
    /// A replication command.
    Replication,
    /// Anything else.
    Other,
}

impl<'a> LogEvent<'a> {
    /// Reads the event of `record`.
    pub fn read(record: &'a LogRecord<'_>) -> Self {
        match record.severity.as_ref() {
            "LOG" => log_message(&record.message).unwrap_or(Self::Other),
            "ERROR" | "FATAL" | "PANIC" => Self::Failure,
            _ => Self::Other,
        }
    }
}

fn log_message(message: &str) -> Option<LogEvent<'_>> {
    if let Some(timed) = message.strip_prefix("duration: ") {
        let (number, rest) = timed.split_once(" ms")?;
        let milliseconds: f64 = number.parse().ok()?;
        let duration = Duration::try_from_secs_f64(milliseconds / 1e3).ok()?;
        if rest.is_empty() {
            return Some(LogEvent::Duration(duration));
        }
        return statement(rest.trim_start(), Some(duration));
    }
    if let Some(event) = statement(message, None) {
        return Some(event);
    }
    let begins = |prefix: &str| message.starts_with(prefix);
    if begins("connection received: ") || begins("connection authorized: ") {
        Some(LogEvent::Connection)
    } else if begins("disconnection: ") {
        Some(LogEvent::Disconnection)
    } else if begins("received replication command: ") {
        Some(LogEvent::Replication)
    } else {
        None
    }
}

fn statement(message: &str, duration: Option<Duration>) -> Option<LogEvent<'_>> {
    if let Some(text) = message.strip_prefix("statement: ") {
        return Some(LogEvent::Statement { text, duration });
    }
    // The rest of a result whose Execute was logged before; a replay fetches results whole.
    if message.starts_with("execute fetch from ") {
        return None;
    }
    if let Some(rest) = message.strip_prefix("execute ") {
        let (name, text) = named(rest)?;
        return Some(LogEvent::Execute { name, text, duration });
    }
    let (name, text) = named(message.strip_prefix("bind ")?)?;
    duration.map(|_| LogEvent::Bind { name, text })
}

/// Returns the name of a prepared statement and its SQL from `NAME: SQL` or `NAME/PORTAL: SQL`.
fn named(rest: &str) -> Option<(&str, &str)> {
    let (name, text) = rest.split_once(": ")?;
    let name = name.split_once('/').map_or(name, |(name, _)| name);
    Some((if name == "<unnamed>" { "" } else { name }, text))
}
