//! The rules, one file a subject.
//!
//! To add a rule, add an item to the slice of its subject. To add a subject, write a file with a
//! slice `RULES`, and add one line to [`STORAGE_RULES`] or [`HOST_RULES`].

mod copy_on_write;
mod cpu;
mod device;
mod health;
mod memory;
mod mount;
mod place;

use pgdyno_model::facts::{HostFacts, StorageFacts};

use super::advice::{Advice, Advised, Unobservable};
use super::rule::{DoctorRule, Facts, Judged};

/// Rules about the storage under a directory, in the order of reports within a severity.
const STORAGE_RULES: &[&[DoctorRule]] =
    &[place::RULES, mount::RULES, health::RULES, device::RULES, copy_on_write::RULES];

/// Rules about the host, which reports list after those about storage.
const HOST_RULES: &[&[DoctorRule]] = &[memory::RULES, cpu::RULES];

/// Judges the facts by all rules, or by those about the host alone if there is no storage.
///
/// ```
/// use pgdyno_observe::doctor::advise;
///
/// let advised = advise(&pgdyno_facts::host(), None);
/// assert!(advised.advice.is_sorted_by_key(|advice| advice.severity));
/// ```
pub fn advise(host: &HostFacts, storage: Option<&StorageFacts>) -> Advised {
    let nothing = StorageFacts::default();
    let facts = Facts { host, storage: storage.unwrap_or(&nothing) };
    let storage_rules = if storage.is_some() { STORAGE_RULES } else { &[] };
    let mut all = Advised::default();
    for rule in storage_rules.iter().chain(HOST_RULES).copied().flatten() {
        match (rule.judge)(&facts) {
            Judged::NotApplicable => {}
            Judged::Fine => all.fine.push(rule.fine),
            Judged::Unobservable(why) => all.unseen.push(Unobservable { rule: rule.name, why }),
            Judged::Found(findings) => all.advice.extend(findings.into_iter().map(|f| Advice {
                rule: rule.name,
                severity: f.severity,
                found: f.found,
                remedy: f.remedy,
                source: rule.source,
            })),
        }
    }
    all.advice.sort_by_key(|a| a.severity);
    all
}

#[cfg(test)]
mod tests;
