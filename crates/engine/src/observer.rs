//! What the caller of a load sees while it runs.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use pgdyno_model::Latencies;
use pgdyno_model::measurement::Sums;

use crate::schedule::Phase;

/// What the caller sees, and may say, while the load runs.
pub struct LoadObserver<'a> {
    /// Becomes true when the load is to end.
    pub stop: &'a AtomicBool,
    /// Called once, from the calling thread, when the window opens; with when it did.
    pub on_open: &'a (dyn Fn(Instant) + Sync),
    /// Called about once a second, from the calling thread, in every phase.
    pub on_second: &'a (dyn Fn(&LiveSecond) + Sync),
}

/// The load in its last whole second, or the part of it that a phase ended.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveSecond {
    /// The phase it lay in.
    pub phase: Phase,
    /// From the phase's beginning to the second's end.
    pub elapsed: Duration,
    /// Transactions per second in it.
    pub tps: f64,
    /// Median latency in it (microseconds); none when nothing ended.
    pub latency_us_p50: Option<f64>,
    /// 99th percentile of latency in it (microseconds).
    pub latency_us_p99: Option<f64>,
    /// Transactions that failed in it (count).
    pub failed: u64,
    /// Transactions that ended well in it (count).
    pub transactions: u64,
    /// Latency in it; none when nothing ended.
    pub latency: Option<Latencies>,
    /// What is added up of it.
    pub sums: Sums,
}
