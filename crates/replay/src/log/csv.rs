//! Records of `csvlog`. Source of the format: PostgreSQL's documentation, "Using CSV-Format Log
//! Output".

use std::borrow::Cow;

use super::{LogError, LogRecord, LogTime};

/// Fields of the oldest server that is read (PostgreSQL 9.0 to 12).
const FEWEST: usize = 23;

/// Values of a record, reused for the next one.
#[derive(Debug, Default)]
pub(super) struct Fields {
    /// Unquoted values, one after the other.
    text: String,
    /// Ends of the values in `text`.
    ends: Vec<usize>,
}

impl Fields {
    fn get(&self, index: usize) -> &str {
        let begin = if index == 0 { Some(0) } else { self.ends.get(index - 1).copied() };
        let end = self.ends.get(index).copied();
        begin.zip(end).map_or("", |(begin, end)| &self.text[begin..end])
    }

    /// Takes `record` apart.
    fn split(&mut self, record: &str) -> Result<(), LogError> {
        self.text.clear();
        self.ends.clear();
        let mut rest = record;
        loop {
            rest = match rest.strip_prefix('"') {
                Some(quoted) => self.unquote(quoted)?,
                None => {
                    let end = rest.find(',').unwrap_or(rest.len());
                    self.text.push_str(&rest[..end]);
                    &rest[end..]
                }
            };
            self.ends.push(self.text.len());
            match rest.strip_prefix(',') {
                Some(next) => rest = next,
                None if rest.is_empty() => return Ok(()),
                None => return Err(LogError::Malformed("text follows a quoted value")),
            }
        }
    }

    /// Appends a value whose opening quote has been read; returns what follows its closing quote.
    fn unquote<'a>(&mut self, mut rest: &'a str) -> Result<&'a str, LogError> {
        loop {
            let at = rest.find('"').ok_or(LogError::Malformed("a quoted value does not end"))?;
            self.text.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            match rest.strip_prefix('"') {
                Some(after) => {
                    self.text.push('"');
                    rest = after;
                }
                None => return Ok(rest),
            }
        }
    }
}

/// Reads a record; `fields` holds its values.
pub(super) fn record<'a>(text: &str, fields: &'a mut Fields) -> Result<LogRecord<'a>, LogError> {
    fields.split(text)?;
    let fields = &*fields;
    if fields.ends.len() < FEWEST {
        return Err(LogError::Malformed("a record has too few fields for csvlog"));
    }
    let value = |index| Cow::Borrowed(fields.get(index));
    let number = fields.get(6).parse();
    Ok(LogRecord {
        line: 0,
        time: LogTime::read(fields.get(0))?,
        user: value(1),
        database: value(2),
        session: value(5),
        number: number.map_err(|_| LogError::Malformed("a record has no line number"))?,
        severity: value(11),
        sqlstate: value(12),
        message: value(13),
        detail: value(14),
        context: value(18),
        statement: value(19),
        backend: value(23),
        is_utf8: true,
    })
}
