//! Counts on their way from a worker to the coordinator: exact integers and HDR histograms.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use pgdyno_engine::Phase;
use pgdyno_engine::recorder::Interval;
use pgdyno_engine::schedule::{Moment, Schedule};
use pgdyno_engine::tally::{CommandTally, PartialReplies, ScriptTally, StatementTally, Tally};
use pgdyno_model::Latencies;
use pgdyno_model::counters::LoadCounters;
use pgdyno_model::latency::HistogramError;
use pgdyno_model::measurement::{CommandSums, Sums};
use serde::{Deserialize, Serialize};

/// Why counts cannot be added.
#[derive(Debug, thiserror::Error)]
pub enum CountsError {
    /// A histogram is no base64.
    #[error("a histogram that cannot be read: {0}")]
    Base64(base64::DecodeError),
    /// A histogram is not one of ours.
    #[error("{0}")]
    Histogram(HistogramError),
    /// A latency is beyond what histograms tell apart.
    #[error("a latency of an hour or more, whose length is unknown")]
    Saturated,
}

/// A distribution: base64 of its V2 encoding; empty where nothing was recorded.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
struct Histogram(String);

impl Histogram {
    fn new(latencies: &Latencies) -> Self {
        match latencies.count() {
            0 => Self::default(),
            _ => Self(STANDARD_NO_PAD.encode(latencies.to_bytes())),
        }
    }

    fn read(&self) -> Result<Latencies, CountsError> {
        if self.0.is_empty() {
            return Ok(Latencies::new());
        }
        let bytes = STANDARD_NO_PAD.decode(&self.0).map_err(CountsError::Base64)?;
        let read = Latencies::from_equal_bytes(&bytes).map_err(CountsError::Histogram)?;
        if read.is_saturated() { Err(CountsError::Saturated) } else { Ok(read) }
    }
}

fn read_all<T, U>(
    all: &[T],
    read: impl Fn(&T) -> Result<U, CountsError>,
) -> Result<Vec<U>, CountsError> {
    all.iter().map(read).collect()
}

fn read_some<T, U>(
    some: Option<&T>,
    read: impl Fn(&T) -> Result<U, CountsError>,
) -> Result<Option<U>, CountsError> {
    some.map(read).transpose()
}

/// [`Sums`], exactly.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Sums")]
struct ExactSums {
    latency_count: u64,
    latency_sum_ns: u64,
    latency_sum_squares_ns2: u128,
    lag_sum_ns: u64,
    lag_max_ns: u64,
    skipped: u64,
    late: u64,
    retried: u64,
    retries: u64,
    serialization_failures: u64,
    deadlock_failures: u64,
    other_failures: u64,
}

/// [`Phase`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "Phase")]
enum PhaseData {
    WarmUp,
    Measuring,
    Draining,
}

/// [`StatementTally`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct StatementCounts {
    failed: u64,
    latency: Histogram,
    /// Of replies that came in several reads: until the first byte, and until the end.
    partial: Option<(Histogram, Histogram)>,
}

impl StatementCounts {
    fn new(tally: &StatementTally) -> Self {
        let partial = tally.partial.as_ref();
        Self {
            failed: tally.failed,
            latency: Histogram::new(&tally.latency),
            partial: partial.map(|p| (Histogram::new(&p.first_byte), Histogram::new(&p.done))),
        }
    }

    fn read(&self) -> Result<StatementTally, CountsError> {
        let partial = read_some(self.partial.as_ref(), |(first_byte, done)| {
            Ok(Box::new(PartialReplies { first_byte: first_byte.read()?, done: done.read()? }))
        })?;
        Ok(StatementTally { failed: self.failed, latency: self.latency.read()?, partial })
    }
}

/// [`ScriptTally`].
#[derive(Clone, Debug, Serialize, Deserialize)]
struct ScriptCounts {
    transactions: u64,
    failed: u64,
    latency: Histogram,
    service: Option<Histogram>,
    statements: Vec<StatementCounts>,
    /// Executions, failures and retries of each command.
    commands: Vec<(CommandSums, u64, u64)>,
    #[serde(with = "ExactSums")]
    sums: Sums,
}

impl ScriptCounts {
    fn new(tally: &ScriptTally) -> Self {
        Self {
            transactions: tally.transactions,
            failed: tally.failed,
            latency: Histogram::new(&tally.latency),
            service: tally.service.as_ref().map(Histogram::new),
            statements: tally.statements.iter().map(StatementCounts::new).collect(),
            commands: tally.commands.iter().map(|c| (c.done, c.failures, c.retries)).collect(),
            sums: tally.sums,
        }
    }

    fn read(&self) -> Result<ScriptTally, CountsError> {
        let command = |&(done, failures, retries)| CommandTally { done, failures, retries };
        Ok(ScriptTally {
            transactions: self.transactions,
            failed: self.failed,
            latency: self.latency.read()?,
            service: read_some(self.service.as_ref(), Histogram::read)?,
            statements: read_all(&self.statements, StatementCounts::read)?,
            commands: self.commands.iter().map(command).collect(),
            sums: self.sums,
        })
    }
}

/// Counts of a whole load, or what a second adds to them: [`Tally`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TallyCounts {
    scripts: Vec<ScriptCounts>,
    counters: LoadCounters,
    /// Nanoseconds since the load's start.
    last_done: Option<u64>,
    event_loop_lag: Histogram,
}

impl TallyCounts {
    /// Takes `tally`; its moments become times since `start`.
    pub fn new(tally: &Tally, start: Moment) -> Self {
        Self {
            scripts: tally.scripts.iter().map(ScriptCounts::new).collect(),
            counters: tally.counters.clone(),
            last_done: tally.last_done.map(|done| done.nanoseconds_since(start)),
            event_loop_lag: Histogram::new(&tally.event_loop_lag),
        }
    }

    /// Returns the counts; moments are times since the load's start.
    pub fn read(&self) -> Result<Tally, CountsError> {
        Ok(Tally {
            scripts: read_all(&self.scripts, ScriptCounts::read)?,
            counters: self.counters.clone(),
            last_done: self.last_done.map(Moment),
            event_loop_lag: self.event_loop_lag.read()?,
        })
    }
}

/// An [`Interval`] on the wire: the counts of one second, or of a part of one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct IntervalCounts {
    #[serde(with = "PhaseData")]
    phase: Phase,
    second: u32,
    /// Nanoseconds since the load's start.
    end: u64,
    transactions: u64,
    failed: u64,
    #[serde(with = "ExactSums")]
    sums: Sums,
    commands: Vec<CommandSums>,
    latency: Option<Histogram>,
    event_loop_lag: Option<Histogram>,
    tally: Option<TallyCounts>,
}

impl IntervalCounts {
    /// Takes `interval` of a load with `schedule`.
    pub fn new(schedule: &Schedule, interval: &Interval) -> Self {
        let start = schedule.start;
        Self {
            phase: interval.phase,
            second: interval.second,
            end: interval.end.nanoseconds_since(start),
            transactions: interval.transactions,
            failed: interval.failed,
            sums: interval.sums,
            commands: interval.commands.clone(),
            latency: interval.latency.as_ref().map(Histogram::new),
            event_loop_lag: interval.event_loop_lag.as_ref().map(Histogram::new),
            tally: interval.tally.as_ref().map(|tally| TallyCounts::new(tally, start)),
        }
    }

    /// Returns the interval; moments are times since the load's start.
    pub fn read(&self) -> Result<Interval, CountsError> {
        Ok(Interval {
            phase: self.phase,
            second: self.second,
            end: Moment(self.end),
            transactions: self.transactions,
            failed: self.failed,
            sums: self.sums,
            commands: self.commands.clone(),
            latency: read_some(self.latency.as_ref(), Histogram::read)?,
            event_loop_lag: read_some(self.event_loop_lag.as_ref(), Histogram::read)?,
            tally: read_some(self.tally.as_ref(), |tally| tally.read().map(Box::new))?,
        })
    }
}
