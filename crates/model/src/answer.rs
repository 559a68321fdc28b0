//! How an experiment's question is answered.

use serde::{Deserialize, Serialize};

/// How an experiment's question is answered: `[answer]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Answer {
    /// Kind of the report's first sentence.
    pub kind: AnswerKind,
    /// Level whose effect the sentence states: of the first factor that has this level. None: the
    /// last level of the first factor.
    pub level: Option<String>,
    /// Level that `level` is compared with; none: the factor's first.
    pub against: Option<String>,
    /// Name of the effect in the sentence, in the words of the question:
    /// `waiting for the disk at commit`.
    pub words: Option<String>,
}

/// Claim that the report's first sentence makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum AnswerKind {
    /// Which treatment is fastest.
    Leader,
    /// The cost or gain of one level of a factor.
    Effect,
    /// How far the same treatment differs from itself.
    #[serde(rename = "a/a")]
    AA,
    /// Whether a storage is good enough, and honest.
    Acceptance,
    /// Which treatments keep what they acknowledged.
    Safety,
    /// How tps grows with the number of clients.
    Sweep,
    /// The highest rate that keeps an objective.
    Capacity,
}
