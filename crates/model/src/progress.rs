//! What a run tells while it works.

use std::path::Path;
use std::time::Duration;

use crate::{Levels, PlannedTrial};

/// Something that happened. Whoever shows it decides how.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A line worth keeping: a leftover cleared, a default chosen, an assumption made.
    Note(String),
    /// A line that must not be missed: something failed, or the user has to do something.
    Warning(String),
    /// A stretch of work that has no tps: `share` of it is done, where that is known (0 to 1).
    Working {
        /// What is being done, in words.
        what: String,
        /// How much of it is done.
        share: Option<f64>,
    },
    /// Many times a second while a data set is loaded.
    Loading {
        /// What is loaded, in words.
        what: &'a str,
        /// Rows that were sent (count).
        rows: u64,
        /// Rows to be sent in all (count). When all are, keys are built and tables vacuumed.
        of: u64,
        /// Since it began.
        rows_per_s: f64,
        /// The same on the wire.
        bytes_per_s: f64,
        /// Time until the last row is sent, if it goes on so.
        left: Option<Duration>,
    },
    /// The run has its place in the store.
    Begun {
        /// Its id.
        run: &'a str,
        /// Trials still to run (count).
        trials: usize,
        /// The store.
        store: &'a Path,
    },
    /// A trial begins.
    Trial {
        /// Its number in the run, from 1.
        number: usize,
        /// Trials in the run (count).
        of: usize,
        /// Its treatment.
        levels: &'a Levels,
        /// Its place in the plan.
        planned: PlannedTrial,
        /// Time until the run's end, as far as known.
        left: Duration,
    },
    /// About once a second while load is offered.
    Load {
        /// Transactions per second in the last second.
        tps: f64,
        /// Median latency in it (microseconds).
        latency_us_p50: Option<f64>,
        /// 99th percentile in it (microseconds).
        latency_us_p99: Option<f64>,
        /// Whether the measured window is open.
        measuring: bool,
        /// Time until the run's end, as far as known.
        left: Duration,
    },
    /// A trial is in the store.
    TrialDone {
        /// Transactions per second, for a complete one.
        tps: Option<f64>,
        /// 99th percentile of latency (microseconds).
        latency_us_p99: Option<f64>,
        /// Why it failed.
        failure: Option<&'a str>,
        /// Time until the run's end, as far as known.
        left: Duration,
    },
    /// What was made is being taken down.
    TakingDown,
}

/// Receives events; may be called from several threads.
pub trait Progress: Sync {
    /// `event` happened.
    fn event(&self, event: &Event<'_>);
}

/// Shows nothing.
#[derive(Clone, Copy, Debug)]
pub struct Silent;

impl Progress for Silent {
    fn event(&self, _: &Event<'_>) {}
}
