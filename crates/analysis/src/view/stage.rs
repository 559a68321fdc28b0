//! One stage of a treatment's rate.

use serde::Serialize;

/// A stage of a treatment's rate over time, over its completed trials. A transaction belongs to
/// the stage in which it ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StageView {
    /// Stages that it stands for (count): neighbours are one where there are many.
    pub stages: usize,
    /// Beginning, when it first comes (seconds since the window's opening).
    pub begin_s: u64,
    /// Length (seconds).
    pub seconds: u64,
    /// Rate at its beginning (transactions due per second).
    pub from: f64,
    /// Rate at its end.
    pub to: f64,
    /// Mean rate.
    pub due: f64,
    /// Transactions that ended well in it, per second; none if no trial reached it.
    pub tps: Option<f64>,
    /// Transactions that ended well in it (count).
    pub transactions: u64,
    /// Transactions that ended in an error in it (count).
    pub failed: u64,
    /// Median latency of its transactions (microseconds); none without any.
    pub latency_us_p50: Option<f64>,
    /// 95th percentile of latency (microseconds).
    pub latency_us_p95: Option<f64>,
    /// 99th percentile of latency (microseconds).
    pub latency_us_p99: Option<f64>,
    /// Longest latency (microseconds).
    pub latency_us_max: Option<f64>,
}
