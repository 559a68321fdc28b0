//! A rule, and what it reports.

use serde_json::{Value, json};

use crate::finding::{Checked, Confidence, Finding, Severity};
use crate::recognise::Evidence;

/// Something to look for.
pub struct Rule {
    /// Its name, as findings bear it.
    pub name: &'static str,
    /// What it looks for, with its tolerance.
    pub looks_for: &'static str,
    /// What it stands on: a formula's source, a program's documentation.
    pub source: &'static str,
    pub(super) judge: fn(&Evidence, &mut Verdicts),
}

/// What a rule has to say.
#[derive(Default)]
pub(super) struct Verdicts {
    pub(super) rule: &'static str,
    pub(super) findings: Vec<Finding>,
    pub(super) checked: Vec<Checked>,
}

impl Verdicts {
    pub(super) fn found(
        &mut self,
        severity: Severity,
        sure: Confidence,
        lines: &[usize],
        message: impl Into<String>,
        computed: Value,
    ) {
        self.findings.push(Finding {
            rule: self.rule,
            severity,
            sure,
            line: lines.first().copied().unwrap_or(1),
            lines: lines.to_vec(),
            quoted: String::new(),
            message: message.into(),
            computed,
        });
    }

    /// Reports that the command on line `command` asks for one thing, and the report, on line
    /// `report`, is of another.
    pub(super) fn asked_otherwise(
        &mut self,
        [report, command]: [usize; 2],
        asked: &str,
        reported: &str,
    ) {
        let message = format!(
            "the command above (line {command}) asks for {asked}, and the report is of {reported}: which of them was measured is not known"
        );
        let computed = json!({ "asked": asked, "reported": reported });
        self.found(Severity::Warning, Confidence::Likely, &[report, command], message, computed);
    }

    pub(super) fn right(&mut self, lines: &[usize], message: impl Into<String>, computed: Value) {
        self.checked.push(Checked {
            rule: self.rule,
            line: lines.first().copied().unwrap_or(1),
            lines: lines.to_vec(),
            message: message.into(),
            computed,
        });
    }
}

/// Beyond this share a disagreement of figures is serious, as it is no matter of what was counted
/// when.
pub(super) const SERIOUS: f64 = 0.05;

/// Weight of figures that disagree by this share.
pub(super) fn weight(share: f64) -> Severity {
    if share.abs() > SERIOUS { Severity::Serious } else { Severity::Warning }
}

/// `2.00`, `1,234`: for sentences.
pub(super) fn number(value: f64) -> String {
    pgdyno_model::format::rate(value)
}

/// To as many digits as a sentence bears that compares it with a printed figure.
pub(super) fn exact(value: f64) -> String {
    let text = format!("{value:.4}");
    let short = text.trim_end_matches('0').trim_end_matches('.');
    short.to_owned()
}
