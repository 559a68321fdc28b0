//! Whether runs that are compared differ in nothing else, and could differ at all.

use std::collections::BTreeSet;

use super::rule::{AuditRule, Verdicts};
use crate::figure::Figure;
use crate::finding::Confidence::{Likely, Possible};
use crate::finding::Severity::Warning;
use crate::finding::{DesignKind, Difference};
use crate::recognise::{Evidence, PgbenchRun, StorageWhat, named_filesystems, quantity};
use crate::words::{self, Words};

/// Size of pgbench's tables for each unit of scale (MB), rounded up.
const MB_PER_SCALE: f64 = 16.0;

/// Durations that differ by less than this share are the same.
const SAME_LENGTH: f64 = 0.1;

pub(super) const RULES: &[AuditRule] = &[
    AuditRule { name: "scale-below-clients", judge: scale_below_clients },
    AuditRule { name: "unequal-runs", judge: unequal_runs },
    AuditRule { name: "cached-read-only", judge: cached_read_only },
    AuditRule { name: "untold-layout", judge: layout },
];

fn layout(evidence: &Evidence, verdicts: &mut Verdicts) {
    let mut facts = evidence.recognised.storage.iter();
    let zfs = facts.find(|fact| matches!(fact.what, StorageWhat::Zfs { .. }));
    let other = evidence.recognised.runs.iter().find_map(|run| {
        let label = run.label.as_deref()?.to_lowercase();
        Some((named_filesystems(&label).find(|name| *name != "zfs")?, run.line))
    });
    if let (Some(zfs), Some((filesystem, line))) = (zfs, other) {
        let fault = (!evidence.described.contains(filesystem)).then_some((Warning, Likely));
        verdicts.judge(fault, [line, zfs.line], DesignKind::Layout { filesystem });
    }
}

fn scale_below_clients(evidence: &Evidence, verdicts: &mut Verdicts) {
    // Only TPC-B updates a branch in each transaction.
    let is_tpc_b = |kind: &str| kind.to_ascii_lowercase().contains("tpc-b");
    let runs = evidence.recognised.runs.iter();
    let runs = runs.filter(|run| run.transaction_type.as_deref().is_some_and(is_tpc_b));
    let (below, right): (Vec<_>, Vec<_>) = runs
        .filter_map(|run| run.scale.zip(run.clients))
        .partition(|(scale, clients)| scale.value < clients.value);
    let lines = |pairs: &[(Figure, Figure)]| {
        pairs.iter().flat_map(|(s, c)| [s.line, c.line]).collect::<Vec<_>>()
    };
    let crowd = |(scale, clients): &(Figure, Figure)| clients.value / scale.value;
    if let Some(worst) = below.iter().max_by(|a, b| crowd(a).total_cmp(&crowd(b))) {
        let (scale, clients) = (worst.0.value, worst.1.value);
        let kind = DesignKind::FewBranches { scale, clients, runs: below.len() };
        verdicts.report(Warning, Likely, lines(&below), kind);
    } else if !right.is_empty() {
        verdicts.right(lines(&right), DesignKind::EnoughBranches { runs: right.len() });
    }
}

/// Differences of two runs beside their durations, with the lines that have them.
fn differences(a: &PgbenchRun, b: &PgbenchRun) -> Vec<(Difference, [usize; 2])> {
    let figures = |a: Option<Figure>, b: Option<Figure>, difference: fn(f64, f64) -> Difference| {
        let (a, b) = a.zip(b).filter(|(a, b)| a.value != b.value)?;
        Some((difference(a.value, b.value), [b.line, a.line]))
    };
    let texts = |a_is: &Option<String>,
                 b_is: &Option<String>,
                 difference: fn(String, String) -> Difference| {
        let (a_is, b_is) = a_is.clone().zip(b_is.clone()).filter(|(a, b)| a != b)?;
        Some((difference(a_is, b_is), [b.line, a.line]))
    };
    let all = [
        figures(a.scale, b.scale, Difference::Scale),
        figures(a.clients, b.clients, Difference::Clients),
        texts(&a.query_mode, &b.query_mode, Difference::QueryMode),
        texts(&a.version, &b.version, Difference::Version),
    ];
    all.into_iter().flatten().collect()
}

fn unequal_runs(evidence: &Evidence, verdicts: &mut Verdicts) {
    let runs: Vec<&PgbenchRun> = evidence.measured_runs().collect();
    let mut durations: Vec<f64> =
        runs.iter().filter_map(|r| r.duration_s.map(|d| d.value)).collect();
    durations.sort_by(f64::total_cmp);
    durations.dedup();
    let (mut pairs, mut equal) = (0_usize, 0_usize);
    for (a, b) in runs.iter().zip(runs.iter().skip(1)) {
        // Other scripts are other things; what is not printed is not known to be the same.
        let alike = a.transaction_type.is_some()
            && a.transaction_type == b.transaction_type
            && a.scripts.len() == b.scripts.len();
        let (Some(before), Some(after), true) = (a.duration_s, b.duration_s, alike) else {
            continue;
        };
        pairs += 1;
        let mut found = differences(a, b);
        equal += usize::from(found.is_empty() && before.value == after.value);
        let varies_two = found.len() >= 2;
        let longer =
            (before.value - after.value).abs() > SAME_LENGTH * before.value.max(after.value);
        let has_other_length = longer && durations.len() == 2;
        if has_other_length {
            let difference = Difference::Duration(before.value, after.value);
            found.insert(0, (difference, [after.line, before.line]));
        }
        if has_other_length || varies_two {
            let (differences, lines): (Vec<_>, Vec<_>) = found.into_iter().unzip();
            let mut lines = lines.concat();
            lines.sort_unstable_by(|x, y| y.cmp(x));
            verdicts.report(Warning, Possible, lines, DesignKind::UnequalRuns { differences });
        }
    }
    if equal > 0 && equal == pairs {
        let lines: Vec<usize> = runs.iter().map(|r| r.line).collect();
        verdicts.right(lines, DesignKind::EqualRuns { runs: runs.len(), pairs });
    }
}

/// Words by which storages are told from each other.
const STORAGE: Words = Words(
    "ext2|ext3|ext4|xfs|zfs|btrfs|jfs|reiserfs|f2fs|ntfs|ufs|ufs2|bcachefs|raid0|raid1|raid5|\
     raid6|raid10|hdd|ssd|nvme|sata|ebs|gp2|gp3|io1|io2",
);

/// The storages that labels of runs and rows name, each once.
fn storages(evidence: &Evidence) -> Vec<&'static str> {
    let runs = evidence.recognised.runs.iter().filter_map(|r| r.label.as_deref());
    let tables = evidence.recognised.tables.iter().filter(|table| table.tps);
    let rows = tables.flat_map(|table| table.rows.iter().map(|row| row.label.as_str()));
    let labels: Vec<String> = runs.chain(rows).map(str::to_lowercase).collect();
    let words: BTreeSet<&str> = labels.iter().flat_map(|label| words::split(label)).collect();
    let mut found: Vec<&str> = STORAGE.iter().filter(|name| words.contains(name)).collect();
    found.sort_unstable();
    found
}

fn cached_read_only(evidence: &Evidence, verdicts: &mut Verdicts) {
    let storages = storages(evidence);
    if storages.len() < 2 {
        return;
    }
    let sizes =
        evidence.settings("shared_buffers").filter_map(|setting| match quantity(&setting.value)? {
            (bytes, "bytes") => Some((bytes / 1024_f64.powi(2), setting.line)),
            _ => None,
        });
    let Some((memory_mb, memory_line)) = sizes.max_by(|a, b| a.0.total_cmp(&b.0)) else { return };
    let made = match evidence.scales.as_slice() {
        [only] => Some(*only),
        _ => None,
    };
    let runs = evidence.recognised.runs.iter().filter(|run| run.writes() == Some(false));
    let mut loads: Vec<(f64, usize)> =
        runs.filter_map(|run| Some((run.scale?.value, run.line))).collect();
    if loads.is_empty() {
        let commands = evidence.commands.iter().filter(|c| c.writes() == Some(false));
        loads =
            commands.filter_map(|c| Some((c.scale.map(|s| s.value).or(made)?, c.line))).collect();
    }
    let Some(scale) = loads.iter().map(|(scale, _)| *scale).max_by(f64::total_cmp) else { return };
    let mut lines: Vec<usize> = loads.iter().map(|(_, line)| *line).collect();
    lines.push(memory_line);
    let data_mb = scale * MB_PER_SCALE;
    let fault = (data_mb < memory_mb).then_some((Warning, Likely));
    let kind = DesignKind::ReadOnly { storages, scale, data_mb, memory_mb, memory_line };
    verdicts.judge(fault, lines, kind);
}
