//! The rules: each an item of its own, registered in the list of its file.

mod claims;
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
mod shares;
mod sysbench;
mod tables;
mod zfs;

pub use idle_device::MachineUse;
pub use rule::Rule;
use rule::Verdicts;

use crate::finding::{Checked, Finding};
use crate::recognise::Evidence;

/// All rules, in the order in which they judge.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    [
        runs::RULES,
        shares::RULES,
        commands::RULES,
        sysbench::RULES,
        tables::RULES,
        claims::RULES,
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
