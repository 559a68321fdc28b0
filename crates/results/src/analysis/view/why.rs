//! A difference taken apart.

use pgdyno_stats::Gap;
use serde::Serialize;

/// Two treatments taken apart. A is what is compared to, B what is compared; times are means over
/// trials.
#[derive(Clone, Debug, Serialize)]
pub struct WhyView {
    /// B's index in its plan.
    pub treatment: usize,
    /// A's.
    pub to: usize,
    /// The transaction's mean latency, by statement; none without a transaction on either side.
    pub latency: Option<GapView>,
    /// The backends' time for each transaction, without waiting for the load, by wait event; none
    /// where either was not watched.
    pub active: Option<GapView>,
    /// What else each took.
    pub figures: Vec<FigureView>,
    /// What was not watched, and why.
    pub missing: Vec<String>,
    /// The largest contributors in sentences, for themselves.
    pub words: Vec<String>,
}

/// A gap and its parts, which add up to it.
#[derive(Clone, Debug, Serialize)]
pub struct GapView {
    /// A's mean (microseconds a transaction).
    pub a_us: f64,
    /// B's.
    pub b_us: f64,
    /// B's less A's, over blocks that have both where they are paired.
    pub gap_us: Gap,
    /// Whether the interval leaves 0 out; none without one.
    #[serde(rename = "told_apart")]
    pub significant: Option<bool>,
    /// The parts, the largest gap first.
    pub parts: Vec<PartView>,
}

/// One part of a gap.
#[derive(Clone, Debug, Serialize)]
pub struct PartView {
    /// What it is: a statement's text, a wait event, or words.
    pub what: String,
    /// The statement, or what else of a transaction's latency; none for a wait event.
    pub part: Option<Part>,
    /// A's mean (microseconds a transaction).
    pub a_us: f64,
    /// B's.
    pub b_us: f64,
    /// B's less A's.
    pub gap_us: Gap,
    /// Its share of the whole gap: all shares add up to 1, and parts that shrank while the whole
    /// grew have negative ones.
    pub share: Option<f64>,
    /// The share's 95% confidence interval (Fieller's).
    pub ci95: Option<[f64; 2]>,
}

/// A figure on both sides: means over trials.
#[derive(Clone, Debug, Serialize)]
pub struct FigureView {
    /// What it is.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// A's mean; none where it was not watched.
    pub a: Option<f64>,
    /// B's.
    pub b: Option<f64>,
    /// B's geometric mean over A's; none where either is 0 or none.
    pub ratio: Option<f64>,
    /// Its 95% confidence interval.
    pub ci95: Option<[f64; 2]>,
}

/// A part of a transaction's latency.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// A statement: its script, line and text.
    Statement {
        /// Its script's name.
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
