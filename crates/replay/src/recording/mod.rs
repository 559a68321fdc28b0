//! Recordings: the sessions of a log, and the statements of each with their times.
//!
//! Texts are kept once, however often they were executed. A statement takes [`Statement`]'s 40
//! bytes and its parameters beside that.

mod builder;
mod files;
mod obstacle;
mod summary;
mod texts;

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pgdyno_wire::frontend::{Execution, Parameters};
use pgdyno_wire::{WireError, frontend};

pub use self::obstacle::{Obstacle, Obstacles, Place};
pub use self::summary::{ObstacleCount, RecordingSummary};
use self::texts::Texts;
use crate::error::RecordingError;

/// Rules for reading a log.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// Databases whose sessions are read; all if there are none.
    pub databases: Vec<String>,
    /// Whether the last record of a file may be cut off. It is left out then.
    pub allow_cut: bool,
    /// Whether parameters that end in `...` are whole: `log_parameter_max_length` was -1.
    pub whole_parameters: bool,
    /// Ends reading once it is set.
    pub stop: Option<Arc<AtomicBool>>,
}

/// Counts of a log's records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordCounts {
    /// Records of all kinds.
    pub records: u64,
    /// Records that say nothing of a session's statements, begin or end.
    pub ignored: u64,
    /// Records that the log lacks in the middle of a session, by its numbers.
    pub missing: u64,
    /// Files whose last record was cut off and left out.
    pub cut_files: u64,
}

/// Sessions of a log, by their begin.
#[derive(Debug)]
pub struct Recording {
    /// Sessions, those first that began first.
    pub sessions: Vec<Session>,
    /// Statements that cannot be replayed, which are not among the sessions'.
    pub obstacles: Obstacles,
    /// Counts of the log's records.
    pub counts: RecordCounts,
    /// Names of the databases, by [`Session::database`].
    pub databases: Vec<String>,
    /// Time from the first session's begin to the last one's end.
    pub span: Duration,
    texts: Texts,
    parameters: Vec<u8>,
    executions: Vec<NamedExecution>,
}

/// Session of a log.
#[derive(Debug, PartialEq)]
pub struct Session {
    /// Index of its database in [`Recording::databases`].
    pub database: usize,
    /// Begin, since the log's (microseconds).
    pub begin_us: u64,
    /// End, since the log's begin (microseconds).
    pub end_us: u64,
    /// Whether it had begun before the log did.
    pub was_under_way: bool,
    /// Statements in order.
    pub statements: Vec<Statement>,
}

/// Statement of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Begin, since the log's (microseconds).
    pub begin_us: u64,
    /// Offset of its parameters in the recording's.
    parameters: u64,
    /// Time that it took by the log (microseconds), at most an hour; [`UNKNOWN`] if not logged.
    duration_us: u32,
    text: u32,
    /// Index of its execution, or [`UNKNOWN`] for the simple protocol.
    execution: u32,
    /// SQLSTATE with which it failed; zeros if it did not.
    failure: [u8; 5],
    /// Whether it may remove prepared statements.
    removes_prepared: bool,
}

/// Stands for a value that a [`Statement`] does not have.
const UNKNOWN: u32 = u32::MAX;

/// How a prepared statement of a name is executed with a number of parameters.
#[derive(Debug)]
struct NamedExecution {
    name: String,
    /// Number of the name.
    name_id: u32,
    parameters: u16,
    messages: Execution,
}

impl Statement {
    /// Returns the time that it took by the log, if that was logged.
    pub fn duration(&self) -> Option<Duration> {
        (self.duration_us != UNKNOWN).then(|| Duration::from_micros(self.duration_us.into()))
    }

    /// Returns its begin and its duration together (microseconds).
    fn earliest_end(&self) -> u64 {
        let took = if self.duration_us == UNKNOWN { 0 } else { self.duration_us };
        self.begin_us + u64::from(took)
    }

    /// Returns the SQLSTATE with which it failed by the log, if it did.
    pub fn failure(&self) -> Option<[u8; 5]> {
        (self.failure != [0; 5]).then_some(self.failure)
    }

    /// Whether it is one of the extended protocol.
    pub fn is_extended(&self) -> bool {
        self.execution != UNKNOWN
    }

    /// Whether it may remove prepared statements of its session.
    pub(crate) fn removes_prepared(&self) -> bool {
        self.removes_prepared
    }

    /// Number of its text: equal texts have equal numbers.
    pub(crate) fn text_id(&self) -> u32 {
        self.text
    }
}

impl Recording {
    /// Reads the log in `paths`: one log's files, in any order. `-` alone is standard input.
    ///
    /// # Errors
    /// [`RecordingError`].
    pub fn read(paths: &[PathBuf], options: &ReadOptions) -> Result<Self, RecordingError> {
        files::read(paths, options)
    }

    /// Reads the log in `source`, which errors call `path`.
    ///
    /// # Errors
    /// [`RecordingError`].
    pub fn from_source(
        path: &Path,
        source: impl BufRead,
        options: &ReadOptions,
    ) -> Result<Self, RecordingError> {
        files::read_source(path, source, options)
    }

    /// Returns the text of `statement`.
    pub fn text(&self, statement: &Statement) -> &str {
        self.texts.get(statement.text)
    }

    /// Returns the name of the prepared statement that `statement` executes; empty for the unnamed
    /// one, none for the simple protocol.
    pub fn prepared_name(&self, statement: &Statement) -> Option<&str> {
        self.execution(statement).map(|execution| execution.name.as_str())
    }

    /// Returns the parameters of `statement`, as text; none for NULL.
    pub fn parameters(&self, statement: &Statement) -> Vec<Option<&[u8]>> {
        let count = self.execution(statement).map_or(0, |execution| execution.parameters);
        self.values(statement, count).collect()
    }

    /// Returns the number of statements.
    pub fn statement_count(&self) -> u64 {
        self.sessions.iter().map(|session| session.statements.len() as u64).sum()
    }

    /// Returns figures about the whole.
    pub fn summary(&self) -> RecordingSummary {
        RecordingSummary::new(self)
    }

    /// Returns the number of the name that `statement` is prepared under, with the name; none for
    /// the simple protocol and the unnamed statement, which are sent whole each time.
    pub(crate) fn kept_name(&self, statement: &Statement) -> Option<(u32, &str)> {
        let execution = self.execution(statement)?;
        (!execution.name.is_empty()).then_some((execution.name_id, execution.name.as_str()))
    }

    /// Appends the messages that execute `statement`, which is prepared if it is an extended one.
    ///
    /// # Errors
    /// The text is too long for a message.
    pub(crate) fn write(&self, statement: &Statement, out: &mut Vec<u8>) -> Result<(), WireError> {
        match self.execution(statement) {
            None => frontend::query(out, self.text(statement).as_bytes()),
            Some(execution) => execution.messages.write(out, true, |to| {
                let mut values = self.values(statement, execution.parameters);
                values.try_for_each(|value| write_value(to, value))
            }),
        }
    }

    fn execution(&self, statement: &Statement) -> Option<&NamedExecution> {
        self.executions.get(statement.execution as usize)
    }

    fn values(&self, statement: &Statement, count: u16) -> impl Iterator<Item = Option<&[u8]>> {
        let begin = usize::try_from(statement.parameters).unwrap_or(usize::MAX);
        let mut rest = self.parameters.get(begin..).unwrap_or_default();
        (0..count).map(move |_| {
            let (length, more) = rest.split_first_chunk::<4>()?;
            let length = usize::try_from(i32::from_be_bytes(*length)).ok();
            let (value, more) = more.split_at_checked(length.unwrap_or(0))?;
            rest = more;
            length.map(|_| value)
        })
    }
}

fn write_value(to: &mut Parameters<'_>, value: Option<&[u8]>) -> Result<(), WireError> {
    match value {
        Some(value) => to.text(|out| out.extend_from_slice(value)),
        None => to.null(),
    }
}

#[cfg(test)]
mod tests;
