//! ZFS: whether a flush is one, and whether what is said of it is what is shown.

use serde_json::json;

use super::rule::{Rule, Verdicts};
use crate::finding::Confidence::{Certain, Likely};
use crate::finding::Severity::{Serious, Warning};
use crate::recognise::{Evidence, StorageWhat};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "zfs-sync-disabled",
        looks_for: "sync=disabled on ZFS: fsync does nothing",
        source: "zfsprops(7), sync",
        judge: sync_disabled,
    },
    Rule {
        name: "zfs-sync-contradiction",
        looks_for: "`zfs set sync` of a dataset to one value, and `zfs get` of it below that shows another",
        source: "zfsprops(7), sync",
        judge: sync_contradiction,
    },
    Rule {
        name: "zfs-logbias",
        looks_for: "logbias=throughput on ZFS: synchronous writes do not use a log device, and each goes to the pool in a block of its own",
        source: "zfsprops(7), logbias",
        judge: logbias,
    },
];

/// A property of a dataset as it is set or shown.
struct Property<'a> {
    dataset: &'a str,
    value: &'a str,
    line: usize,
    /// Whether a command set it, and no `zfs get` shows it.
    is_set: bool,
}

fn properties<'a>(evidence: &'a Evidence, name: &str) -> Vec<Property<'a>> {
    let facts = evidence.recognised.storage.iter().filter_map(|fact| match &fact.what {
        StorageWhat::Zfs { property, value } if property == name => {
            let is_set = fact.words.contains('=');
            // Behind the command: what is neither an option nor an assignment.
            let mut words = fact
                .words
                .split_whitespace()
                .skip_while(|w| is_set && !matches!(*w, "set" | "create"));
            let dataset = words.find(|w| {
                !is_set
                    || !(matches!(*w, "set" | "create") || w.starts_with('-') || w.contains('='))
            });
            Some(Property { dataset: dataset.unwrap_or_default(), value, line: fact.line, is_set })
        }
        _ => None,
    });
    facts.collect()
}

fn sync_disabled(evidence: &Evidence, verdicts: &mut Verdicts) {
    for sync in properties(evidence, "sync") {
        if sync.value == "disabled" {
            let message = "sync=disabled: ZFS acknowledges flushes that it did not do";
            verdicts.found(Serious, Certain, &[sync.line], message, json!({}));
        } else {
            verdicts.right(
                &[sync.line],
                format!("sync={}: ZFS flushes what it is asked to", sync.value),
                json!({}),
            );
        }
    }
}

fn sync_contradiction(evidence: &Evidence, verdicts: &mut Verdicts) {
    let all = properties(evidence, "sync");
    for shown in all.iter().filter(|p| !p.is_set) {
        // What was set above it, of the dataset or of one that it inherits from.
        let over = |p: &&Property<'_>| {
            p.is_set
                && p.line < shown.line
                && (p.dataset == shown.dataset
                    || shown.dataset.starts_with(&format!("{}/", p.dataset)))
        };
        let set: Vec<&Property<'_>> = all.iter().filter(over).collect();
        let Some(last) = set.last() else { continue };
        if set.iter().any(|p| p.value == shown.value) {
            let message = format!("sync={} of {} is set and shown", shown.value, shown.dataset);
            verdicts.right(&[shown.line, last.line], message, json!({}));
            continue;
        }
        let disabled = shown.value == "disabled" || last.value == "disabled";
        let severity = if disabled { Serious } else { Warning };
        let message = format!(
            "sync={} is set on {} (line {}), and sync={} is shown of {}: which of them the figures were measured with is not known",
            last.value, last.dataset, last.line, shown.value, shown.dataset
        );
        let computed = json!({ "set": last.value, "shown": shown.value, "dataset": shown.dataset });
        verdicts.found(severity, Likely, &[shown.line, last.line], message, computed);
    }
}

fn logbias(evidence: &Evidence, verdicts: &mut Verdicts) {
    let all = properties(evidence, "logbias");
    let (throughput, other): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|p| p.value == "throughput");
    let lines = |all: &[Property<'_>]| all.iter().map(|p| p.line).collect::<Vec<_>>();
    if throughput.is_empty() {
        if let Some(first) = other.first() {
            verdicts.right(&lines(&other), format!("logbias={}", first.value), json!({}));
        }
        return;
    }
    let message = "logbias=throughput: each commit's flush writes its blocks to the pool itself and a log device is not used, so \
                   that commits take longer than with ZFS as it comes, and the pool is fragmented"
        .to_owned();
    verdicts.found(
        Warning,
        Certain,
        &lines(&throughput),
        message,
        json!({ "varied": !other.is_empty() }),
    );
}
