//! Whether the measured commits were durable.

use super::rule::{AuditRule, Verdicts};
use crate::finding::Confidence::{Certain, Likely};
use crate::finding::Severity::{Note, Serious, Warning};
use crate::finding::{Protection, Severity, StorageKind, Switch};
use crate::recognise::{Evidence, Setting, StorageFact, StorageWhat};

pub(super) const RULES: &[AuditRule] = &[
    AuditRule { name: "fsync-off", judge: |e, v| switch(e, "fsync", Switch::Fsync, Serious, v) },
    AuditRule { name: "full-page-writes-off", judge: full_page_writes },
    AuditRule { name: "synchronous-commit-off", judge: synchronous_commit },
    AuditRule { name: "barriers-off", judge: barriers },
    AuditRule { name: "write-cache", judge: write_cache },
    AuditRule { name: "fsync-ceiling", judge: fsync_ceiling },
];

fn full_page_writes(evidence: &Evidence, verdicts: &mut Verdicts) {
    let zfs = evidence.recognised.storage.iter().any(|f| matches!(f.what, StorageWhat::Zfs { .. }));
    let (kind, severity) = match zfs {
        true => (Switch::FullPageWritesOnZfs, Note),
        false => (Switch::FullPageWrites, Serious),
    };
    switch(evidence, "full_page_writes", kind, severity, verdicts);
}

fn synchronous_commit(evidence: &Evidence, verdicts: &mut Verdicts) {
    switch(evidence, "synchronous_commit", Switch::SynchronousCommit, Warning, verdicts);
}

fn switch(
    evidence: &Evidence,
    name: &str,
    switch: Switch,
    severity: Severity,
    verdicts: &mut Verdicts,
) {
    let (off, on): (Vec<_>, Vec<_>) = evidence.settings(name).partition(|s| s.is_off());
    let shown = if off.is_empty() { &on } else { &off };
    let Some(first) = shown.first() else { return };
    let lines: Vec<usize> = shown.iter().map(|setting| setting.line).collect();
    let varied = !off.is_empty() && (!on.is_empty() || has_runs_on_both_sides(evidence, &lines));
    let severity = match severity {
        severity if !varied => severity,
        Serious => Warning,
        _ => Note,
    };
    let fault = (!off.is_empty()).then_some((severity, Certain));
    let (value, off, otherwise) = (first.value.clone(), off.len(), on.len());
    verdicts.judge(fault, lines, StorageKind::Setting { switch, value, off, otherwise, varied });
}

/// Whether a setting was turned off, at the first of `off`, between two runs.
fn has_runs_on_both_sides(evidence: &Evidence, off: &[usize]) -> bool {
    let runs = &evidence.recognised.runs;
    let first = off.iter().copied().min().unwrap_or(0);
    runs.iter().any(|r| r.last_line < first) && runs.iter().any(|r| r.line > first)
}

/// Facts of one kind; none in a text without figures, which is no report of a benchmark.
fn facts<'a>(evidence: &'a Evidence, what: &'a StorageWhat) -> Vec<&'a StorageFact> {
    let facts = evidence.recognised.storage.iter().filter(|fact| fact.what == *what);
    facts.filter(|_| evidence.recognised.has_figures()).collect()
}

fn lines(facts: &[&StorageFact]) -> Vec<usize> {
    facts.iter().map(|fact| fact.line).collect()
}

fn protection(evidence: &Evidence) -> Option<Protection> {
    let facts = facts(evidence, &StorageWhat::PowerLossProtection);
    facts.first().map(|fact| Protection { line: fact.line, words: fact.words.clone() })
}

fn barriers(evidence: &Evidence, verdicts: &mut Verdicts) {
    let off = facts(evidence, &StorageWhat::BarriersOff);
    let on = facts(evidence, &StorageWhat::BarriersOn);
    if let Some(first) = off.first() {
        let (words, protection) = (first.words.clone(), protection(evidence));
        let severity = if protection.is_some() { Note } else { Serious };
        let kind = StorageKind::BarriersOff { words, protection };
        verdicts.report(severity, Likely, lines(&off), kind);
    } else if !on.is_empty() {
        verdicts.right(lines(&on), StorageKind::BarriersOn {});
    }
}

fn write_cache(evidence: &Evidence, verdicts: &mut Verdicts) {
    let on = facts(evidence, &StorageWhat::WriteCacheOn);
    if on.is_empty() {
        return;
    }
    let protection = protection(evidence);
    let fault = protection.is_none().then_some((Warning, Likely));
    verdicts.judge(fault, lines(&on), StorageKind::WriteCache { protection });
}

fn fsync_ceiling(evidence: &Evidence, verdicts: &mut Verdicts) {
    let is_off = |name| evidence.settings(name).any(Setting::is_off);
    // Whose commits wait is not clear where a report varies that.
    if is_off("synchronous_commit") || is_off("fsync") {
        return;
    }
    let one: Vec<_> = evidence.recognised.fsync.iter().filter(|l| l.is_one_write()).collect();
    let methods: Vec<&Setting> = evidence.settings("wal_sync_method").collect();
    let named = match methods.as_slice() {
        [only] => one.iter().find(|l| l.method == only.value),
        _ => None,
    };
    let fastest = || one.iter().max_by(|a, b| a.per_second.value.total_cmp(&b.per_second.value));
    let Some(flush) = named.or_else(fastest) else { return };
    let rate = flush.per_second;
    for run in &evidence.recognised.runs {
        let (Some(clients), Some(tps)) = (run.clients, run.tps_connected()) else { continue };
        let is_above = tps.low() > rate.high() * clients.value;
        if is_above && run.writes() != Some(true) {
            continue;
        }
        let kind = StorageKind::FlushCeiling {
            ceiling_tps: rate.value * clients.value,
            method: flush.method.clone(),
            fsync_per_second: rate.value,
            clients: clients.value,
            tps: tps.value,
            commits_per_flush: tps.value / rate.value,
        };
        let fault = is_above.then_some((Serious, Likely));
        verdicts.judge(fault, [tps.line, rate.line, clients.line], kind);
    }
}
