//! One generator's part in a treatment.

use serde::Serialize;

/// One of several generators that offered a treatment's load together, over its completed trials.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GeneratorView {
    /// Name: a host, or `local-1`.
    pub name: String,
    /// Clients in the last trial (count).
    pub clients: u32,
    /// Event loops in the last trial (count).
    pub threads: u32,
    /// Trials in which it offered load (count).
    pub trials: usize,
    /// Transactions that ended well in the windows (count).
    pub transactions: u64,
    /// Transactions that ended in an error in the windows (count).
    pub failed: u64,
    /// Transactions per second of all windows together; none for windows of no length.
    pub tps: Option<f64>,
    /// Mean latency of its transactions (microseconds); none without any.
    pub latency_us_mean: Option<f64>,
    /// Lowest and highest median latency of a trial (microseconds).
    pub latency_us_p50: Option<[f64; 2]>,
    /// Lowest and highest 99th percentile of latency of a trial (microseconds).
    pub latency_us_p99: Option<[f64; 2]>,
    /// CPU that it used in the windows (cores).
    pub cpus: Option<f64>,
    /// CPU of its busiest event loop, in the trial where that was highest (cores).
    pub busiest_thread: f64,
    /// Delay of its start after the agreed instant, in the trial where it may have been largest
    /// (microseconds; negative if it was early).
    pub start_skew_us: f64,
    /// Uncertainty of its clock at that start (microseconds, in both directions).
    pub clock_uncertainty_us: f64,
}
