//! Findings: what the rules report, and how sure they are.

use serde::Serialize;
use serde_json::Value;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// A conclusion rests on less than it seems to.
    Warning,
    /// Figures contradict each other, or what was measured was not durable.
    Serious,
}

/// How sure a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// There may be another reason.
    Possible,
    /// It rests on an assumption that its message names.
    Likely,
    /// It follows from what is printed.
    Certain,
}

/// Something that a rule found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The rule's name.
    pub rule: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// How sure it is.
    pub sure: Confidence,
    /// The line that it stands on, from 1: the first of `lines`.
    pub line: usize,
    /// All lines that it stands on.
    pub lines: Vec<usize>,
    /// What stands on `line`.
    pub quoted: String,
    /// What was found.
    pub message: String,
    /// The figures that were computed, by name.
    pub computed: Value,
}

/// Something that a rule looked at and found right.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Checked {
    /// The rule's name.
    pub rule: &'static str,
    /// The first of `lines`.
    pub line: usize,
    /// The lines that it stands on, from 1.
    pub lines: Vec<usize>,
    /// What was checked.
    pub message: String,
    /// The figures that were computed, by name.
    pub computed: Value,
}

/// A line that seems to hold a figure that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotUnderstood {
    /// The line, from 1.
    pub line: usize,
    /// What stands there.
    pub quoted: String,
    /// Why it could not be read.
    pub why: String,
}
