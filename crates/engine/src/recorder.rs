//! What one thread counts. No locks; memory is allocated when a second ends and when something fails.

use std::collections::BTreeMap;

use pgdyno_model::Latencies;

use crate::program::Program;
use crate::schedule::{Moment, Phase, Schedule, Timeline};

/// SQLSTATEs for what the engine itself finds wrong.
pub mod sqlstate {
    /// The connection was lost.
    pub const CONNECTION_FAILURE: &str = "08006";
    /// The server broke the protocol.
    pub const PROTOCOL_VIOLATION: &str = "08P01";
    /// The server wants what the engine does not do, such as COPY.
    pub const FEATURE_NOT_SUPPORTED: &str = "0A000";
    /// An expression has no value, or a statement cannot be put into a message.
    pub const DATA_EXCEPTION: &str = "22000";
    /// A script ended inside a transaction block.
    pub const ACTIVE_TRANSACTION: &str = "25001";
    /// The transaction was not done when the time for it was over.
    pub const QUERY_CANCELED: &str = "57014";
    /// Two transactions could not both be had.
    pub const SERIALIZATION_FAILURE: &str = "40001";
    /// Two transactions waited for each other.
    pub const DEADLOCK_DETECTED: &str = "40P01";
}

/// Reasons of aborts that are kept in words.
pub const KEPT_REASONS: usize = 10;

const SECOND: std::time::Duration = std::time::Duration::from_secs(1);

/// What was counted for one statement of a script.
#[derive(Clone, Debug, Default)]
pub struct StatementTally {
    /// Errors within the window.
    pub failed: u64,
    /// From sent to done.
    pub latency: Latencies,
}

/// What was counted for one script.
#[derive(Clone, Debug, Default)]
pub struct ScriptTally {
    /// Transactions within the window.
    pub transactions: u64,
    /// Failed transactions within the window.
    pub failed: u64,
    /// From due to done.
    pub latency: Latencies,
    /// By statement.
    pub statements: Vec<StatementTally>,
}

/// What was counted in all.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// By script.
    pub scripts: Vec<ScriptTally>,
    /// Transactions that ended before the window.
    pub warm_up_transactions: u64,
    /// Transactions that ended after it.
    pub drained_transactions: u64,
    /// Failed transactions outside the window.
    pub failed_outside: u64,
    /// Failed transactions within the window by SQLSTATE.
    pub failures: BTreeMap<String, u64>,
    /// Clients that gave up.
    pub aborted_clients: u32,
    /// What the first [`KEPT_REASONS`] of them met.
    pub abort_reasons: Vec<String>,
    /// When the last transaction of the window ended, well or not.
    pub last_done: Option<Moment>,
}

impl Tally {
    fn new(program: &Program) -> Self {
        let script = |script: &crate::program::LinkedScript| ScriptTally {
            statements: vec![StatementTally::default(); script.statements.len()],
            ..ScriptTally::default()
        };
        Self { scripts: program.scripts.iter().map(script).collect(), ..Self::default() }
    }

    /// Adds what another thread counted for the same program.
    pub fn merge(&mut self, other: &Self) {
        for (ours, theirs) in self.scripts.iter_mut().zip(&other.scripts) {
            ours.transactions += theirs.transactions;
            ours.failed += theirs.failed;
            ours.latency.merge(&theirs.latency);
            for (ours, theirs) in ours.statements.iter_mut().zip(&theirs.statements) {
                ours.failed += theirs.failed;
                ours.latency.merge(&theirs.latency);
            }
        }
        self.warm_up_transactions += other.warm_up_transactions;
        self.drained_transactions += other.drained_transactions;
        self.failed_outside += other.failed_outside;
        for (code, count) in &other.failures {
            *self.failures.entry(code.clone()).or_default() += count;
        }
        self.aborted_clients += other.aborted_clients;
        let room = KEPT_REASONS.saturating_sub(self.abort_reasons.len());
        self.abort_reasons.extend(other.abort_reasons.iter().take(room).cloned());
        self.last_done = self.last_done.max(other.last_done);
    }
}

/// What one thread counted in one second, or the part of it that a phase ended.
#[derive(Clone, Debug)]
pub struct Interval {
    /// The phase it lies in.
    pub phase: Phase,
    /// Whole seconds from the phase's beginning to its own.
    pub second: u32,
    /// When it ended.
    pub end: Moment,
    /// Transactions that ended well in it.
    pub transactions: u64,
    /// Transactions that failed in it.
    pub failed: u64,
    /// Latency of `transactions`; none when there were none.
    pub latency: Option<Latencies>,
}

/// The interval that is being filled.
struct Filling {
    phase: Phase,
    second: u32,
    end: Moment,
    transactions: u64,
    failed: u64,
    latency: Latencies,
}

/// Counts for one thread, and hands each second on as it ends.
pub struct Recorder {
    schedule: Schedule,
    tally: Tally,
    filling: Filling,
    ended: Box<dyn FnMut(Interval) + Send>,
}

impl Recorder {
    /// A recorder of `program`'s transactions; `ended` takes every second as it ends.
    #[must_use]
    pub fn new(program: &Program, schedule: Schedule, ended: Box<dyn FnMut(Interval) + Send>) -> Self {
        let filling = Filling {
            phase: Phase::WarmUp,
            second: 0,
            end: schedule.start,
            transactions: 0,
            failed: 0,
            latency: Latencies::new(),
        };
        let mut recorder = Self { schedule, tally: Tally::new(program), filling, ended };
        recorder.begin(schedule.start);
        recorder
    }

    /// The times it goes by.
    #[must_use]
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// When the present second ends: [`Recorder::tick`] is due then.
    #[must_use]
    pub fn next_tick(&self) -> Moment {
        self.filling.end
    }

    /// Begins the interval that holds `at`.
    fn begin(&mut self, at: Moment) {
        let phase = self.schedule.phase(at);
        let begins = self.schedule.begins(phase);
        let second = at.since(begins).as_secs();
        self.filling.phase = phase;
        self.filling.second = u32::try_from(second).unwrap_or(u32::MAX);
        let end = begins.after(SECOND * self.filling.second.saturating_add(1));
        self.filling.end = match phase {
            Phase::Draining => end,
            Phase::WarmUp | Phase::Measuring => end.min(self.schedule.ends(phase)),
        };
    }

    /// Hands on the present second if it has ended by `now`.
    #[inline]
    pub fn tick(&mut self, now: Moment) {
        if now >= self.filling.end {
            self.hand_on(self.filling.end);
            self.begin(now);
        }
    }

    fn hand_on(&mut self, end: Moment) {
        let filling = &mut self.filling;
        let latency = (filling.transactions > 0).then(|| filling.latency.clone());
        let interval = Interval {
            phase: filling.phase,
            second: filling.second,
            end,
            transactions: filling.transactions,
            failed: filling.failed,
            latency,
        };
        if interval.latency.is_some() {
            filling.latency.clear();
        }
        filling.transactions = 0;
        filling.failed = 0;
        (self.ended)(interval);
    }

    /// Counts a statement whose reply was complete.
    #[inline]
    pub fn statement(&mut self, script: usize, statement: usize, times: Timeline) {
        if self.schedule.phase(times.done) == Phase::Measuring {
            self.tally.scripts[script].statements[statement].latency.record(times.service());
        }
    }

    /// Counts a transaction that ended well.
    #[inline]
    pub fn transaction(&mut self, script: usize, times: Timeline) {
        self.tick(times.done);
        if self.filling.phase == Phase::Measuring && self.schedule.is_left_over(times.due) {
            self.tally.warm_up_transactions += 1;
            return;
        }
        let latency = times.latency();
        self.filling.transactions += 1;
        self.filling.latency.record(latency);
        match self.filling.phase {
            Phase::WarmUp => self.tally.warm_up_transactions += 1,
            Phase::Measuring => {
                let tally = &mut self.tally.scripts[script];
                tally.transactions += 1;
                tally.latency.record(latency);
                self.tally.last_done = Some(times.done);
            }
            Phase::Draining => self.tally.drained_transactions += 1,
        }
    }

    /// Counts a transaction that ended in an error of class `code`, in `statement` unless it met none.
    pub fn failure(&mut self, script: usize, statement: Option<usize>, code: &str, done: Moment) {
        self.tick(done);
        self.filling.failed += 1;
        if self.filling.phase != Phase::Measuring {
            self.tally.failed_outside += 1;
            return;
        }
        self.tally.last_done = Some(done);
        self.tally.scripts[script].failed += 1;
        if let Some(statement) = statement {
            self.tally.scripts[script].statements[statement].failed += 1;
        }
        match self.tally.failures.get_mut(code) {
            Some(count) => *count += 1,
            None => {
                self.tally.failures.insert(code.to_owned(), 1);
            }
        }
    }

    /// Counts a client that gave up.
    pub fn aborted(&mut self, reason: String) {
        self.tally.aborted_clients += 1;
        if self.tally.abort_reasons.len() < KEPT_REASONS {
            self.tally.abort_reasons.push(reason);
        }
    }

    /// Hands on what the last second holds, and gives up the whole.
    #[must_use]
    pub fn finish(mut self, now: Moment) -> Tally {
        self.tick(now);
        self.hand_on(now);
        self.tally
    }
}
