//! Rates that searches tried, with their latencies.

use serde::Serialize;

/// What a treatment's trials tried.
#[derive(Clone, Debug, Serialize)]
pub struct CapacityView {
    /// The treatment's index.
    pub treatment: usize,
    /// The rates with their latencies, over all completed trials: the lower rate first.
    pub curve: Vec<CurvePoint>,
    /// Its maximum rate in a sentence.
    pub words: String,
}

/// One step of one trial.
#[derive(Clone, Debug, Serialize)]
pub struct CurvePoint {
    /// Transactions offered per second.
    pub rate: f64,
    /// The trial's place in the plan, from 0.
    pub ordinal: u32,
    /// Whether it was to confirm the answer.
    pub confirming: bool,
    /// Median latency (microseconds).
    pub latency_us_p50: Option<f64>,
    /// 95th percentile of latency.
    pub latency_us_p95: Option<f64>,
    /// 99th percentile of latency.
    pub latency_us_p99: Option<f64>,
    /// Why it did not keep the objective; none if it did.
    pub broken: Option<String>,
}
