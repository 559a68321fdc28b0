//! The steps of a search: every rate that was tried.

use serde::{Deserialize, Serialize};

/// One rate that was tried.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SearchStep"))]
pub struct Step {
    /// Transactions offered per second; none for the first step, a closed loop that tells where to
    /// begin.
    pub rate: Option<f64>,
    /// Whether the step is to confirm the answer, over the whole window.
    pub confirming: bool,
    /// The window (seconds).
    pub measured_s: f64,
    /// Transactions per second that ended well.
    pub tps: Option<f64>,
    /// Transactions that ended well (count).
    pub transactions: u64,
    /// Transactions that ended in an error (count).
    pub failed: u64,
    /// Transactions that were skipped (count).
    pub skipped: u64,
    /// Median latency (microseconds).
    pub latency_us_p50: Option<f64>,
    /// 95th percentile of latency (microseconds).
    pub latency_us_p95: Option<f64>,
    /// 99th percentile of latency (microseconds).
    pub latency_us_p99: Option<f64>,
    /// 99.9th percentile of latency (microseconds).
    pub latency_us_p99_9: Option<f64>,
    /// Why the step did not keep the objective; none if it did, and for a closed loop.
    pub broken: Option<String>,
    /// Why the load generator may have been the limit; none if it was not.
    pub generator_limit: Option<String>,
}

/// Result of a trial's search.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Search {
    /// The highest rate that was confirmed (1/s); none if none was.
    pub max_rate: Option<f64>,
    /// The lowest rate that did not keep the objective (1/s); none if all did.
    pub least_broken: Option<f64>,
    /// Every rate that was tried, in order.
    pub steps: Vec<Step>,
}

impl Search {
    /// Whether the load generator, and not the server, may have set the answer. It may have if it
    /// was the limit where the lowest rate broke the objective, or where the answer was confirmed.
    pub fn generator_limited(&self) -> bool {
        let at = |rate: Option<f64>| {
            rate.into_iter().flat_map(|r| self.steps.iter().filter(move |s| s.rate == Some(r)))
        };
        let limited = |s: &Step| s.generator_limit.is_some();
        at(self.least_broken).any(|s| s.broken.is_some() && limited(s))
            || at(self.max_rate).any(|s| s.confirming && limited(s))
    }
}
