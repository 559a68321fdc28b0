//! What was counted: by statement, by script and in all.

use std::collections::BTreeMap;
use std::time::Duration;

use pgdyno_model::Latencies;
use pgdyno_model::measurement::Sums;

use crate::program::{LinkedScript, Program};
use crate::schedule::{Exchange, Moment};

/// Reasons of aborts that are kept in words.
pub(crate) const MAX_REASONS: usize = 10;

/// What was counted for one statement of a script.
#[derive(Clone, Debug, Default)]
pub struct StatementTally {
    /// Errors within the window.
    pub failed: u64,
    /// From sent to done.
    pub latency: Latencies,
    /// The same of replies that came in pieces, of which the first byte came before the rest.
    pub partial: Option<Box<PartialReplies>>,
}

/// Replies that came in pieces.
#[derive(Clone, Debug, Default)]
pub struct PartialReplies {
    /// From sent to the first byte.
    first_byte: Latencies,
    /// From sent to done.
    done: Latencies,
}

impl PartialReplies {
    /// Counts one of `times`.
    pub(crate) fn record(&mut self, times: &Exchange) {
        self.first_byte.record(times.until_first_byte());
        self.done.record(times.latency());
    }
}

impl StatementTally {
    /// From sent to the reply's first byte. A reply that comes in one piece, as nearly all do, is
    /// counted once for both.
    #[must_use]
    pub fn first_byte(&self) -> Latencies {
        let mut all = self.latency.clone();
        if let Some(partial) = &self.partial {
            all.take_away(&partial.done);
            all.merge(&partial.first_byte);
        }
        all
    }
}

/// What was counted for one command of a script, from the opening on.
#[derive(Clone, Copy, Debug, Default)]
pub struct CommandTally {
    /// Times it ended well.
    pub count: u64,
    /// Sum of their times (nanoseconds).
    pub nanoseconds: u64,
    /// Errors that ended a transaction.
    pub failures: u64,
    /// Errors after which the transaction was tried again.
    pub retries: u64,
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
    /// With a rate: from sent to done.
    pub service: Option<Latencies>,
    /// By statement, of those whose latencies are kept.
    pub statements: Vec<StatementTally>,
    /// By step.
    pub commands: Vec<CommandTally>,
    /// From the opening on.
    pub sums: Sums,
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
    /// What the first [`MAX_REASONS`] of them met.
    pub abort_reasons: Vec<String>,
    /// When the last transaction of the window ended, well or not.
    pub last_done: Option<Moment>,
    /// How long what had happened waited for the thread, within the window.
    pub event_loop_lag: Latencies,
    /// Connections that were lost and are made anew.
    pub lost_connections: u64,
    /// Connections made for single transactions or lost ones, and the time they took.
    pub reconnections: (u64, Duration),
}

impl Tally {
    pub(crate) fn new(program: &Program) -> Self {
        let script = |script: &LinkedScript| ScriptTally {
            statements: vec![StatementTally::default(); script.distributions],
            commands: vec![CommandTally::default(); script.steps.len()],
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
            merge(&mut ours.service, theirs.service.as_ref());
            for (ours, theirs) in ours.statements.iter_mut().zip(&theirs.statements) {
                ours.failed += theirs.failed;
                ours.latency.merge(&theirs.latency);
                if let Some(theirs) = &theirs.partial {
                    let partial = ours.partial.get_or_insert_default();
                    partial.first_byte.merge(&theirs.first_byte);
                    partial.done.merge(&theirs.done);
                }
            }
            for (ours, theirs) in ours.commands.iter_mut().zip(&theirs.commands) {
                ours.count += theirs.count;
                ours.nanoseconds += theirs.nanoseconds;
                ours.failures += theirs.failures;
                ours.retries += theirs.retries;
            }
            ours.sums.merge(&theirs.sums);
        }
        self.warm_up_transactions += other.warm_up_transactions;
        self.drained_transactions += other.drained_transactions;
        self.failed_outside += other.failed_outside;
        for (code, count) in &other.failures {
            *self.failures.entry(code.clone()).or_default() += count;
        }
        self.aborted_clients += other.aborted_clients;
        let room = MAX_REASONS.saturating_sub(self.abort_reasons.len());
        self.abort_reasons.extend(other.abort_reasons.iter().take(room).cloned());
        self.last_done = self.last_done.max(other.last_done);
        self.event_loop_lag.merge(&other.event_loop_lag);
        self.lost_connections += other.lost_connections;
        self.reconnections.0 += other.reconnections.0;
        self.reconnections.1 += other.reconnections.1;
    }
}

/// Adds `more`, if there is any, to `sum`.
pub(crate) fn merge(sum: &mut Option<Latencies>, more: Option<&Latencies>) {
    match (sum, more) {
        (Some(sum), Some(more)) => sum.merge(more),
        (sum @ None, Some(more)) => *sum = Some(more.clone()),
        (_, None) => {}
    }
}
