//! Latency distributions and their percentiles.

use pgdyno_model::Latencies;
use pgdyno_stats::Method;
use serde::Serialize;

/// A latency distribution in microseconds. A quantile beyond the sample's size equals the maximum.
/// `stddev` is the standard deviation of the latencies, to three digits as the histogram is.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[allow(missing_docs)]
pub struct LatencyView {
    pub count: u64,
    pub mean: f64,
    pub stddev: f64,
    pub p50: f64,
    pub p90: f64,
    pub p95: f64,
    pub p99: f64,
    pub p99_9: f64,
    pub p99_99: f64,
    pub max: f64,
}

impl LatencyView {
    /// Summarises `latencies`; none without one.
    pub(crate) fn new(latencies: &Latencies) -> Option<Self> {
        let quantile = |q| latencies.quantile_us(q);
        Some(Self {
            count: latencies.count(),
            mean: latencies.mean_us()?,
            stddev: latencies.stddev_us()?,
            p50: quantile(0.5)?,
            p90: quantile(0.9)?,
            p95: quantile(0.95)?,
            p99: quantile(0.99)?,
            p99_9: quantile(0.999)?,
            p99_99: quantile(0.9999)?,
            max: latencies.max_us()?,
        })
    }
}

/// The percentiles of latency that are given intervals: name and quantile.
pub const PERCENTILES: [(&str, f64); 3] = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)];

/// A percentile of latency over the trials that have ten transactions beyond it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyInterval {
    /// Name of the percentile.
    pub percentile: &'static str,
    /// Geometric mean over the trials (microseconds).
    pub us: f64,
    /// 95% confidence interval, Student's on logarithms; none for one trial or equal ones.
    pub ci95: Option<[f64; 2]>,
}

/// A percentile of latency over another treatment's.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyRatio {
    /// Name of the percentile.
    pub percentile: &'static str,
    /// Geometric mean of the ratio.
    pub value: f64,
    /// 95% confidence interval. Within a run it is simultaneous with those of all pairs; between
    /// two runs it holds for itself alone.
    pub ci95: Option<[f64; 2]>,
    /// Method of the interval.
    pub method: Option<Method>,
}
