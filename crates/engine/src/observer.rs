//! Progress of a running load, second by second, for the caller that started it.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use pgdyno_model::Latencies;
use pgdyno_model::measurement::Sums;

use crate::schedule::Phase;

/// Callbacks and stop flag of a load that runs.
pub struct LoadObserver<'a> {
    /// Ends the load when it becomes true.
    pub stop: &'a AtomicBool,
    /// Called once with the time at which the window opened, from the calling thread.
    pub on_open: &'a (dyn Fn(Instant) + Sync),
    /// Called about once a second in every phase, from the calling thread.
    pub on_second: &'a (dyn Fn(&LiveSecond) + Sync),
}

/// The load of one second, or of the part of a second that a phase boundary cut.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveSecond {
    /// Phase that the second lies in.
    pub phase: Phase,
    /// Time from the phase's beginning to the second's end.
    pub elapsed: Duration,
    /// Transactions per second.
    pub tps: f64,
    /// Median latency (microseconds); none when no transaction ended.
    pub latency_us_p50: Option<f64>,
    /// 99th percentile of latency (microseconds).
    pub latency_us_p99: Option<f64>,
    /// Transactions that failed (count).
    pub failed: u64,
    /// Transactions that ended well (count).
    pub transactions: u64,
    /// Latency distribution; none when no transaction ended.
    pub latency: Option<Latencies>,
    /// 99th percentile of the event loops' lag (microseconds); none when no event was handled.
    pub event_loop_lag_us_p99: Option<f64>,
    /// Exact sums: latencies, lags, retries, failures by kind.
    pub sums: Sums,
}
