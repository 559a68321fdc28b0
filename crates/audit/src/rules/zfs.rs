//! ZFS: whether a flush is one, and where it goes.

use serde_json::json;

use super::rule::{Rule, Verdicts};
use crate::finding::Confidence::Certain;
use crate::finding::Severity::{Serious, Warning};
use crate::recognise::{Evidence, Origin, Property, PropertyKind};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "zfs-sync-disabled",
        looks_for: "sync=disabled on ZFS: fsync does nothing",
        source: "zfsprops(7), sync",
        judge: sync_disabled,
    },
    Rule {
        name: "zfs-logbias",
        looks_for: "logbias=throughput on ZFS: synchronous writes do not use a log device, and each goes to the pool in a block of its own",
        source: "zfsprops(7), logbias",
        judge: logbias,
    },
];

/// Every place where a command sets `name` or a listing shows it.
fn properties<'a>(evidence: &'a Evidence, name: &str) -> Vec<&'a Property> {
    let of_zfs = |p: &&Property| p.kind == PropertyKind::Zfs && p.origin != Origin::Stated;
    evidence.properties.iter().filter(|p| p.name == name).filter(of_zfs).collect()
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

fn logbias(evidence: &Evidence, verdicts: &mut Verdicts) {
    let all = properties(evidence, "logbias");
    let (throughput, other): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|p| p.value == "throughput");
    let lines = |all: &[&Property]| all.iter().map(|p| p.line).collect::<Vec<_>>();
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
