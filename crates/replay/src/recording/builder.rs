//! Builds a recording from a log's records, one after the other.
//!
//! A statement may be logged when it begins (`log_statement`), when it is done
//! (`log_min_duration_statement`), or both times; and once more if it fails. [`Builder::add`]
//! makes one statement of all that.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use pgdyno_wire::frontend::Execution;

use super::texts::Texts;
use super::{
    NamedExecution, Obstacle, Obstacles, Place, ReadOptions, RecordCounts, Recording, Session,
    Statement, UNKNOWN,
};
use crate::error::RecordingError;
use crate::log::{LogEvent, LogRecord, ParameterError, append_parameters};
use crate::sql::SqlFacts;

/// Longest duration that is kept (microseconds).
const LONGEST: u32 = 3_600_000_000;

/// A recording in the making. Times are microseconds since 1970 until [`Builder::finish`].
pub(super) struct Builder<'a> {
    options: &'a ReadOptions,
    sessions: Vec<OpenSession>,
    /// Index of each session by its identifier.
    by_id: HashMap<Box<str>, usize>,
    /// Time zone of the log where its name does not tell the distance from UTC.
    zone: Option<Option<Box<str>>>,
    databases: Vec<String>,
    texts: Texts,
    /// Facts about each text.
    facts: Vec<SqlFacts>,
    parameters: Vec<u8>,
    executions: Vec<NamedExecution>,
    /// Index of each execution by name and number of parameters.
    by_name: HashMap<Box<str>, Vec<u32>>,
    obstacles: Obstacles,
    counts: RecordCounts,
}

/// A session whose end has not been read.
struct OpenSession {
    /// Index of the database once a record named it, and whether its sessions are read.
    database: Option<(usize, bool)>,
    /// Number of its last record.
    number: u64,
    session: Session,
    /// Statement whose begin was logged and whose end was not.
    pending: Option<Pending>,
    /// Last Bind, until it is executed.
    bound: Option<Bound>,
}

/// A statement that is under way.
struct Pending {
    text: u32,
    /// Index of the statement; none if it cannot be replayed.
    index: Option<usize>,
}

/// Statement and parameters of a Bind.
struct Bound {
    text: u32,
    parts: Parts,
}

/// Parts of a statement beside its text.
#[derive(Clone, Copy)]
struct Parts {
    execution: u32,
    parameters: u64,
}

/// The simple protocol has no parts.
const SIMPLE: Parts = Parts { execution: UNKNOWN, parameters: 0 };

/// Times of a statement.
struct Times {
    /// Begin (microseconds since 1970).
    begin: u64,
    duration: Option<Duration>,
}

impl Times {
    /// Returns the times of a statement that began at `written`, or had taken `duration` then.
    fn new(written: u64, duration: Option<Duration>) -> Self {
        let took = duration.map_or(0, |duration| u64::from(micros(duration)));
        Self { begin: written.saturating_sub(took), duration }
    }
}

fn micros(duration: Duration) -> u32 {
    u32::try_from(duration.as_micros()).map_or(LONGEST, |us| us.min(LONGEST))
}

impl<'a> Builder<'a> {
    pub(super) fn new(options: &'a ReadOptions) -> Self {
        Self {
            options,
            sessions: Vec::new(),
            by_id: HashMap::new(),
            zone: None,
            databases: Vec::new(),
            texts: Texts::default(),
            facts: Vec::new(),
            parameters: Vec::new(),
            executions: Vec::new(),
            by_name: HashMap::new(),
            obstacles: Obstacles::default(),
            counts: RecordCounts::default(),
        }
    }

    /// Whether a file may end in the middle of a record.
    pub(super) fn allows_cut(&self) -> bool {
        self.options.allow_cut
    }

    /// Notes that a file ended in the middle of a record.
    pub(super) fn note_cut(&mut self) {
        self.counts.cut_files += 1;
    }

    /// Adds a record of the file `path`. Records of a session must come in their order.
    pub(super) fn add(
        &mut self,
        record: &LogRecord<'_>,
        path: &Path,
    ) -> Result<(), RecordingError> {
        if self.options.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            return Err(RecordingError::Interrupted);
        }
        self.counts.records += 1;
        let event = LogEvent::read(record);
        let place = || Place { path: path.to_owned(), line: record.line };
        if event == LogEvent::Replication {
            self.obstacles.add(Obstacle::Replication, place);
            return Ok(());
        }
        let is_client = matches!(&*record.backend, "client backend" | "not initialized" | "");
        if !is_client || record.session.is_empty() {
            self.counts.ignored += 1;
            return Ok(());
        }
        self.check_zone(record, path)?;
        let at = u64::try_from(record.time.micros).unwrap_or(0);
        let index = self.session(record, at);
        let last = self.sessions[index].number;
        if record.number <= last {
            let session = record.session.clone().into_owned();
            return Err(RecordingError::Repeated { place: place(), session });
        }
        let missing = if last == 0 { 0 } else { record.number - last - 1 };
        self.counts.missing = self.counts.missing.saturating_add(missing);
        let open = &mut self.sessions[index];
        open.number = record.number;
        open.session.end_us = open.session.end_us.max(at);
        if open.database.is_some_and(|(_, is_read)| !is_read) {
            self.counts.ignored += 1;
            return Ok(());
        }
        self.apply(index, record, event, at, place);
        Ok(())
    }

    /// Checks that the record's clock is that of the records before.
    fn check_zone(&mut self, record: &LogRecord<'_>, path: &Path) -> Result<(), RecordingError> {
        let zone = record.time.zone;
        let known = self.zone.get_or_insert_with(|| zone.map(Into::into));
        if known.as_deref() == zone {
            return Ok(());
        }
        Err(RecordingError::ZoneChanged {
            place: Place { path: path.to_owned(), line: record.line },
            before: known.as_deref().unwrap_or("UTC").to_owned(),
            after: zone.unwrap_or("UTC").to_owned(),
        })
    }

    /// Returns the index of the record's session, which begins with it unless it is known.
    fn session(&mut self, record: &LogRecord<'_>, at: u64) -> usize {
        let index = match self.by_id.get(&*record.session) {
            Some(index) => *index,
            None => {
                self.by_id.insert((*record.session).into(), self.sessions.len());
                let session = Session {
                    database: 0,
                    begin_us: at,
                    end_us: at,
                    was_under_way: record.number > 1,
                    statements: Vec::new(),
                };
                let new =
                    OpenSession { database: None, number: 0, session, pending: None, bound: None };
                self.sessions.push(new);
                self.sessions.len() - 1
            }
        };
        if self.sessions[index].database.is_none() && !record.database.is_empty() {
            self.sessions[index].database = Some(self.database(&record.database));
        }
        index
    }

    /// Returns the index of a database, and whether its sessions are to be read.
    fn database(&mut self, name: &str) -> (usize, bool) {
        let chosen = &self.options.databases;
        let is_read = chosen.is_empty() || chosen.iter().any(|other| other == name);
        let known = self.databases.iter().position(|other| other == name);
        let index = known.unwrap_or_else(|| {
            self.databases.push(name.to_owned());
            self.databases.len() - 1
        });
        (index, is_read)
    }

    /// Applies an event that was logged at `at` to its session.
    fn apply(
        &mut self,
        index: usize,
        record: &LogRecord<'_>,
        event: LogEvent<'_>,
        at: u64,
        place: impl FnOnce() -> Place,
    ) {
        match event {
            LogEvent::Statement { text, duration } => {
                let text = self.intern(text);
                let parts = self.checked(record, text, SIMPLE);
                self.statement(index, text, parts, &Times::new(at, duration), place);
            }
            LogEvent::Execute { name, text, duration } => {
                let text = self.intern(text);
                let detail = record.detail.split_once("arameters: ").map(|(_, list)| list);
                let parts = self.extended(name, text, detail);
                let parts = parts.and_then(|parts| self.checked(record, text, parts));
                self.statement(index, text, parts, &Times::new(at, duration), place);
            }
            LogEvent::Bind { name, text } => {
                let text = self.intern(text);
                let detail = record.detail.split_once("arameters: ").map(|(_, list)| list);
                // If it is executed, that tells what is wrong with its parameters.
                let parts = self.extended(name, text, detail).ok();
                self.sessions[index].bound = parts.map(|parts| Bound { text, parts });
            }
            LogEvent::Duration(duration) => {
                let open = &mut self.sessions[index];
                if let Some(Pending { index: Some(index), .. }) = open.pending.take() {
                    open.session.statements[index].duration_us = micros(duration);
                }
            }
            LogEvent::Failure => self.failure(index, record, at, place),
            LogEvent::Connection | LogEvent::Disconnection => {}
            LogEvent::Replication | LogEvent::Other => self.counts.ignored += 1,
        }
    }

    /// Notes that the session's statement failed, which may not have been logged before.
    fn failure(
        &mut self,
        index: usize,
        record: &LogRecord<'_>,
        at: u64,
        place: impl FnOnce() -> Place,
    ) {
        let is_unnamed = record.statement.is_empty();
        let text = if is_unnamed { UNKNOWN } else { self.intern(&record.statement) };
        let code = record.sqlstate.as_bytes().try_into().unwrap_or(*b"XX000");
        let open = &mut self.sessions[index];
        let bound = open.bound.take().filter(|bound| bound.text == text);
        if let Some(pending) = open.pending.take_if(|p| is_unnamed || p.text == text) {
            if let Some(index) = pending.index {
                open.session.statements[index].failure = code;
            }
            return;
        }
        if is_unnamed {
            self.counts.ignored += 1;
            return;
        }
        let logged = record.context.split_once("with parameters: ");
        let logged = logged.map(|(_, list)| list.split('\n').next().unwrap_or(list));
        let parts = match bound {
            Some(bound) => Ok(bound.parts),
            None if self.facts[text as usize].parameters > 0 => self.extended("", text, logged),
            None => Ok(SIMPLE),
        };
        let parts = parts.and_then(|parts| self.checked(record, text, parts));
        self.statement(index, text, parts, &Times::new(at, None), place);
        let open = &mut self.sessions[index];
        if let Some(Pending { index: Some(index), .. }) = open.pending.take() {
            open.session.statements[index].failure = code;
        }
    }

    fn intern(&mut self, text: &str) -> u32 {
        let (number, is_new) = self.texts.intern(text);
        if is_new {
            self.facts.push(SqlFacts::read(text));
        }
        number
    }

    /// Returns the parts of an extended statement with the parameters in `detail`.
    fn extended(&mut self, name: &str, text: u32, detail: Option<&str>) -> Result<Parts, Obstacle> {
        let begin = self.parameters.len();
        let may_be_cut = !self.options.whole_parameters;
        let count = match detail {
            Some(list) => append_parameters(list, may_be_cut, &mut self.parameters),
            None => Ok(0),
        };
        let count = count.map_err(|error| match error {
            ParameterError::Cut => Obstacle::ParametersCut,
            ParameterError::Unreadable => Obstacle::ParametersUnreadable,
        })?;
        if count < self.facts[text as usize].parameters {
            self.parameters.truncate(begin);
            return Err(Obstacle::ParametersNotLogged);
        }
        let execution = self.execution(name, count).ok_or(Obstacle::NotUtf8)?;
        Ok(Parts { execution, parameters: begin as u64 })
    }

    /// Returns the index of the execution of a statement of a name, which may be new.
    fn execution(&mut self, name: &str, parameters: u16) -> Option<u32> {
        let of_name = self.by_name.get(name).map_or(&[][..], Vec::as_slice);
        let has = |index: &&u32| self.executions[**index as usize].parameters == parameters;
        if let Some(index) = of_name.iter().find(has) {
            return Some(*index);
        }
        let messages = Execution::new(name, parameters, false).ok()?;
        let index = u32::try_from(self.executions.len()).ok()?;
        let name_id = of_name.first().copied().unwrap_or(index);
        let name = name.to_owned();
        self.by_name.entry(name.as_str().into()).or_default().push(index);
        self.executions.push(NamedExecution { name, name_id, parameters, messages });
        Some(index)
    }

    /// Returns `parts` unless the text itself cannot be replayed.
    fn checked(&self, record: &LogRecord<'_>, text: u32, parts: Parts) -> Result<Parts, Obstacle> {
        if !record.is_utf8 || self.texts.get(text).contains('\0') {
            Err(Obstacle::NotUtf8)
        } else if self.facts[text as usize].reads_copy_data {
            Err(Obstacle::CopyData)
        } else if self.facts[text as usize].changes_encoding {
            Err(Obstacle::ClientEncoding)
        } else {
            Ok(parts)
        }
    }

    /// Adds a statement, or what stands in its way.
    fn statement(
        &mut self,
        index: usize,
        text: u32,
        parts: Result<Parts, Obstacle>,
        times: &Times,
        place: impl FnOnce() -> Place,
    ) {
        let open = &mut self.sessions[index];
        open.bound = None;
        let statements = &mut open.session.statements;
        let added = match parts {
            Ok(parts) => {
                // The log rounds its times down. A statement began when the one before was done,
                // at the earliest.
                let before = statements.last().map_or(0, Statement::earliest_end);
                open.session.begin_us = open.session.begin_us.min(times.begin);
                statements.push(Statement {
                    begin_us: times.begin.max(before),
                    parameters: parts.parameters,
                    duration_us: times.duration.map_or(UNKNOWN, micros),
                    text,
                    execution: parts.execution,
                    failure: [0; 5],
                    removes_prepared: self.facts[text as usize].removes_prepared,
                });
                Some(statements.len() - 1)
            }
            Err(obstacle) => {
                self.obstacles.add(obstacle, place);
                None
            }
        };
        let pending = Pending { text, index: added };
        open.pending = times.duration.is_none().then_some(pending);
    }

    /// Returns the recording, its times counted from its begin.
    pub(super) fn finish(mut self) -> Result<Recording, RecordingError> {
        let mut sessions = Vec::with_capacity(self.sessions.len());
        for open in self.sessions {
            let Some((database, true)) = open.database else { continue };
            sessions.push(Session { database, ..open.session });
        }
        let has_statement = sessions.iter().any(|session| !session.statements.is_empty());
        if !has_statement && self.obstacles.count() == 0 {
            return Err(RecordingError::NoStatements {
                records: self.counts.records,
                databases: self.databases,
            });
        }
        let begin = sessions.iter().map(|session| session.begin_us).min().unwrap_or(0);
        let mut end = begin;
        for session in &mut sessions {
            end = end.max(session.end_us);
            session.end_us -= begin;
            // It was there when the log began.
            let at = if session.was_under_way { begin } else { session.begin_us };
            session.begin_us = at - begin;
            session.statements.shrink_to_fit();
            session.statements.iter_mut().for_each(|statement| statement.begin_us -= begin);
        }
        sessions.sort_by_key(|session| session.begin_us);
        self.texts.freeze();
        self.parameters.shrink_to_fit();
        Ok(Recording {
            sessions,
            obstacles: self.obstacles,
            counts: self.counts,
            databases: self.databases,
            span: Duration::from_micros(end - begin),
            texts: self.texts,
            parameters: self.parameters,
            executions: self.executions,
        })
    }
}
