//! Counts of a load: by statement, by script and in all.

use pgdyno_model::Latencies;
use pgdyno_model::counters::LoadCounters;
use pgdyno_model::measurement::{CommandSums, Sums};

use crate::program::{LinkedScript, Program};
use crate::schedule::{Exchange, Moment};

/// Counts of one SQL statement of a script.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatementTally {
    /// Errors within the window (count).
    pub failed: u64,
    /// Time from sent to done, of replies within the window.
    pub latency: Latencies,
    /// Replies whose first byte was read before the rest.
    pub partial: Option<Box<PartialReplies>>,
}

/// Latencies of replies that came in several reads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartialReplies {
    /// From sent to the first byte.
    pub first_byte: Latencies,
    /// From sent to done.
    pub done: Latencies,
}

impl PartialReplies {
    /// Counts one of `times`.
    pub(crate) fn record(&mut self, times: &Exchange) {
        self.first_byte.record(times.until_first_byte());
        self.done.record(times.latency());
    }
}

impl StatementTally {
    /// Returns the time from sent to the reply's first byte.
    ///
    /// Nearly all replies come in one read; they are counted once, for first byte and end.
    pub fn first_byte(&self) -> Latencies {
        let mut all = self.latency.clone();
        if let Some(partial) = &self.partial {
            all.take_away(&partial.done);
            all.merge(&partial.first_byte);
        }
        all
    }
}

/// Counts of one command of a script, from the opening of the window on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CommandTally {
    /// Executions that ended well.
    pub done: CommandSums,
    /// Errors that failed a transaction (count).
    pub failures: u64,
    /// Errors after which the transaction was retried (count).
    pub retries: u64,
}

/// Counts of one script.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScriptTally {
    /// Transactions that ended well within the window (count).
    pub transactions: u64,
    /// Transactions that failed within the window (count).
    pub failed: u64,
    /// Time from due to done.
    pub latency: Latencies,
    /// Time from sent to done; only with a rate.
    pub service: Option<Latencies>,
    /// Counts of the statements that keep a distribution.
    pub statements: Vec<StatementTally>,
    /// Counts by step.
    pub commands: Vec<CommandTally>,
    /// Exact sums, from the opening of the window on.
    pub sums: Sums,
}

/// Counts of one thread for the whole load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    /// Counts by script.
    pub scripts: Vec<ScriptTally>,
    /// Counts of transactions outside the window, of errors, aborts and connections.
    pub counters: LoadCounters,
    /// End of the window's last transaction, whether it ended well or not.
    pub last_done: Option<Moment>,
    /// Event-loop lag within the window.
    pub event_loop_lag: Latencies,
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

    /// Moves all counts out, and leaves the same scripts without any.
    pub(crate) fn take(&mut self) -> Self {
        let script = |script: &ScriptTally| ScriptTally {
            service: script.service.as_ref().map(|_| Latencies::new()),
            statements: vec![StatementTally::default(); script.statements.len()],
            commands: vec![CommandTally::default(); script.commands.len()],
            ..ScriptTally::default()
        };
        let empty = Self { scripts: self.scripts.iter().map(script).collect(), ..Self::default() };
        std::mem::replace(self, empty)
    }

    /// Adds the counts of another thread of the same load.
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
                ours.done.merge(theirs.done);
                ours.failures += theirs.failures;
                ours.retries += theirs.retries;
            }
            ours.sums.merge(&theirs.sums);
        }
        self.counters.merge(&other.counters);
        self.last_done = self.last_done.max(other.last_done);
        self.event_loop_lag.merge(&other.event_loop_lag);
    }
}

/// Adds `more` to `sum`, either of which may be absent.
pub(crate) fn merge(sum: &mut Option<Latencies>, more: Option<&Latencies>) {
    match (sum, more) {
        (Some(sum), Some(more)) => sum.merge(more),
        (sum @ None, Some(more)) => *sum = Some(more.clone()),
        (_, None) => {}
    }
}
