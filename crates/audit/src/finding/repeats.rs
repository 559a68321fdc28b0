//! Repeats: how many there are, and how they spread.

#![allow(missing_docs, reason = "fields have the names of the report's figures")]

use serde::Serialize;

use super::Program;

/// Repeats of one measurement, or of several.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum RepeatsKind {
    /// Row with one value, or with equal ones.
    EqualValues { row: String, n_in_effect: usize, equal_values: Vec<f64> },
    /// Runs without a repeat; the ratio of two, where their parameters are equal.
    SingleRuns { program: Program, runs: usize, tps: Vec<f64>, ratio: Option<f64> },
    /// Rows with a mean of an unknown number of repeats.
    MeansAlone { rows: usize },
    /// Rows with one figure and no spread.
    OneFigure { rows: usize, is_time: bool },
    /// Rows that rise or fall over their repeats.
    Trends(Trends),
    /// Intervals of the rows' means.
    Intervals { intervals: Vec<Interval> },
    /// More rows than can be compared each with each.
    TooManyRows { rows: usize },
    /// All pairs of rows, compared.
    Compared(Compared),
}

/// Rows that rise or fall over their repeats.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trends {
    pub rows: Vec<RowTrend>,
    /// Rows of four repeats or more (count).
    pub tested: usize,
    pub chance_of_so_many: f64,
    pub chance_of_one_so_steady: f64,
}

/// All pairs of rows, compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// Rows that differ neither from the highest nor, mostly, from each other; if no pair is
    /// alike, all rows.
    pub rows: Vec<String>,
    pub pairs: Vec<RowsCompared>,
    /// Highest row, where two of the other `rows` do differ.
    pub highest: Option<String>,
    /// Least difference to the highest row that would have been seen (percent).
    pub detectable_percent: Option<f64>,
    /// Further pairs that do not differ.
    pub others: Vec<[String; 2]>,
}

/// Trend of a row over its repeats.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RowTrend {
    /// Name of the row.
    pub row: String,
    /// Whether it rises; else it falls.
    pub rising: bool,
    /// Repeats in their order.
    pub values: Vec<f64>,
    /// Share of orders with such a trend, up or down.
    pub chance: f64,
}

/// Mean of a row's repeats with its interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// Name of the row.
    pub row: String,
    /// Repeats (count).
    pub n: usize,
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Standard deviation.
    pub sd: Option<f64>,
    /// 95% confidence interval.
    pub ci95: Option<[f64; 2]>,
    /// Reason for a missing interval.
    pub why: Option<String>,
}

/// Ratio of two rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RowsCompared {
    /// Name of one row.
    pub a: String,
    /// Name of the other.
    pub b: String,
    /// Mean of `a` ÷ mean of `b`.
    pub ratio: Option<f64>,
    /// 95% confidence interval of the ratio.
    pub ci95: Option<[f64; 2]>,
    /// p-value by Holm's rule.
    pub p_holm: f64,
    /// Least difference that would have been seen (percent).
    pub would_have_been_seen_percent: Option<f64>,
}
