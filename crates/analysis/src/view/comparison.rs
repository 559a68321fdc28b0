//! Two treatments compared.

use pgdyno_stats::{Method, NoInterval};
use serde::Serialize;

use super::latency::LatencyRatio;

/// Ratio of two treatments' tps, and whether it is significant.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RatioView {
    /// Geometric mean of the ratio; none where none can be formed.
    pub value: Option<f64>,
    /// 95% confidence interval. Within a run it is simultaneous: 95% of runs have all ratios in
    /// their intervals, whichever of them the data choose.
    pub ci95: Option<[f64; 2]>,
    /// Interval from the trials of two runs alone. It lacks the spread between equal runs. None
    /// within one run.
    pub within_runs: Option<[f64; 2]>,
    /// Method of the interval.
    pub method: Option<Method>,
    /// p-value of no difference, for this comparison alone.
    pub p: Option<f64>,
    /// p-value when all pairs of the run's treatments are judged together.
    pub p_together: Option<f64>,
    /// Whether `p_together` is at most 5%; none without an interval, or where `withheld` says why.
    #[serde(rename = "told_apart")]
    pub significant: Option<bool>,
    /// Reason for an interval without a verdict.
    #[serde(skip)]
    pub withheld: Option<Withheld>,
    /// Reason for a missing interval, or a missing ratio.
    #[serde(skip)]
    pub why: Option<NoInterval>,
    /// Measure: `tps` or `maximum rate`.
    #[serde(skip)]
    pub measure: &'static str,
    /// Margin within which `equivalent` is judged (a share).
    #[serde(skip)]
    pub margin: Option<f64>,
    /// Whether the two are equivalent within the plan's margin (two one-sided tests, Holm); none
    /// without an interval or a margin.
    pub equivalent: Option<bool>,
    /// Minimum detectable effect: the true difference (a share) that 80% of such runs find
    /// significant.
    #[serde(rename = "detectable")]
    pub minimum_detectable: Option<f64>,
}

/// Reason for an interval without a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Withheld {
    /// The run is not finished.
    RunNotFinished,
    /// Too few earlier runs tell how far equal runs differ on this host.
    TooFewRuns {
        /// Earlier runs that were found (count).
        found: usize,
    },
}

/// Two treatments that differ in one factor only.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// Factor in which they differ.
    pub factor: String,
    /// Levels of the other factors, which both share, in one line; empty for an experiment of one
    /// factor.
    pub given: String,
    /// Index of the compared treatment.
    pub treatment: usize,
    /// Index of the treatment that it is compared with.
    pub to: usize,
    /// Ratio of their tps.
    #[serde(skip)]
    pub ratio: RatioView,
    /// Whether the difference is significant, as the ratio's `significant` says.
    pub holm: Option<bool>,
    /// Ratios of percentiles of latency.
    pub latency: Vec<LatencyRatio>,
    /// Whether a trial of either was generator-limited, so that the difference may be the
    /// generator's.
    pub generator_limited: bool,
}

/// Effect under one combination of the other factors' levels.
#[derive(Clone, Debug)]
pub struct Effect {
    /// Levels of the other factors in one line; empty without any.
    pub given: String,
    /// Ratio of the level's measure to that of the level it is compared with.
    pub ratio: RatioView,
}
