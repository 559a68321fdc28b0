//! Whether what was measured was durable.

use serde_json::json;

use super::rule::{Rule, Verdicts, exact, number};
use crate::finding::Confidence::{Certain, Likely};
use crate::finding::Severity::{self, Note, Serious, Warning};
use crate::recognise::{Evidence, Setting, StorageFact, StorageWhat};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "fsync-off",
        looks_for: "fsync = off: commits are acknowledged that are on no disk",
        source: "PostgreSQL documentation, Write Ahead Log, fsync",
        judge: |evidence, verdicts| {
            let message = "fsync = off: what was acknowledged need not be on any disk, so this is not the storage's speed";
            off(evidence, "fsync", Serious, message, verdicts);
        },
    },
    Rule {
        name: "full-page-writes-off",
        looks_for: "full_page_writes = off: a torn page is not repaired after a power loss",
        source: "PostgreSQL documentation, Write Ahead Log, full_page_writes",
        judge: full_page_writes,
    },
    Rule {
        name: "synchronous-commit-off",
        looks_for: "synchronous_commit = off: the commit path is not under test; a note where the report varies it",
        source: "PostgreSQL documentation, Asynchronous Commit",
        judge: |evidence, verdicts| {
            let message = "synchronous_commit = off: commits wait for no flush, so that the storage's commit path is not under test, and the last \
                           ones are lost with the power";
            off(evidence, "synchronous_commit", Warning, message, verdicts);
        },
    },
    Rule {
        name: "barriers-off",
        looks_for: "a filesystem without write barriers, where nothing says that caches survive a power loss; a note where it does",
        source: "Linux documentation, ext4; mount(8), barrier",
        judge: barriers,
    },
    Rule {
        name: "write-cache",
        looks_for: "a write cache that is on, where nothing says that it survives a power loss",
        source: "PostgreSQL documentation, Reliability",
        judge: write_cache,
    },
    Rule {
        name: "fsync-ceiling",
        looks_for: "tps of synchronous commits above pg_test_fsync's rate × clients: one flush carries at most one commit of each client",
        source: "PostgreSQL documentation, WAL Configuration (commit_delay); GLOSSARY.md, ceiling for commits",
        judge: fsync_ceiling,
    },
];

/// All values of a setting that are shown.
fn values<'a>(evidence: &'a Evidence, name: &str) -> Vec<&'a Setting> {
    evidence.recognised.settings.iter().filter(|s| s.name == name).collect()
}

fn off(
    evidence: &Evidence,
    name: &str,
    severity: Severity,
    message: &str,
    verdicts: &mut Verdicts,
) {
    let shown = values(evidence, name);
    let (off, on): (Vec<&Setting>, Vec<&Setting>) = shown.into_iter().partition(|s| s.is_off());
    let lines: Vec<usize> = off.iter().map(|s| s.line).collect();
    let computed = json!({ "off": off.len(), "otherwise": on.len() });
    if off.is_empty() {
        let lines: Vec<usize> = on.iter().map(|s| s.line).collect();
        if let Some(first) = on.first() {
            verdicts.right(&lines, format!("{name} = {}", first.value), computed);
        }
    } else if on.is_empty() && !runs_on_both_sides(evidence, &off) {
        verdicts.found(severity, Certain, &lines, message.to_owned(), computed);
    } else {
        let severity = if severity == Serious { Warning } else { Note };
        let message = format!(
            "{message}. The report varies it: where it is off, figures are of another promise"
        );
        verdicts.found(severity, Certain, &lines, message, computed);
    }
}

/// Whether what is turned off was turned off between two runs.
fn runs_on_both_sides(evidence: &Evidence, off: &[&Setting]) -> bool {
    let runs = &evidence.recognised.runs;
    let first = off.iter().map(|s| s.line).min().unwrap_or(0);
    runs.iter().any(|r| r.last_line < first) && runs.iter().any(|r| r.line > first)
}

fn full_page_writes(evidence: &Evidence, verdicts: &mut Verdicts) {
    let zfs = evidence.recognised.storage.iter().any(|f| matches!(f.what, StorageWhat::Zfs { .. }));
    if zfs {
        let message = "full_page_writes = off on ZFS, which writes no page in place: pages are not torn as long as recordsize is no smaller than \
                       a page and nothing below breaks that promise";
        off(evidence, "full_page_writes", Note, message, verdicts);
    } else {
        let message = "full_page_writes = off: a page that a power loss tears is not repaired, and WAL is smaller than it has to be elsewhere";
        off(evidence, "full_page_writes", Serious, message, verdicts);
    }
}

fn facts<'a>(
    evidence: &'a Evidence,
    what: &'a StorageWhat,
) -> impl Iterator<Item = &'a StorageFact> {
    evidence.recognised.storage.iter().filter(move |f| f.what == *what)
}

fn lines(evidence: &Evidence, what: &StorageWhat) -> Vec<usize> {
    facts(evidence, what).map(|f| f.line).collect()
}

fn barriers(evidence: &Evidence, verdicts: &mut Verdicts) {
    // A text on storage is no report of a benchmark.
    if !evidence.recognised.has_figures() {
        return;
    }
    let off = lines(evidence, &StorageWhat::BarriersOff);
    if off.is_empty() {
        let on = lines(evidence, &StorageWhat::BarriersOn);
        if !on.is_empty() {
            verdicts.right(&on, "barriers are on".to_owned(), json!({}));
        }
        return;
    }
    let said = facts(evidence, &StorageWhat::BarriersOff).next().map_or("", |f| f.words.as_str());
    if let Some(protection) = facts(evidence, &StorageWhat::PowerLossProtection).next() {
        let message = format!(
            "barriers are off (`{said}`); line {} speaks of `{}`: without it what was acknowledged is lost with the power",
            protection.line, protection.words
        );
        verdicts.found(Note, Likely, &off, message, json!({}));
    } else {
        let message = format!(
            "barriers are off (`{said}`), and nothing says that the caches below survive a power loss: commits are acknowledged that may be in a \
             drive's cache only, and flushes seem faster than they are"
        );
        verdicts.found(Serious, Likely, &off, message, json!({}));
    }
}

fn write_cache(evidence: &Evidence, verdicts: &mut Verdicts) {
    if !evidence.recognised.has_figures() {
        return;
    }
    let on = lines(evidence, &StorageWhat::WriteCacheOn);
    if on.is_empty() {
        return;
    }
    if let Some(protection) = facts(evidence, &StorageWhat::PowerLossProtection).next() {
        let message = format!(
            "a write cache is on; line {} says that it is protected (`{}`)",
            protection.line, protection.words
        );
        verdicts.right(&on, message, json!({}));
    } else {
        let message = "a write cache is on, and nothing says that it survives a power loss (battery, capacitors)";
        verdicts.found(Warning, Likely, &on, message, json!({}));
    }
}

fn fsync_ceiling(evidence: &Evidence, verdicts: &mut Verdicts) {
    let off = |name| values(evidence, name).iter().any(|s| s.is_off());
    // Whose commits wait is not clear where a report varies that.
    if off("synchronous_commit") || off("fsync") {
        return;
    }
    let one: Vec<_> = evidence.recognised.fsync.iter().filter(|l| l.is_one_write()).collect();
    let methods = values(evidence, "wal_sync_method");
    let named = match methods.as_slice() {
        [only] => one.iter().find(|l| l.method == only.value),
        _ => None,
    };
    let fastest = || one.iter().max_by(|a, b| a.per_second.value.total_cmp(&b.per_second.value));
    let Some(flush) = named.or_else(fastest) else { return };
    for run in &evidence.recognised.runs {
        let (Some(clients), Some(tps)) = (run.clients, run.tps_connected()) else { continue };
        let ceiling = flush.per_second.value * clients.value;
        let lines = [tps.line, flush.per_second.line, clients.line];
        let computed = json!({
            "ceiling_tps": ceiling, "fsync_per_second": flush.per_second.value, "clients": clients.value, "tps": tps.value,
            "commits_per_flush": tps.value / flush.per_second.value,
        });
        let words = format!(
            "{} flushes/s ({}) × {} clients are at most {} commits/s",
            exact(flush.per_second.value),
            flush.method,
            clients.value,
            number(ceiling)
        );
        if tps.low() <= flush.per_second.high() * clients.value {
            verdicts.right(
                &lines,
                format!("{words}; {} tps are below", exact(tps.value)),
                computed,
            );
        } else if run.writes() == Some(true) {
            let message = format!(
                "{words}, but {} tps are claimed: commits did not wait, or the probe was of another storage",
                exact(tps.value)
            );
            verdicts.found(Serious, Likely, &lines, message, computed);
        }
    }
}
