//! The player: sends each session's statements when they are due, and counts what comes back.
//!
//! A [`Player`] is a state machine without I/O. [`event_loop::run`] connects it to a reactor. Each
//! of its links carries one session at a time; a session that must begin while all are in use
//! waits, and its statements' latencies count the wait.

mod event_loop;
mod reply;
mod tally;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::time::Duration;

use pgdyno_engine::ServerError;
use pgdyno_engine::reactor::{AfterSend, ReactorHandler};
use pgdyno_engine::schedule::{Moment, Timeline};
use pgdyno_wire::{WireError, frontend};

pub(crate) use self::event_loop::{RunError, run};
use self::reply::{ReplyEvent, ReplyReader};
pub(crate) use self::tally::Tally;
use crate::options::{ReplayOptions, Speed};
use crate::recording::{Recording, Session, Statement};

/// Time that a server has to answer after a statement was cancelled.
const AFTER_CANCEL: Duration = Duration::from_secs(10);

/// Figures of a replay under way, once a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReplayProgress {
    /// Time since the replay's begin (seconds).
    pub elapsed_s: f64,
    /// Statements that got a reply (count).
    pub statements: u64,
    /// Statements of the recording (count).
    pub total: u64,
    /// Statements that failed and did not in the log, or otherwise there (count).
    pub new_errors: u64,
    /// Sessions that are connected (count).
    pub sessions: usize,
    /// Longest time from due to sent since the last report (milliseconds).
    pub lag_ms: f64,
}

/// State of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinkState {
    /// It carries no session.
    Free,
    /// A connection for its session is being opened.
    Connecting,
    /// Neither its next statement nor the session's end is due.
    Idle,
    /// It waits for a reply.
    Busy,
}

/// Statement of a link that waits for its reply.
struct Current {
    due: Moment,
    sent: Moment,
    failure: Option<Box<ServerError>>,
    /// Numbers of the name and the text that are being prepared.
    preparing: Option<(u32, u32)>,
    /// When to cancel it, or after that to give the connection up.
    limit: Moment,
    is_cancelled: bool,
}

/// A place for a connection.
struct Link {
    state: LinkState,
    /// Index of its session.
    session: usize,
    /// Index of the session's next statement, or of the one under way.
    next: usize,
    current: Current,
    reader: ReplyReader,
    /// Number of the text that is prepared under each name, by the name's number.
    prepared: HashMap<u32, u32>,
    /// Last error that the server sent without being asked, or with which it ended the session.
    fatal: Option<String>,
}

impl Link {
    fn new() -> Self {
        let current = Current {
            due: Moment(0),
            sent: Moment(0),
            failure: None,
            preparing: None,
            limit: Moment::NEVER,
            is_cancelled: false,
        };
        Self {
            state: LinkState::Free,
            session: 0,
            next: 0,
            current,
            reader: ReplyReader::default(),
            prepared: HashMap::new(),
            fatal: None,
        }
    }
}

/// Plays a recording over a number of links.
pub(crate) struct Player<'a> {
    recording: &'a Recording,
    options: &'a ReplayOptions,
    total: u64,
    links: Vec<Link>,
    free: Vec<usize>,
    /// When to wake which link; at most one entry a link.
    timers: BinaryHeap<Reverse<(Moment, usize)>>,
    /// Index of the next session to begin.
    next_session: usize,
    /// Moment of the log's begin.
    origin: Moment,
    /// Links whose connection is being opened (count).
    connecting: usize,
    tally: Tally,
    /// Longest time from due to sent since the last progress (nanoseconds).
    longest_lag: u64,
}

impl<'a> Player<'a> {
    /// Creates a player over `links` links.
    pub(crate) fn new(recording: &'a Recording, options: &'a ReplayOptions, links: usize) -> Self {
        Self {
            recording,
            options,
            total: recording.statement_count(),
            links: std::iter::repeat_with(Link::new).take(links).collect(),
            free: (0..links).rev().collect(),
            timers: BinaryHeap::with_capacity(links),
            next_session: 0,
            origin: Moment(0),
            connecting: 0,
            tally: Tally::default(),
            longest_lag: 0,
        }
    }

    /// Returns what was counted.
    pub(crate) fn into_tally(self) -> Tally {
        self.tally
    }

    /// Returns the moment of a time of the log (microseconds).
    fn moment(&self, us: u64) -> Moment {
        Moment(self.origin.0.saturating_add(self.options.speed.scale(us)))
    }

    fn session(&self, link: usize) -> &'a Session {
        &self.recording.sessions[self.links[link].session]
    }

    /// Links that carry a session (count).
    fn used(&self) -> usize {
        self.links.len() - self.free.len()
    }

    /// Returns a free link for the next session if that begins by `now`, with its database.
    fn begin_session(&mut self, now: Moment) -> Option<(usize, usize)> {
        let session = self.recording.sessions.get(self.next_session)?;
        if self.moment(session.begin_us) > now {
            return None;
        }
        let link = self.free.pop()?;
        let it = &mut self.links[link];
        (it.state, it.session, it.next) = (LinkState::Connecting, self.next_session, 0);
        it.reader.reset();
        it.prepared.clear();
        it.fatal = None;
        self.next_session += 1;
        self.connecting += 1;
        Some((link, session.database))
    }

    /// Returns when the next session begins for which there is a link.
    fn next_begin(&self) -> Moment {
        match self.recording.sessions.get(self.next_session) {
            Some(session) if !self.free.is_empty() => self.moment(session.begin_us),
            _ => Moment::NEVER,
        }
    }

    /// Notes that the connection of `link` is open. It is woken next.
    fn connected(&mut self, link: usize) {
        self.connecting -= 1;
        self.links[link].state = LinkState::Idle;
        self.tally.sessions += 1;
        self.tally.peak_sessions = self.tally.peak_sessions.max(self.used() - self.connecting);
    }

    /// Notes that `link` cannot be connected.
    fn connection_failed(&mut self, link: usize, how: String) {
        self.connecting -= 1;
        self.tally.record_failed_connection(how);
        self.release(link);
    }

    /// Ends the session of `link`. Statements that are left are not sent any more.
    fn release(&mut self, link: usize) {
        let left = self.session(link).statements.len() - self.links[link].next;
        let unanswered = usize::from(self.links[link].state == LinkState::Busy);
        self.tally.unanswered += unanswered as u64;
        self.tally.unsent += (left - unanswered) as u64;
        self.links[link].state = LinkState::Free;
        self.links[link].current.failure = None;
        self.free.push(link);
    }

    /// Sends the next statement of `link` if it is due, or ends the session if it is over;
    /// otherwise sets the time to do so.
    fn advance(&mut self, link: usize, now: Moment, out: &mut Vec<u8>) -> AfterSend {
        let session = self.session(link);
        while let Some(statement) = session.statements.get(self.links[link].next) {
            let due = match self.options.speed {
                Speed::Max => now,
                Speed::Factor(_) => self.moment(statement.begin_us),
            };
            if due > now {
                return self.sleep(link, due);
            }
            let begin = out.len();
            if self.send(link, statement, out).is_ok() {
                self.sent(link, statement, due, now);
                return AfterSend::Open;
            }
            // Too long for a message, which no statement of a log is.
            out.truncate(begin);
            self.links[link].next += 1;
            self.tally.unsent += 1;
        }
        let end = self.moment(session.end_us);
        if end > now {
            return self.sleep(link, end);
        }
        frontend::terminate(out);
        self.release(link);
        AfterSend::Close
    }

    fn sleep(&mut self, link: usize, until: Moment) -> AfterSend {
        self.links[link].state = LinkState::Idle;
        self.timers.push(Reverse((until, link)));
        AfterSend::Open
    }

    /// Appends the messages of a statement, with those that prepare it.
    fn send(
        &mut self,
        link: usize,
        statement: &Statement,
        out: &mut Vec<u8>,
    ) -> Result<(), WireError> {
        let (recording, link) = (self.recording, &mut self.links[link]);
        link.current.preparing = None;
        let text = || recording.text(statement).as_bytes();
        match recording.kept_name(statement) {
            Some((name, _)) if link.prepared.get(&name) == Some(&statement.text_id()) => {}
            Some((number, name)) => {
                // The name may stand for another text, or for one that DISCARD may have removed.
                frontend::close_statement(out, name)?;
                frontend::parse(out, name, text())?;
                link.current.preparing = Some((number, statement.text_id()));
            }
            None if statement.is_extended() => frontend::parse(out, "", text())?,
            None => {}
        }
        recording.write(statement, out)
    }

    fn sent(&mut self, link: usize, statement: &Statement, due: Moment, now: Moment) {
        let limit = self.options.statement_timeout + statement.duration().unwrap_or_default();
        let link = &mut self.links[link];
        link.state = LinkState::Busy;
        link.current.due = due;
        link.current.sent = now;
        link.current.failure = None;
        link.current.limit = now.after(limit);
        link.current.is_cancelled = false;
        self.longest_lag = self.longest_lag.max(now.nanoseconds_since(due));
    }

    /// Notes that the statement of `link` has its whole reply.
    fn done(&mut self, link: usize, now: Moment) {
        let statement = &self.session(link).statements[self.links[link].next];
        let link = &mut self.links[link];
        link.state = LinkState::Idle;
        link.next += 1;
        if statement.removes_prepared() {
            link.prepared.clear();
        }
        let times = Timeline { due: link.current.due, sent: link.current.sent, done: now };
        let failure = link.current.failure.take();
        self.tally.record(statement, times, failure.as_deref(), link.current.is_cancelled);
    }

    /// Handles an event of a reply; returns whether the link is free for its next statement.
    fn reply(&mut self, link: usize, event: ReplyEvent, now: Moment, out: &mut Vec<u8>) -> bool {
        let is_busy = self.links[link].state == LinkState::Busy;
        let it = &mut self.links[link];
        match event {
            ReplyEvent::Parsed => {
                it.prepared.extend(it.current.preparing.take());
                false
            }
            ReplyEvent::CopyIn => {
                // Its data are not in the log; statements that ask for some were left out before.
                let reason = "the log of the recorded session has no COPY data";
                drop(frontend::copy_fail(out, reason));
                false
            }
            ReplyEvent::Error(error) => {
                if !is_busy || matches!(error.severity.as_str(), "FATAL" | "PANIC") {
                    it.fatal = Some(error.to_string());
                }
                it.current.failure = Some(error);
                false
            }
            ReplyEvent::Ready if is_busy => {
                self.done(link, now);
                true
            }
            ReplyEvent::Ready => false,
        }
    }

    /// Notes that the connection of `link` is gone.
    fn gone(&mut self, link: usize, how: &str) {
        let how = self.links[link].fatal.take().unwrap_or_else(|| how.to_owned());
        self.tally.record_loss(how);
        self.timers.retain(|Reverse((_, other))| *other != link);
        self.release(link);
    }

    /// Returns figures of the replay so far.
    fn progress(&mut self, now: Moment) -> ReplayProgress {
        ReplayProgress {
            elapsed_s: now.since(self.origin).as_secs_f64(),
            statements: self.tally.latency.count(),
            total: self.total,
            new_errors: self.tally.new_errors,
            sessions: self.used() - self.connecting,
            lag_ms: std::mem::take(&mut self.longest_lag) as f64 / 1e6,
        }
    }
}

impl ReactorHandler for Player<'_> {
    fn received(
        &mut self,
        link: usize,
        mut bytes: &[u8],
        now: Moment,
        out: &mut Vec<u8>,
    ) -> AfterSend {
        if matches!(self.links[link].state, LinkState::Free | LinkState::Connecting) {
            return AfterSend::Open;
        }
        let mut is_done = false;
        loop {
            match self.links[link].reader.next(&mut bytes) {
                Ok(Some(event)) => is_done |= self.reply(link, event, now, out),
                Ok(None) => break,
                Err(error) => {
                    self.gone(link, &error.to_string());
                    return AfterSend::Close;
                }
            }
        }
        if is_done { self.advance(link, now, out) } else { AfterSend::Open }
    }

    fn lost(&mut self, link: usize, how: &str, _now: Moment) {
        if matches!(self.links[link].state, LinkState::Idle | LinkState::Busy) {
            self.gone(link, how);
        }
    }
}

#[cfg(test)]
mod sim;
#[cfg(test)]
mod tests;
