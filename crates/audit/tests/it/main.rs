//! Reports that others wrote, audited: whole ones, each rule by itself, and arbitrary text.
#![allow(missing_docs, clippy::unwrap_used, unreachable_pub)] // helpers of tests fail as tests do

mod corpus;
mod design;
mod docs;
mod printed;
mod random;
mod reports;
mod rules;
mod written;

use pgdyno_audit::{Audit, Checked, Finding, Severity};
use serde_json::Value;

/// The audit of a fixture, or of the figures that go with a recipe.
pub fn fixture(name: &str) -> Audit {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |folder: &str| std::fs::read(here.join(folder).join(name));
    let bytes =
        read("tests/fixtures/audit").or_else(|_| read("../../experiments/figures")).unwrap();
    Audit::from_bytes(name, &bytes).unwrap()
}

pub fn audit_of(text: &str) -> Audit {
    Audit::from_bytes("report.txt", text.as_bytes()).unwrap()
}

/// The only finding of a rule.
pub fn finding<'a>(audit: &'a Audit, rule: &str) -> &'a Finding {
    let found: Vec<_> = audit.findings.iter().filter(|f| f.rule == rule).collect();
    assert_eq!(found.len(), 1, "{rule}: {:#?}", audit.findings);
    found[0]
}

/// All that a rule found right.
pub fn checks_of<'a>(audit: &'a Audit, rule: &str) -> Vec<&'a Checked> {
    audit.checked.iter().filter(|c| c.rule == rule).collect()
}

/// How much a rule found right.
pub fn checks(audit: &Audit, rule: &str) -> usize {
    checks_of(audit, rule).len()
}

/// Whether a rule found something.
pub fn speaks(audit: &Audit, rule: &str) -> bool {
    audit.findings.iter().any(|f| f.rule == rule)
}

/// The rules that found something, with their severities.
pub fn findings_of(audit: &Audit) -> Vec<(&'static str, Severity)> {
    audit.findings.iter().map(|f| (f.rule, f.severity)).collect()
}

/// Figures that a finding or a check rests on.
pub trait Figures {
    /// The figure of this name; null if there is none.
    fn figure(&self, name: &str) -> Value;
}

impl Figures for Finding {
    fn figure(&self, name: &str) -> Value {
        serde_json::to_value(&self.kind).unwrap()[name].take()
    }
}

impl Figures for Checked {
    fn figure(&self, name: &str) -> Value {
        serde_json::to_value(&self.kind).unwrap()[name].take()
    }
}

pub fn close(value: &Value, expected: f64) {
    let value = value.as_f64().unwrap();
    assert!((value - expected).abs() < 5e-4 * expected.abs().max(1.0), "{value} is not {expected}");
}
