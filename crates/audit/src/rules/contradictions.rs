//! Whether a program lists the values that the report asks for.

use super::rule::{AuditRule, Verdicts};
use crate::finding::Confidence::Likely;
use crate::finding::Severity::{Serious, Warning};
use crate::finding::StorageKind;
use crate::recognise::{Evidence, Origin, Property, PropertyKind, quantity};

pub(super) const RULES: &[AuditRule] = &[AuditRule { name: "property-contradiction", judge }];

fn judge(evidence: &Evidence, verdicts: &mut Verdicts) {
    let all = &evidence.properties;
    for listed in all.iter().filter(|p| p.origin.is_listed()) {
        let asked: Vec<&Property> = all.iter().filter(|p| reaches(p, listed)).collect();
        let Some(last) = asked.last() else { continue };
        let kind = StorageKind::Property {
            property: listed.name.clone(),
            asked: last.value.clone(),
            asked_line: last.line,
            listed: listed.value.clone(),
            subject: listed.subject.clone(),
        };
        let lines = [listed.line, last.line];
        // A report that varies a property shows one of its values.
        let equal = |value| asked.iter().any(|p| is_equal(&p.value, &listed.value) == value);
        if equal(Some(true)) {
            verdicts.right(lines, kind);
        } else if !equal(None) && !was_listed(all, last, listed) {
            let is_serious =
                loses_commits(listed, &listed.value) || loses_commits(listed, &last.value);
            verdicts.report(if is_serious { Serious } else { Warning }, Likely, lines, kind);
        }
    }
}

/// Whether the value asked for was listed before `listed`, which then is a later change.
fn was_listed(all: &[Property], asked: &Property, listed: &Property) -> bool {
    all.iter().any(|p| {
        p.origin.is_listed()
            && reaches(asked, p)
            && p.line < listed.line
            && is_equal(&p.value, &asked.value) == Some(true)
    })
}

/// Whether `value` gives durability away.
fn loses_commits(property: &Property, value: &str) -> bool {
    match property.name.as_str() {
        "sync" => value == "disabled",
        "barrier" => value == "0",
        "fsync" | "full_page_writes" => boolean(value) == Some(false),
        _ => false,
    }
}

/// Whether `asked` stands above `listed` and should have given it its value.
fn reaches(asked: &Property, listed: &Property) -> bool {
    let is_parent = || {
        asked.kind == PropertyKind::Zfs
            && listed.origin == Origin::Listed
            && listed.subject.starts_with(&format!("{}/", asked.subject))
    };
    !asked.origin.is_listed()
        && asked.kind == listed.kind
        && asked.name == listed.name
        && asked.line < listed.line
        && (asked.subject.is_empty() || asked.subject == listed.subject || is_parent())
}

/// Whether two spellings are one value; none where that depends on a unit that is not shown.
fn is_equal(a: &str, b: &str) -> Option<bool> {
    if a.eq_ignore_ascii_case(b) {
        return Some(true);
    }
    if let (Some(a), Some(b)) = (boolean(a), boolean(b)) {
        return Some(a == b);
    }
    match (quantity(a), quantity(b)) {
        (None, None) => Some(false),
        (Some((a, of_a)), Some((b, of_b))) if of_a == of_b => Some((a - b).abs() <= 1e-9 * a.abs()),
        _ => None,
    }
}

fn boolean(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" => Some(true),
        "off" | "false" | "no" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_compared_across_spellings_and_units() {
        for (a, b, equal) in [
            ("8K", "8k", Some(true)),
            ("1024MB", "1GB", Some(true)),
            ("5min", "300s", Some(true)),
            ("on", "true", Some(true)),
            ("always", "standard", Some(false)),
            ("8K", "128K", Some(false)),
            ("13", "12", Some(false)),
            // pg_settings has shared_buffers in blocks.
            ("32GB", "4194304", None),
            ("200", "200ms", None),
            ("-1", "0", None),
            ("off", "lz4", Some(false)),
        ] {
            assert_eq!(is_equal(a, b), equal, "{a} {b}");
        }
    }
}
