//! How an experiment's question is answered.

use serde::{Deserialize, Serialize};

/// How an experiment's question is answered: `[answer]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Answer {
    /// The kind of the first sentence.
    pub kind: AnswerKind,
    /// The level whose effect is asked for, of the first factor that has it; the last level of the
    /// first factor where none is named.
    #[serde(default)]
    pub level: Option<String>,
    /// The level that it is compared to; the factor's first where none is named.
    #[serde(default)]
    pub against: Option<String>,
    /// What the sentence calls that effect, in the words of the question:
    /// `waiting for the disk at commit`.
    #[serde(default)]
    pub words: Option<String>,
}

/// What an experiment's first sentence says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum AnswerKind {
    /// Which treatment is fastest.
    Leader,
    /// What one level of a factor costs or gains.
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
