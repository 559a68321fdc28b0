//! The rules: each an item of its own, registered in the list of its file.

mod changes;
mod claims;
mod comparability;
mod design;
mod durability;
mod progress;
mod repeats;
mod runs;
mod sysbench;
mod tables;
mod zfs;

use serde_json::Value;

use super::recognise::Evidence;
use super::{Checked, Finding, Severity, Sure};

/// Something to look for.
pub struct Rule {
    /// Its name, as findings bear it.
    pub name: &'static str,
    /// What it looks for, with its tolerance.
    pub looks_for: &'static str,
    /// What it stands on: a formula's source, a program's documentation.
    pub source: &'static str,
    judge: fn(&Evidence, &mut Verdicts),
}

/// All rules, in the order in which they judge.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    [
        runs::RULES,
        sysbench::RULES,
        tables::RULES,
        claims::RULES,
        changes::RULES,
        repeats::RULES,
        comparability::RULES,
        progress::RULES,
        durability::RULES,
        zfs::RULES,
        design::RULES,
    ]
    .into_iter()
    .flatten()
}

/// What a rule has to say.
#[derive(Default)]
struct Verdicts {
    rule: &'static str,
    findings: Vec<Finding>,
    checked: Vec<Checked>,
}

impl Verdicts {
    fn found(
        &mut self,
        severity: Severity,
        sure: Sure,
        lines: &[usize],
        message: String,
        computed: Value,
    ) {
        let line = lines.first().copied().unwrap_or(1);
        self.findings.push(Finding {
            rule: self.rule,
            severity,
            sure,
            line,
            lines: lines.to_vec(),
            quoted: String::new(),
            message,
            computed,
        });
    }

    fn right(&mut self, lines: &[usize], message: String, computed: Value) {
        let line = lines.first().copied().unwrap_or(1);
        self.checked.push(Checked {
            rule: self.rule,
            line,
            lines: lines.to_vec(),
            message,
            computed,
        });
    }
}

/// What all rules say: findings with the most serious first, then by line.
pub(super) fn judge(evidence: &Evidence) -> (Vec<Finding>, Vec<Checked>) {
    let mut verdicts = Verdicts::default();
    for rule in rules() {
        verdicts.rule = rule.name;
        (rule.judge)(evidence, &mut verdicts);
    }
    let Verdicts { mut findings, mut checked, .. } = verdicts;
    findings.sort_by_key(|f| (std::cmp::Reverse(f.severity), f.line));
    checked.sort_by_key(|c| c.line);
    (findings, checked)
}

/// `2.00`, `1,234`: for sentences.
fn number(value: f64) -> String {
    crate::number::rate(value)
}

/// To as many digits as a sentence bears that compares it with a printed figure.
fn exact(value: f64) -> String {
    let text = format!("{value:.4}");
    let short = text.trim_end_matches('0').trim_end_matches('.');
    short.to_owned()
}
