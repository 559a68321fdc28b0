//! Views of factors over all their levels: courses over ordered factors, an effect averaged over
//! the other factors, interactions of two.

use serde::Serialize;

/// Course of tps, or of the maximum rate, over the levels of an ordered factor.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CourseView {
    /// The factor.
    pub factor: String,
    /// The other factors' levels in one line; empty where this factor is all that varies.
    pub given: String,
    /// Indices of the measured treatments, by ascending level.
    pub treatments: Vec<usize>,
    /// Whether the course rises somewhere.
    pub rises: bool,
    /// Whether the course falls somewhere.
    pub falls: bool,
    /// First and last of `treatments` (positions) that may be the highest, with 95% confidence, if
    /// there is one peak; none where it falls and rises again.
    pub peak: Option<[usize; 2]>,
    /// Fitted curve, a point for each of `treatments`; empty where the treatments share no noise.
    pub curve: Vec<CoursePoint>,
}

/// Point of a fitted curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CoursePoint {
    /// Fitted tps, or maximum rate (1/s).
    pub value: f64,
    /// Band that holds the whole curve's shape in 95% of runs, if it has one peak.
    pub band: [f64; 2],
}

/// Effect that the question asks for, averaged over all combinations of the other factors' levels.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EffectView {
    /// The factor.
    pub factor: String,
    /// Level whose effect is asked for.
    pub level: String,
    /// Level that `level` is compared with.
    pub against: String,
    /// Combinations of the other factors' levels (count): 2 or more.
    pub combinations: usize,
    /// Geometric mean of the ratios of tps, or of maximum rates.
    pub ratio: f64,
    /// 95% confidence interval of `ratio`.
    pub ci95: [f64; 2],
    /// p-value of no effect.
    pub p: f64,
    /// Whether `p` is at most 5%.
    pub significant: bool,
}

/// Interaction of two factors: whether the effect of one depends on the other.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InteractionView {
    /// Factor whose effect is judged.
    pub factor: String,
    /// Factor on which the effect may depend.
    pub on: String,
    /// p-value of no interaction, beside all other pairs of factors.
    pub p: f64,
    /// Whether `p` is at most 5%.
    pub depends: bool,
    /// Level of `factor` whose ratio to `against` differs most clearly.
    pub level: String,
    /// Level of `factor` that `level` is compared with.
    pub against: String,
    /// Level of `on` where that ratio is higher.
    pub higher_with: String,
    /// Level of `on` where that ratio is lower.
    pub lower_with: String,
    /// Ratio at `higher_with` over the ratio at `lower_with`: 1 or more.
    pub ratio: f64,
    /// 95% confidence interval of `ratio`; it holds for all levels of both factors together.
    pub ci95: [f64; 2],
}
