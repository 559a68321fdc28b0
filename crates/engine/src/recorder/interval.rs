//! One second of one thread's load.

use std::time::Duration;

use pgdyno_model::Latencies;
use pgdyno_model::measurement::{CommandSums, Sums};

use crate::schedule::{Moment, Phase, Schedule};
use crate::tally::{Tally, merge};

const SECOND: Duration = Duration::from_secs(1);

/// Counts of one thread for one second, or for the part of a second that a phase boundary cut.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Phase that the interval lies in.
    pub phase: Phase,
    /// Whole seconds from the phase's beginning to the interval's beginning.
    pub second: u32,
    /// End of the interval.
    pub end: Moment,
    /// Transactions that ended well (count).
    pub transactions: u64,
    /// Transactions that failed (count).
    pub failed: u64,
    /// Exact sums: latencies, lags, retries, failures by kind.
    pub sums: Sums,
    /// Executions of each command, by script and step; empty outside the window. A command belongs
    /// to the second in which the event loop saw its end.
    pub commands: Vec<CommandSums>,
    /// Latency of `transactions`; none when there were none.
    pub latency: Option<Latencies>,
    /// Event-loop lag; none when no event was handled.
    pub event_loop_lag: Option<Latencies>,
    /// Contribution to the counts of the whole load, if [`RecorderOptions`] ask for it.
    ///
    /// [`RecorderOptions`]: super::RecorderOptions
    pub tally: Option<Box<Tally>>,
}

impl Interval {
    /// Creates the empty interval of `schedule` that holds `at`.
    pub(crate) fn new(schedule: &Schedule, at: Moment) -> Self {
        let phase = schedule.phase(at);
        let begin = schedule.begin_of(phase);
        let second = u32::try_from(at.since(begin).as_secs()).unwrap_or(u32::MAX);
        let end = begin.after(SECOND * second.saturating_add(1));
        let end = match phase {
            Phase::Draining => end,
            Phase::WarmUp | Phase::Measuring => end.min(schedule.end_of(phase)),
        };
        let sums = Sums::default();
        let (latency, event_loop_lag) = (None, None);
        let (transactions, failed, commands, tally) = (0, 0, Vec::new(), None);
        Self {
            phase,
            second,
            end,
            transactions,
            failed,
            sums,
            commands,
            latency,
            event_loop_lag,
            tally,
        }
    }

    /// Adds the counts of another thread for the same second; the later end holds.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.end = self.end.max(other.end);
        self.transactions += other.transactions;
        self.failed += other.failed;
        self.sums.merge(&other.sums);
        CommandSums::merge_all(&mut self.commands, &other.commands);
        merge(&mut self.latency, other.latency.as_ref());
        merge(&mut self.event_loop_lag, other.event_loop_lag.as_ref());
        match (&mut self.tally, &other.tally) {
            (Some(ours), Some(theirs)) => ours.merge(theirs),
            (ours @ None, theirs) => ours.clone_from(theirs),
            (Some(_), None) => {}
        }
    }
}
