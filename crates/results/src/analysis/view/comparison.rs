//! Two treatments compared.

use pgdyno_stats::Method;
use serde::Serialize;

use super::latency::LatencyRatio;

/// A treatment's tps over another's.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RatioView {
    /// The geometric mean of the ratio; none where none can be formed.
    pub value: Option<f64>,
    /// Its 95% confidence interval, for itself alone; of a ratio to the best, wider, so that it
    /// holds although the data chose the best.
    pub ci95: Option<[f64; 2]>,
    /// The interval that the trials of two runs give by themselves, which leaves out how far equal
    /// runs differ; none within one run.
    pub within_runs: Option<[f64; 2]>,
    /// How the interval was made.
    pub method: Option<Method>,
    /// The p-value of no difference, for itself alone.
    pub p: Option<f64>,
    /// The same when all pairs of the run's treatments are judged together (Holm, with weights).
    pub p_together: Option<f64>,
    /// Whether `p_together` is at most 5%; none without an interval, or where `withheld` says why.
    #[serde(rename = "told_apart")]
    pub significant: Option<bool>,
    /// Why there is an interval and no verdict: the run is not finished, or runs are compared and
    /// nothing tells how far equal ones differ.
    pub withheld: Option<String>,
    /// Whether the two are equivalent within the plan's margin (two one-sided tests, Holm); none
    /// without an interval or a margin.
    pub equivalent: Option<bool>,
    /// The smallest true difference (a share) that is told apart in 80% of runs like this one.
    #[serde(rename = "detectable")]
    pub minimum_detectable: Option<f64>,
    /// The same in words.
    pub verdict: String,
}

/// Two treatments that differ in one factor only.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The factor in which they differ.
    pub factor: String,
    /// What they share, in one line; empty for an experiment of one factor.
    pub given: String,
    /// The compared treatment's index.
    pub treatment: usize,
    /// The index of the treatment it is compared to.
    pub to: usize,
    /// The ratio of their tps.
    pub ratio: RatioView,
    /// The same as the ratio's `significant`.
    pub holm: Option<bool>,
    /// The ratios of percentiles of latency.
    pub latency: Vec<LatencyRatio>,
    /// Whether a trial of either was generator-limited, so that the difference may be the
    /// generator's.
    pub generator_limited: bool,
    /// All of it in a sentence.
    pub words: String,
}
