//! Advice of the doctor: findings, rules that found nothing, and rules that could not be judged.

use serde::Serialize;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Severity {
    /// Acknowledged data can be lost.
    Danger,
    /// PostgreSQL is slower than it could be, or a benchmark measures something else.
    Warning,
    /// Worth knowing or trying. Only a run shows whether it pays.
    Note,
}

impl Severity {
    /// Returns the name for reports.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A rule's finding and its remedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Advice {
    /// The rule's name.
    pub rule: &'static str,
    /// How much the finding matters.
    pub severity: Severity,
    /// The finding and its consequence.
    pub found: String,
    /// Steps to take: commands as typed, or words if there is no command.
    pub remedy: Vec<String>,
    /// The document that the rule comes from.
    pub source: &'static str,
}

/// A rule that could not be judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unobservable {
    /// The rule's name.
    pub rule: &'static str,
    /// Facts that could not be observed.
    pub why: String,
}

/// The results of all rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Advised {
    /// Findings, the most severe first.
    pub advice: Vec<Advice>,
    /// Rules that found nothing, each as a short statement.
    pub fine: Vec<&'static str>,
    /// Rules that apply here and could not be judged.
    pub unseen: Vec<Unobservable>,
}
