//! ZFS: whether a flush is one, and where it goes.

use super::rule::{AuditRule, Verdicts};
use crate::finding::Confidence::Certain;
use crate::finding::Severity::{Serious, Warning};
use crate::finding::StorageKind;
use crate::recognise::{Evidence, Origin, Property, PropertyKind};

pub(super) const RULES: &[AuditRule] = &[
    AuditRule { name: "zfs-sync-disabled", judge: sync_disabled },
    AuditRule { name: "zfs-logbias", judge: logbias },
];

/// Every place where a command sets `name` or a listing shows it.
fn properties<'a>(evidence: &'a Evidence, name: &str) -> impl Iterator<Item = &'a Property> {
    evidence.properties.iter().filter(move |property| {
        property.name == name
            && property.kind == PropertyKind::Zfs
            && property.origin != Origin::Stated
    })
}

fn sync_disabled(evidence: &Evidence, verdicts: &mut Verdicts) {
    for Property { value, line, .. } in properties(evidence, "sync") {
        let fault = (value == "disabled").then_some((Serious, Certain));
        verdicts.judge(fault, [*line], StorageKind::ZfsSync { value: value.clone() });
    }
}

fn logbias(evidence: &Evidence, verdicts: &mut Verdicts) {
    let (throughput, other): (Vec<_>, Vec<_>) =
        properties(evidence, "logbias").partition(|property| property.value == "throughput");
    let shown = if throughput.is_empty() { &other } else { &throughput };
    let Some(first) = shown.first() else { return };
    let fault = (!throughput.is_empty()).then_some((Warning, Certain));
    let lines: Vec<usize> = shown.iter().map(|property| property.line).collect();
    let varied = !throughput.is_empty() && !other.is_empty();
    verdicts.judge(fault, lines, StorageKind::ZfsLogbias { value: first.value.clone(), varied });
}
