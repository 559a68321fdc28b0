//! What `pgdyno compare --json` prints and its reports show. Keys are only ever added.

use pgdyno_model::Levels;
use pgdyno_model::record::RunState;
use pgdyno_model::units::Epoch;
use serde::Serialize;

use super::super::view::{LatencyRatio, LatencyView, RatioView, TpsView, WhyView};
use crate::gate::{Form, Gate};

/// Treatments of side B beside those of side A that they match.
#[derive(Clone, Debug, Serialize)]
pub struct CompareView {
    /// What is compared to.
    pub a: SideView,
    /// What is compared.
    pub b: SideView,
    /// What is compared on purpose, as it was named.
    pub by: Vec<String>,
    /// Whether both sides are of one run, so that trials are paired by block.
    pub same_run: bool,
    /// What is compared beside latency: `tps`, or `maximum rate`.
    pub measure: &'static str,
    /// What was found, in a sentence or two.
    pub answer: Vec<String>,
    /// The treatments that match.
    pub pairs: Vec<PairView>,
    /// What differs between the sides beside their results.
    pub unequal: Vec<Unequal>,
    /// What was not to be let through, for every pair.
    pub gates: Vec<GateView>,
    /// Whether any gate was exceeded.
    pub exceeded: bool,
    /// What becomes of all gates together: the worst of theirs; none without a gate.
    pub outcome: Option<Outcome>,
    /// What a reader must know to trust or doubt the above.
    pub notes: Vec<String>,
}

/// One side: a run, or some treatments of one.
#[derive(Clone, Debug, Serialize)]
pub struct SideView {
    /// The run.
    pub run: String,
    /// Its recipe's or file's name.
    pub recipe: String,
    /// When it began.
    #[serde(serialize_with = "pgdyno_model::format::as_text")]
    pub started_at: Epoch,
    /// Where it stands.
    pub state: RunState,
    /// Its treatments that match none of the other side, in one line each.
    pub unmatched: Vec<String>,
}

/// A treatment of B beside one of A.
#[derive(Clone, Debug, Serialize)]
pub struct PairView {
    /// The pair in one line.
    pub label: String,
    /// The treatment of A.
    pub a: MemberView,
    /// The treatment of B.
    pub b: MemberView,
    /// B's tps over A's.
    pub ratio: RatioView,
    /// B's percentiles of latency over A's.
    pub latency: Vec<LatencyRatio>,
    /// Where the difference lies; none where the two offer different loads or cannot be told apart.
    pub why: Option<WhyView>,
    /// Whether a trial of either was generator-limited.
    pub generator_limited: bool,
    /// All of it in a sentence.
    pub words: String,
}

/// One treatment of a pair.
#[derive(Clone, Debug, Serialize)]
pub struct MemberView {
    /// Its index in its run's plan.
    pub treatment: usize,
    /// Its levels in one line.
    pub label: String,
    /// Its levels.
    pub factors: Levels,
    /// Trials completed (count).
    pub trials: usize,
    /// Transactions per second; none without a completed trial.
    pub tps: Option<TpsView>,
    /// Why `tps` or its interval is missing.
    pub reason: Option<String>,
    /// Latency of all its transactions together; none without one.
    pub latency_us: Option<LatencyView>,
}

/// Something other than the results in which the sides differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unequal {
    /// What: `kernel`, `device`, `setting shared_buffers`, …
    pub what: String,
    /// As it was on side A.
    pub a: String,
    /// As it was on side B.
    pub b: String,
    /// Whether it is, or belongs to, what is compared on purpose.
    pub on_purpose: bool,
    /// The pairs' indices.
    pub pairs: Vec<usize>,
}

/// What became of one gate for one pair.
#[derive(Clone, Debug, Serialize)]
pub struct GateView {
    /// The gate.
    pub gate: Gate,
    /// The pair's index.
    pub pair: usize,
    /// The change (a share, signed); none where there is no ratio.
    pub change: Option<f64>,
    /// Its 95% confidence interval.
    pub ci95: Option<[f64; 2]>,
    /// What the interval says.
    pub state: GateState,
    /// What that comes to.
    pub outcome: Outcome,
    /// What the gate asks.
    pub form: Form,
    /// The host's noise floor (a share), where the gate asks for less than that.
    pub noise_floor: Option<f64>,
    /// The true change that the gate shows in 80% of runs like these (a share, signed); none where
    /// nothing can be judged.
    pub catches: Option<f64>,
    /// All of it in a sentence.
    pub words: String,
}

/// What the data say of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GateState {
    /// The change is shown to be what is not let through.
    Exceeded,
    /// It is shown not to be; or to be what was to be shown.
    Kept,
    /// The interval holds the limit: more trials would tell.
    Open,
    /// What was to be shown is not.
    NotShown,
    /// There is no interval, or none that a verdict may be drawn from.
    Unknown,
}

/// What becomes of a gate, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The change is let through.
    Passed,
    /// The data do not tell.
    Undecided,
    /// The change is not let through.
    Exceeded,
}

impl GateState {
    /// What it comes to.
    #[must_use]
    pub fn outcome(self) -> Outcome {
        match self {
            Self::Kept => Outcome::Passed,
            Self::Open | Self::Unknown => Outcome::Undecided,
            Self::Exceeded | Self::NotShown => Outcome::Exceeded,
        }
    }
}
