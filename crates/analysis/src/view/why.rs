//! A difference taken apart.

use pgdyno_stats::Gap;
use serde::Serialize;

/// Difference of two treatments taken apart: B is compared with A. Times are means over trials.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WhyView {
    /// Index of B in its plan.
    pub treatment: usize,
    /// Index of A in its plan.
    pub to: usize,
    /// Mean latency of a transaction by statement; none without a transaction on either side.
    #[serde(skip)]
    pub latency: Option<GapView>,
    /// Active time of the backends per transaction, by wait event; none where either side has no
    /// samples.
    #[serde(skip)]
    pub active: Option<GapView>,
    /// Device, WAL and CPU figures of both sides.
    pub figures: Vec<FigureView>,
    /// Telemetry that is missing, with reasons.
    pub missing: Vec<String>,
    /// Whether both run statements and none is the same, so that the gap has no shares.
    #[serde(skip)]
    pub no_common_statement: bool,
}

/// Difference (gap) and its parts, which add up to it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GapView {
    /// Mean of A (microseconds per transaction).
    pub a_us: f64,
    /// Mean of B (microseconds per transaction).
    pub b_us: f64,
    /// B minus A, over common blocks if trials are paired.
    pub gap_us: Gap,
    /// Whether the interval leaves 0 out; none without one.
    #[serde(rename = "told_apart")]
    pub significant: Option<bool>,
    /// Parts, the largest first.
    #[serde(skip)]
    pub parts: Vec<PartView>,
}

/// One part of a gap.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PartView {
    /// Part of the latency, or wait event.
    #[serde(skip)]
    pub part: GapPart,
    /// Mean of A (microseconds per transaction).
    pub a_us: f64,
    /// Mean of B (microseconds per transaction).
    pub b_us: f64,
    /// B minus A.
    pub gap_us: Gap,
    /// Share of the whole gap. Shares add up to 1; a part that shrank while the whole grew has a
    /// negative share.
    pub share: Option<f64>,
    /// 95% confidence interval of the share (Fieller's).
    pub ci95: Option<[f64; 2]>,
}

/// A figure on both sides, as means over trials.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FigureView {
    /// Name.
    pub name: &'static str,
    /// Unit.
    pub unit: &'static str,
    /// Mean of A; none without telemetry.
    pub a: Option<f64>,
    /// Mean of B; none without telemetry.
    pub b: Option<f64>,
    /// Geometric mean of B ÷ A; none if either is 0 or missing.
    pub ratio: Option<f64>,
    /// 95% confidence interval of the ratio.
    pub ci95: Option<[f64; 2]>,
}

/// Subject of one part of a gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GapPart {
    /// Part of a transaction's latency.
    Latency(Part),
    /// Wait event of the backends (`type:event`), or `CPU`.
    Event(String),
}

/// Part of a transaction's latency.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// A statement: its script, line and text.
    Statement {
        /// Name of the script.
        script: String,
        /// The line it begins on.
        line: u32,
        /// The command.
        text: String,
    },
    /// From due to sent: with a rate, the wait for a free client.
    WaitToBeSent,
    /// All else: meta commands, the load generator between statements, transactions cut by the
    /// window's edges.
    BetweenStatements,
}
