//! Records of a server's log, as `csvlog` and `jsonlog` write them.
//!
//! [`LogReader`] takes bytes from anywhere and returns a [`LogRecord`] at a time.
//! [`LogEvent::read`] tells what a record's message says of a session: a statement, its duration,
//! its end.
//!
//! ```
//! use pgdyno_replay::log::{LogEvent, LogReader};
//!
//! let line = br#"{"timestamp":"2026-11-30 22:13:17.381 UTC","session_id":"6b0df4fd.7532",
//!     "line_num":3,"error_severity":"LOG","message":"statement: SELECT 1"}"#;
//! let mut line = line.to_vec();
//! line.retain(|byte| *byte != b'\n');
//! line.push(b'\n');
//! let mut reader = LogReader::new(line.as_slice());
//! let record = reader.next_record()?.unwrap();
//! assert_eq!(LogEvent::read(&record), LogEvent::Statement { text: "SELECT 1", duration: None });
//! # Ok::<(), pgdyno_replay::log::LogError>(())
//! ```

mod csv;
mod event;
mod json;
mod parameters;
mod time;

use std::borrow::Cow;
use std::io::{self, BufRead};

pub use event::LogEvent;
pub use parameters::{ParameterError, append_parameters};
pub use time::LogTime;

/// Longest record that is read (bytes).
const MAX_RECORD: usize = 256 << 20;

/// Record of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRecord<'a> {
    /// Line that it begins in, from 1.
    pub line: u64,
    /// When it was written.
    pub time: LogTime<'a>,
    /// Role of the session; empty before it is known.
    pub user: Cow<'a, str>,
    /// Database of the session; empty before it is known.
    pub database: Cow<'a, str>,
    /// Identifier of the session.
    pub session: Cow<'a, str>,
    /// Number of the record in its session, from 1.
    pub number: u64,
    /// `LOG`, `ERROR`, …, in the server's language.
    pub severity: Cow<'a, str>,
    /// SQLSTATE.
    pub sqlstate: Cow<'a, str>,
    /// Primary message.
    pub message: Cow<'a, str>,
    /// Detail; empty without one.
    pub detail: Cow<'a, str>,
    /// Context; empty without one.
    pub context: Cow<'a, str>,
    /// Statement that the message is about; empty without one.
    pub statement: Cow<'a, str>,
    /// Kind of process, such as `client backend`; empty before PostgreSQL 13.
    pub backend: Cow<'a, str>,
    /// Whether all bytes of the record are UTF-8. Others were replaced.
    pub is_utf8: bool,
}

/// Format of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// `log_destination = 'csvlog'`.
    Csv,
    /// `log_destination = 'jsonlog'`.
    Json,
}

impl LogFormat {
    /// Returns the format of a log that begins with `byte`.
    pub fn from_first_byte(byte: u8) -> Option<Self> {
        match byte {
            b'{' => Some(Self::Json),
            b'0'..=b'9' => Some(Self::Csv),
            _ => None,
        }
    }
}

/// A log cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The source of bytes failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The log begins neither as CSV nor as JSON does.
    #[error("it begins neither as csvlog nor as jsonlog does")]
    UnknownFormat,
    /// The last record is incomplete.
    #[error("the last record is cut off")]
    Cut,
    /// A record is none.
    #[error("{0}")]
    Malformed(&'static str),
    /// A record is longer than pgdyno reads.
    #[error("a record is longer than {} MiB", MAX_RECORD >> 20)]
    TooLong,
}

/// Reads the records of one log.
pub struct LogReader<R> {
    source: R,
    format: Option<LogFormat>,
    /// Bytes of the current record.
    bytes: Vec<u8>,
    fields: csv::Fields,
    /// The current record if it is not UTF-8, repaired.
    repaired: String,
    /// Line that the current record begins in, from 1.
    line: u64,
    /// Line that the next record begins in.
    next_line: u64,
}

impl<R: BufRead> LogReader<R> {
    /// Creates a reader of `source`, whose first byte tells the format.
    pub fn new(source: R) -> Self {
        Self {
            source,
            format: None,
            bytes: Vec::new(),
            fields: csv::Fields::default(),
            repaired: String::new(),
            line: 0,
            next_line: 1,
        }
    }

    /// Returns the line that the last record begins in, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Returns the next record; none at the end of the log.
    ///
    /// # Errors
    /// [`LogError`]. Nothing can be read after it.
    pub fn next_record(&mut self) -> Result<Option<LogRecord<'_>>, LogError> {
        let Some(format) = self.format()? else { return Ok(None) };
        if !self.read_record(format)? {
            return Ok(None);
        }
        let (text, is_utf8) = match std::str::from_utf8(&self.bytes) {
            Ok(text) => (text, true),
            Err(_) => {
                self.repaired = String::from_utf8_lossy(&self.bytes).into_owned();
                (self.repaired.as_str(), false)
            }
        };
        let record = match format {
            LogFormat::Csv => csv::record(text, &mut self.fields)?,
            LogFormat::Json => json::record(text)?,
        };
        Ok(Some(LogRecord { is_utf8, line: self.line, ..record }))
    }

    fn format(&mut self) -> Result<Option<LogFormat>, LogError> {
        if self.format.is_none() {
            let Some(first) = self.source.fill_buf()?.first().copied() else { return Ok(None) };
            self.line = 1;
            let format = LogFormat::from_first_byte(first).ok_or(LogError::UnknownFormat)?;
            self.format = Some(format);
        }
        Ok(self.format)
    }

    /// Reads the bytes of the next record, without its newline; returns false at the end.
    fn read_record(&mut self, format: LogFormat) -> Result<bool, LogError> {
        self.bytes.clear();
        self.line = self.next_line;
        let mut quotes = 0;
        loop {
            let from = self.bytes.len();
            let room = (MAX_RECORD - from) as u64;
            let read = io::Read::take(&mut self.source, room).read_until(b'\n', &mut self.bytes)?;
            if read == 0 && from == 0 {
                return Ok(false);
            }
            if self.bytes.last() != Some(&b'\n') || read == 0 {
                return Err(if read as u64 == room { LogError::TooLong } else { LogError::Cut });
            }
            self.next_line += 1;
            if format == LogFormat::Csv {
                quotes += self.bytes[from..].iter().filter(|byte| **byte == b'"').count();
            }
            // A quote that is not closed: the newline belongs to a value.
            if quotes % 2 == 0 {
                self.bytes.pop();
                return Ok(true);
            }
        }
    }
}

#[cfg(test)]
mod tests;
