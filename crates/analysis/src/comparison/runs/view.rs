//! Comparison of two sides, as `pgdyno compare --json` prints it and reports show it. Keys are only
//! ever added.

use pgdyno_model::Levels;
use pgdyno_model::record::RunState;
use pgdyno_model::units::Epoch;
use pgdyno_stats::{HostNoise, NoHostNoise, NoInterval};
use serde::Serialize;

use crate::gate::{Form, Gate};
use crate::view::{LatencyRatio, LatencyView, NoiseFloor, RatioView, TpsView, WhyView, Withheld};

/// Comparison of side B with side A, treatment by treatment.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CompareView {
    /// Side A: the base of the comparison.
    pub a: SideView,
    /// Side B: compared with A.
    pub b: SideView,
    /// Names given with `--by`: what differs on purpose.
    pub by: Vec<String>,
    /// Whether both sides are of one run. Trials are then paired by block.
    pub same_run: bool,
    /// Measure beside latency: `tps` or `maximum rate`.
    pub measure: &'static str,
    /// Pairs of matching treatments.
    #[serde(skip)]
    pub pairs: Vec<PairView>,
    /// Differences between the sides other than their results.
    pub unequal: Vec<Unequal>,
    /// Gates, for every pair.
    #[serde(skip)]
    pub gates: Vec<GateView>,
    /// Whether any gate was exceeded.
    pub exceeded: bool,
    /// Worst outcome of all gates; none without a gate.
    pub outcome: Option<Outcome>,
    /// Circumstances that a reader needs to trust or doubt the figures.
    #[serde(skip)]
    pub notes: Vec<CompareNote>,
}

/// Circumstance of a comparison.
#[derive(Clone, Debug)]
pub enum CompareNote {
    /// Both sides are of one run.
    OneRun,
    /// The sides are two runs, which these earlier ones tell of.
    TwoRuns(EarlierCount),
    /// The run of a side is not complete.
    #[allow(missing_docs, reason = "the names say it")]
    NotComplete { side: &'static str, state: RunState, completed: usize, planned: usize },
    /// A side was measured by `pgdyno pgbench --store`.
    #[allow(missing_docs, reason = "the name says it")]
    AdHoc { side: &'static str },
    /// Versions of pgdyno differ.
    OtherVersions([String; 2]),
    /// The sides ran on different machines, by name.
    OtherHosts([Vec<String>; 2]),
    /// Noise floor of side B's host.
    NoiseFloor(NoiseFloor),
}

/// Earlier runs that the pairs of a comparison have.
#[derive(Clone, Copy, Debug)]
pub struct EarlierCount {
    /// Fewest earlier runs of the experiment that a pair has (count).
    pub least: usize,
    /// Most earlier runs of the experiment that a pair has (count).
    pub most: usize,
    /// Contribution of other experiments on the host to a pair: one without a verdict, if there is
    /// any.
    pub others: Others,
}

/// Contribution of repeated runs of other experiments on the host.
#[derive(Clone, Copy, Debug)]
pub enum Others {
    /// They are excluded by `own_runs_only`.
    NotAsked,
    /// They are used for the verdicts.
    Used(HostNoise),
    /// They tell nothing; the reason.
    Unknown(NoHostNoise),
    /// Too few of them were run so far.
    TooFew,
    /// They differ by less than the pair's own earlier runs, which are too few.
    Quieter,
}

/// One side: a run, or some treatments of one.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SideView {
    /// Name of the run.
    pub run: String,
    /// Name of its recipe or file.
    pub recipe: String,
    /// Begin of the run.
    #[serde(serialize_with = "pgdyno_text::format::as_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub started_at: Epoch,
    /// State of the run.
    pub state: RunState,
    /// Machines that it ran on, by name; none from an earlier version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Treatments without a match on the other side, one line each.
    pub unmatched: Vec<String>,
}

/// A treatment of B and the matching treatment of A.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PairView {
    /// Name of the pair.
    pub label: String,
    /// Treatment of A.
    pub a: MemberView,
    /// Treatment of B.
    pub b: MemberView,
    /// Ratio of B's tps to A's.
    #[serde(skip)]
    pub ratio: RatioView,
    /// Ratios of B's percentiles of latency to A's.
    pub latency: Vec<LatencyRatio>,
    /// Parts of the difference; none if the loads differ or the difference is not significant.
    #[serde(skip)]
    pub why: Option<WhyView>,
    /// Whether a trial of either was generator-limited.
    pub generator_limited: bool,
}

/// One treatment of a pair.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemberView {
    /// Index in the plan of its run.
    pub treatment: usize,
    /// Levels in one line.
    pub label: String,
    /// Levels.
    pub factors: Levels,
    /// Trials completed (count).
    pub trials: usize,
    /// Transactions per second; none without a completed trial.
    pub tps: Option<TpsView>,
    /// Reason why `tps` or its interval is missing.
    #[serde(serialize_with = "pgdyno_text::format::as_optional_text")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub reason: Option<NoInterval>,
    /// Latency of all transactions together (microseconds); none without a transaction.
    pub latency_us: Option<LatencyView>,
}

/// Difference between the sides other than their results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unequal {
    /// Name: `kernel`, `device`, `setting shared_buffers`, …
    pub what: String,
    /// Value on side A.
    pub a: String,
    /// Value on side B.
    pub b: String,
    /// Whether `--by` names it.
    pub on_purpose: bool,
    /// Indices of the pairs that differ in it.
    pub pairs: Vec<usize>,
}

/// Result of a gate for one pair.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GateView {
    /// Gate.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub gate: Gate,
    /// Index of the pair.
    pub pair: usize,
    /// Change (a share, signed); none without a ratio.
    pub change: Option<f64>,
    /// 95% confidence interval of the change.
    pub ci95: Option<[f64; 2]>,
    /// Evidence for the condition.
    pub state: GateState,
    /// Outcome.
    pub outcome: Outcome,
    /// Form of the question: `--fail-if` or `--fail-unless`.
    pub form: Form,
    /// Noise floor of the host (a share), where the gate asks for less.
    pub noise_floor: Option<f64>,
    /// True change (a share, signed) that the gate shows in 80% of such runs; none if nothing can
    /// be judged.
    pub catches: Option<f64>,
    /// Interval (as ratios) that the trials of two runs give by themselves.
    #[serde(skip)]
    pub within_runs: Option<[f64; 2]>,
    /// Reasons for which nothing may be known of the condition.
    #[serde(skip)]
    pub unknown: GateUnknown,
}

/// Reasons for which nothing may be known of a gate's condition.
#[derive(Clone, Copy, Debug)]
pub struct GateUnknown {
    /// There is a ratio, and no verdict may be drawn from it.
    pub withheld: Option<Withheld>,
    /// A trial has too few transactions for the percentile.
    pub lacks: bool,
    /// There is no interval.
    pub why: Option<NoInterval>,
}

/// Evidence of the data for the condition of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum GateState {
    /// The change is shown to be beyond the limit.
    Exceeded,
    /// The change is shown to be within the limit, or to be as required.
    Kept,
    /// The interval contains the limit: more trials would decide.
    Open,
    /// The required change is not shown.
    NotShown,
    /// There is no interval, or no verdict may be drawn from it.
    Unknown,
    /// One of the two has no completed trial: nothing shows that it works at all.
    NoTrial,
}

/// Outcome of a gate, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The gate lets the change pass.
    Passed,
    /// The data do not decide.
    Undecided,
    /// The gate stops the change.
    Exceeded,
}

impl GateState {
    /// Returns the outcome of a gate of that `form`. If the data do not decide, a gate that asks
    /// for proof is exceeded.
    pub fn outcome(self, form: Form) -> Outcome {
        match (self, form) {
            (Self::Kept, _) => Outcome::Passed,
            (Self::Open | Self::Unknown | Self::NoTrial, Form::FailIf) => Outcome::Undecided,
            _ => Outcome::Exceeded,
        }
    }
}
