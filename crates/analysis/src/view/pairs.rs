//! Ratios of any two treatments, so that a page can take any of them as its baseline.

use serde::Serialize;

/// Ratios of tps between treatments. Each pair stands once: the other direction is the inverse.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PairsView {
    /// Treatments of the run (count).
    pub treatments: usize,
    /// The ratios.
    pub rows: Vec<PairRow>,
    /// Whether every pair of measured treatments is there. Otherwise only those with the best and
    /// the planned comparisons are.
    pub complete: bool,
}

/// Ratio of the tps of treatment `b` to that of treatment `a`: `[a, b, ratio, low, high,
/// p_together, significant]` in JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PairRow(
    /// Index of `a`.
    pub usize,
    /// Index of `b`, greater than that of `a`.
    pub usize,
    /// Geometric mean of the ratio.
    pub f64,
    /// Lower end of the 95% confidence interval.
    pub Option<f64>,
    /// Upper end of the interval.
    pub Option<f64>,
    /// p-value when all pairs of the run are judged together.
    pub Option<f64>,
    /// Whether the difference is significant; none without a verdict.
    pub Option<bool>,
);
