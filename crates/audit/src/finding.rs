//! Findings: what the rules report, and how sure they are.

use serde::Serialize;
use serde_json::Value;
use strum::Display;

/// Weight of a finding.
#[derive(Clone, Copy, Debug, Display, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[strum(serialize_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// A conclusion has less evidence than it seems.
    Warning,
    /// Figures contradict each other, or the measured commits were not durable.
    Serious,
}

/// Certainty of a finding.
#[derive(Clone, Copy, Debug, Display, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[strum(serialize_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// There may be another explanation.
    Possible,
    /// The finding rests on an assumption that its message names.
    Likely,
    /// The finding follows from the printed figures.
    Certain,
}

/// Fault that a rule found in a report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// Name of the rule.
    pub rule: &'static str,
    /// Weight of the finding.
    pub severity: Severity,
    /// Certainty of the finding.
    pub sure: Confidence,
    /// First of `lines`.
    pub line: usize,
    /// Lines of the report that the finding is about, from 1.
    pub lines: Vec<usize>,
    /// Text of `line`.
    pub quoted: String,
    /// Description of the fault.
    pub message: String,
    /// Computed figures, by name.
    pub computed: Value,
}

/// Figures that a rule checked and found right.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Checked {
    /// Name of the rule.
    pub rule: &'static str,
    /// First of `lines`.
    pub line: usize,
    /// Lines of the report that were checked, from 1.
    pub lines: Vec<usize>,
    /// Description of the check.
    pub message: String,
    /// Computed figures, by name.
    pub computed: Value,
}

/// Line that seems to hold a figure that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotUnderstood {
    /// Number of the line, from 1.
    pub line: usize,
    /// Text of the line.
    pub quoted: String,
    /// Reason why it could not be read.
    pub why: String,
}
