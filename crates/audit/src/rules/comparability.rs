//! Whether what is compared differs in nothing else, and could differ at all.

use serde_json::json;

use super::rule::{Rule, Verdicts, exact, number};
use crate::figure::Figure;
use crate::finding::Confidence::{Likely, Possible};
use crate::finding::Severity::Warning;
use crate::recognise::{Evidence, PgbenchRun, StorageWhat, named_filesystems};
use crate::words::Words;

/// What pgbench's tables take for each unit of scale (MB), rounded up.
const MB_PER_SCALE: f64 = 16.0;

/// Durations that differ by less than this share are the same.
const SAME_LENGTH: f64 = 0.1;

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "scale-below-clients",
        looks_for: "TPC-B with fewer branches (scaling factor) than clients: they wait for each other's row locks",
        source: "pgbench documentation, Good Practices (scaling factor)",
        judge: scale_below_clients,
    },
    Rule {
        name: "unequal-runs",
        looks_for: "runs of one load by the clock that follow each other and differ in duration, or in two or more of scale, clients, query mode \
                    and pgbench's version; series of three or more durations are taken for what is varied",
        source: "docs/comparing.md: what is compared is all that differs",
        judge: unequal_runs,
    },
    Rule {
        name: "cached-read-only",
        looks_for: "read-only runs that compare filesystems or storage, of data (16 MB for each unit of scale) that fit into shared_buffers",
        source: "PostgreSQL documentation, shared_buffers; pgbench documentation, -s",
        judge: cached_read_only,
    },
    Rule {
        name: "untold-layout",
        looks_for: "runs on ZFS, whose properties are shown, beside runs on another filesystem of which neither devices nor mkfs and mount \
                    options are told",
        source: "docs/comparing.md: what is compared is all that differs",
        judge: untold_layout,
    },
];

fn untold_layout(evidence: &Evidence, verdicts: &mut Verdicts) {
    let shown = evidence.recognised.storage.iter();
    let mut shown = shown.filter(|fact| matches!(fact.what, StorageWhat::Zfs { .. }));
    let Some(first) = shown.next() else { return };
    let mut runs = evidence.recognised.runs.iter().filter_map(|run| {
        let label = run.label.as_deref()?.to_lowercase();
        let mut named = named_filesystems(&label).filter(|name| *name != "zfs");
        Some((named.next()?, run.line))
    });
    let Some((filesystem, line)) = runs.next() else { return };
    let lines = [line, first.line];
    let json = json!({ "filesystem": filesystem });
    if evidence.described.contains(filesystem) {
        let message = format!("how {filesystem} was made or mounted is told");
        return verdicts.right(&lines, message, json);
    }
    let message = format!(
        "the properties of ZFS are shown, and of {filesystem} neither its devices nor mkfs and mount options: nobody can tell whether \
         both had the same devices"
    );
    verdicts.found(Warning, Likely, &lines, message, json);
}

fn scale_below_clients(evidence: &Evidence, verdicts: &mut Verdicts) {
    let runs = evidence.recognised.runs.iter().filter(|run| {
        // Only TPC-B updates a branch in each transaction.
        run.transaction_type
            .as_deref()
            .is_some_and(|kind| kind.to_ascii_lowercase().contains("tpc-b"))
    });
    let sized: Vec<(Figure, Figure)> = runs.filter_map(|run| run.scale.zip(run.clients)).collect();
    let (below, right): (Vec<_>, Vec<_>) =
        sized.into_iter().partition(|(scale, clients)| scale.value < clients.value);
    let lines = |pairs: &[(Figure, Figure)]| {
        pairs.iter().flat_map(|(s, c)| [s.line, c.line]).collect::<Vec<_>>()
    };
    if let Some((scale, clients)) =
        below.iter().max_by(|a, b| (a.1.value / a.0.value).total_cmp(&(b.1.value / b.0.value)))
    {
        let runs =
            if below.len() == 1 { String::new() } else { format!(" ({} such runs)", below.len()) };
        let branches = if scale.value == 1.0 {
            "1 branch, which"
        } else {
            &format!("{} branches, one of which", scale.value)
        };
        let message = format!(
            "scale {} has {branches} each transaction of TPC-B updates: {} clients wait for each other's row locks, so locks are measured more \
             than storage or settings{runs}",
            scale.value, clients.value
        );
        let computed =
            json!({ "scale": scale.value, "clients": clients.value, "runs": below.len() });
        verdicts.found(Warning, Likely, &lines(&below), message, computed);
    } else if !right.is_empty() {
        let message =
            format!("runs of TPC-B with a scale of their clients or more: {}", right.len());
        verdicts.right(&lines(&right), message, json!({ "runs": right.len() }));
    }
}

/// Two runs that follow each other, of one load, and what differs in them.
fn differences(a: &PgbenchRun, b: &PgbenchRun) -> (Vec<String>, Vec<usize>) {
    let (mut said, mut lines) = (Vec::new(), Vec::new());
    let figures = [("scale", a.scale.zip(b.scale)), ("clients", a.clients.zip(b.clients))];
    for (name, pair) in figures {
        if let Some((a, b)) = pair.filter(|(a, b)| a.value != b.value) {
            said.push(format!("{name} ({} and {})", a.value, b.value));
            lines.extend([b.line, a.line]);
        }
    }
    for (name, pair) in
        [("query mode", (&a.query_mode, &b.query_mode)), ("version", (&a.version, &b.version))]
    {
        if let (Some(a_is), Some(b_is)) = pair
            && a_is != b_is
        {
            said.push(format!("{name} ({a_is} and {b_is})"));
            lines.extend([b.line, a.line]);
        }
    }
    (said, lines)
}

fn unequal_runs(evidence: &Evidence, verdicts: &mut Verdicts) {
    let runs: Vec<&PgbenchRun> = evidence.measured_runs().collect();
    let mut durations: Vec<f64> =
        runs.iter().filter_map(|r| r.duration_s.map(|d| d.value)).collect();
    durations.sort_by(f64::total_cmp);
    durations.dedup();
    let (mut pairs, mut equal, mut unequal) = (0_usize, 0_usize, Vec::new());
    for (a, b) in runs.iter().zip(runs.iter().skip(1)) {
        // Other scripts are other things; what is not printed is not known to be the same.
        let alike = a.transaction_type.is_some()
            && a.transaction_type == b.transaction_type
            && a.scripts.len() == b.scripts.len();
        let (Some(before), Some(after), true) = (a.duration_s, b.duration_s, alike) else {
            continue;
        };
        pairs += 1;
        let (mut said, mut lines) = differences(a, b);
        let longer =
            (before.value - after.value).abs() > SAME_LENGTH * before.value.max(after.value);
        let (varied, other_length) = (said.len(), longer && durations.len() == 2);
        if other_length {
            said.insert(0, format!("duration ({} and {} s)", before.value, after.value));
            lines.extend([after.line, before.line]);
        }
        equal += usize::from(varied == 0 && before.value == after.value);
        if other_length || varied >= 2 {
            lines.sort_unstable_by(|x, y| y.cmp(x));
            unequal.push((said.join(", "), lines));
        }
    }
    for (said, lines) in &unequal {
        let message = format!(
            "two runs of one load that follow each other differ in {said}: what is compared is not all that differs"
        );
        verdicts.found(Warning, Possible, lines, message, json!({ "differ_in": said }));
    }
    if equal > 0 && equal == pairs {
        let lines: Vec<usize> = runs.iter().map(|r| r.line).collect();
        let message = format!(
            "{} runs do not differ in duration, scale, clients, query mode or version",
            runs.len()
        );
        verdicts.right(&lines, message, json!({ "pairs": pairs }));
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
    let rows = evidence
        .recognised
        .tables
        .iter()
        .filter(|t| t.tps)
        .flat_map(|t| t.rows.iter().map(|r| r.label.as_str()));
    let mut found: Vec<&str> = runs
        .chain(rows)
        .flat_map(|label| {
            let lower = label.to_lowercase();
            let words: Vec<String> =
                lower.split(|c: char| !c.is_alphanumeric()).map(str::to_owned).collect();
            STORAGE.iter().filter(move |name| words.iter().any(|w| w == *name))
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// A size in MB: `8GB`, `512MB`.
fn megabytes(value: &str) -> Option<f64> {
    let digits = value.bytes().take_while(u8::is_ascii_digit).count();
    let number: f64 = value[..digits].parse().ok()?;
    match value[digits..].trim().to_ascii_lowercase().as_str() {
        "gb" => Some(number * 1024.0),
        "mb" => Some(number),
        "kb" => Some(number / 1024.0),
        _ => None,
    }
}

fn cached_read_only(evidence: &Evidence, verdicts: &mut Verdicts) {
    let storages = storages(evidence);
    if storages.len() < 2 {
        return;
    }
    let buffers = evidence.recognised.settings.iter().filter(|s| s.name == "shared_buffers");
    let buffers = buffers
        .filter_map(|s| Some((megabytes(&s.value)?, s.line)))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let Some((size, said_at)) = buffers else { return };
    let made = match evidence.scales.as_slice() {
        [only] => Some(*only),
        _ => None,
    };
    let reads = |run: &&PgbenchRun| run.writes() == Some(false);
    let runs = evidence.recognised.runs.iter().filter(reads);
    let mut loads: Vec<(f64, usize)> =
        runs.filter_map(|r| Some((r.scale?.value, r.line))).collect();
    if loads.is_empty() {
        let commands = evidence.commands.iter().filter(|c| c.writes == Some(false));
        loads =
            commands.filter_map(|c| Some((c.scale.map(|s| s.value).or(made)?, c.line))).collect();
    }
    let Some((scale, _)) = loads.iter().copied().max_by(|a, b| a.0.total_cmp(&b.0)) else { return };
    let mut lines: Vec<usize> = loads.iter().map(|(_, line)| *line).collect();
    lines.push(said_at);
    let data = scale * MB_PER_SCALE;
    let computed = json!({ "data_mb": data, "memory_mb": size, "storages": storages });
    let words = format!(
        "about {} MB of data (scale {scale}), shared_buffers of {} MB (line {said_at})",
        number(data),
        exact(size)
    );
    if data < size {
        let message = format!(
            "read-only runs compare {}, with {words}: what fits is read from memory, so no storage is compared",
            storages.join(", ")
        );
        verdicts.found(Warning, Likely, &lines, message, computed);
    } else {
        verdicts.right(&lines, format!("read-only runs read more than fits: {words}"), computed);
    }
}
