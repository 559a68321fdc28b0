//! The rules: each an item of its own, registered in the list of its file.

mod commands;
mod comparability;
mod contradictions;
mod design;
mod durability;
mod idle_device;
mod progress;
mod repeats;
mod rising;
mod rule;
mod runs;
mod sums;
mod tables;
mod zfs;

use rule::{AuditRule, Verdicts};

use crate::finding::{Checked, Finding};
use crate::recognise::Evidence;

/// All rules, in the order in which they judge.
fn rules() -> impl Iterator<Item = &'static AuditRule> {
    [
        runs::RULES,
        sums::RULES,
        commands::RULES,
        tables::RULES,
        repeats::RULES,
        comparability::RULES,
        progress::RULES,
        durability::RULES,
        zfs::RULES,
        contradictions::RULES,
        design::RULES,
        idle_device::RULES,
    ]
    .into_iter()
    .flatten()
}

/// Returns the names of all rules, in the order of docs/audit.md.
pub fn rule_names() -> impl Iterator<Item = &'static str> {
    rules().map(|rule| rule.name)
}

/// Lets all rules judge: findings come with the most serious first, then by line.
pub(super) fn judge(evidence: &Evidence) -> (Vec<Finding>, Vec<Checked>) {
    let mut verdicts = Verdicts::default();
    for rule in rules() {
        verdicts.rule = rule.name;
        (rule.judge)(evidence, &mut verdicts);
    }
    let Verdicts { mut findings, mut checked, .. } = verdicts;
    findings.sort_by_key(|f| (std::cmp::Reverse(f.severity), f.line()));
    checked.sort_by_key(Checked::line);
    (findings, checked)
}
