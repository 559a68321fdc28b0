//! Figures of a replay.

use std::collections::BTreeMap;

use pgdyno_model::json::Document;
use pgdyno_model::latency::Latencies;
use serde::Serialize;

use crate::player::Tally;

/// How a replay ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayEnd {
    /// Every session came to its end.
    Completed,
    /// The time for it was over.
    OutOfTime,
    /// A signal came.
    Interrupted,
}

/// Distribution of times in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Distribution {
    /// Values (count).
    pub count: u64,
    /// Median.
    pub p50_ms: f64,
    /// 95th percentile.
    pub p95_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// Longest.
    pub max_ms: f64,
}

impl Distribution {
    /// Returns the distribution of `latencies`; none if there are none.
    pub(crate) fn new(latencies: &Latencies) -> Option<Self> {
        let at = |quantile| latencies.quantile_us(quantile).map(|us| us / 1e3);
        Some(Self {
            count: latencies.count(),
            p50_ms: at(0.5)?,
            p95_ms: at(0.95)?,
            p99_ms: at(0.99)?,
            max_ms: latencies.max_us()? / 1e3,
        })
    }
}

/// Statements that failed with a SQLSTATE.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorCount {
    /// SQLSTATE in the replay.
    pub sqlstate: String,
    /// Statements that failed with it in the log too (count).
    pub also_in_log: u64,
    /// Statements that failed with another SQLSTATE in the log (count).
    pub other_in_log: u64,
    /// Statements that did not fail in the log (count).
    pub new: u64,
    /// Message of the first that did not fail so in the log, otherwise of the first.
    pub message: String,
}

/// Figures of a replay. Latencies are of statements that got a reply.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplayReport {
    /// How it ended.
    pub end: ReplayEnd,
    /// Speed that was asked for; none for as fast as possible.
    pub speed: Option<f64>,
    /// Time from the first session's begin to the last one's end (seconds).
    pub elapsed_s: f64,
    /// That time in the log (seconds).
    pub log_span_s: f64,
    /// Sessions that were connected (count).
    pub sessions: u64,
    /// Sessions at one time at most (count).
    pub peak_sessions: usize,
    /// Statements that got a reply (count).
    pub statements: u64,
    /// Statements that got no reply: their session was lost, or the replay ended (count).
    pub unanswered: u64,
    /// Statements that were not sent: their session was lost or not connected, or the replay ended
    /// (count).
    pub unsent: u64,
    /// Statements of the log that cannot be replayed and were skipped, by obstacle (count).
    pub skipped: BTreeMap<&'static str, u64>,
    /// From due to done.
    pub latency: Option<Distribution>,
    /// From sent to done.
    pub service: Option<Distribution>,
    /// From due to sent.
    pub lag: Option<Distribution>,
    /// From sent to done, of the statements that `logged` is about.
    pub service_of_logged: Option<Distribution>,
    /// Durations in the log, of the answered statements whose duration was logged.
    pub logged: Option<Distribution>,
    /// Statements that failed, by SQLSTATE.
    pub errors: Vec<ErrorCount>,
    /// Statements that failed in the log and not in the replay (count).
    pub failed_only_in_log: u64,
    /// Statements that were cancelled since they took too long (count).
    pub timed_out: u64,
    /// Sessions that the server or the network ended (count).
    pub lost_sessions: u64,
    /// Why the first of them ended.
    pub first_loss: Option<String>,
    /// Sessions that could not be connected (count).
    pub failed_connections: u64,
    /// Why the first of them was not.
    pub first_failed_connection: Option<String>,
    /// CPU time of pgdyno while it replayed (seconds).
    pub client_cpu_s: f64,
}

impl Document for ReplayReport {
    const SCHEMA: &'static str = "pgdyno.replay/1";
}

impl ReplayReport {
    /// Returns statements that failed and did not in the log, or otherwise there (count).
    pub fn new_errors(&self) -> u64 {
        self.errors.iter().map(|error| error.new + error.other_in_log).sum()
    }

    /// Returns statements that failed as in the log (count).
    pub fn errors_as_in_log(&self) -> u64 {
        self.errors.iter().map(|error| error.also_in_log).sum()
    }

    pub(crate) fn set_tally(&mut self, tally: Tally) {
        self.statements = tally.latency.count();
        self.unanswered = tally.unanswered;
        self.unsent = tally.unsent;
        self.latency = Distribution::new(&tally.latency);
        self.service = Distribution::new(&tally.service);
        self.lag = Distribution::new(&tally.lag);
        self.service_of_logged = Distribution::new(&tally.service_of_logged);
        self.logged = Distribution::new(&tally.logged);
        self.errors = tally.errors.into_values().collect();
        self.failed_only_in_log = tally.failed_only_in_log;
        self.timed_out = tally.timed_out;
        self.lost_sessions = tally.lost_sessions;
        self.first_loss = tally.first_loss;
        self.failed_connections = tally.failed_connections;
        self.first_failed_connection = tally.first_failed_connection;
        self.sessions = tally.sessions;
        self.peak_sessions = tally.peak_sessions;
    }
}
