//! Whether what is asked for is what a program lists.

use serde_json::json;

use super::rule::{Rule, Verdicts};
use crate::finding::Confidence::Likely;
use crate::finding::Severity::{Serious, Warning};
use crate::recognise::{Evidence, Origin, Property, PropertyKind};

pub(super) const RULES: &[Rule] = &[Rule {
    name: "property-contradiction",
    looks_for: "a property of ZFS, a mount option or a setting that the report sets or states, and that a listing below (`zfs get`, `zpool get`, `mount`, `SHOW`, psql's table) shows with another value",
    source: "zfsprops(7), zpoolprops(7); mount(8); PostgreSQL documentation, SHOW",
    judge,
}];

fn judge(evidence: &Evidence, verdicts: &mut Verdicts) {
    let all = &evidence.properties;
    for listed in all.iter().filter(|p| p.origin.is_listed()) {
        let asked: Vec<&Property> = all.iter().filter(|p| reaches(p, listed)).collect();
        let Some(last) = asked.last() else { continue };
        let (name, value, line) = (&listed.name, &listed.value, listed.line);
        // A report that varies a property shows one of its values.
        if asked.iter().any(|p| is_equal(&p.value, value) != Some(false)) {
            if asked.iter().any(|p| is_equal(&p.value, value) == Some(true)) {
                let message =
                    format!("{name}={value} is asked for and listed{}", for_subject(listed));
                verdicts.right(&[line, last.line], message, json!({}));
            }
            continue;
        }
        // Once it was listed as asked for, another value is a later change.
        let was_listed = |p: &&Property| {
            p.origin.is_listed()
                && reaches(last, p)
                && p.line < line
                && is_equal(&p.value, &last.value) == Some(true)
        };
        if all.iter().any(|p| was_listed(&p)) {
            continue;
        }
        let lost = |value: &str| {
            matches!((name.as_str(), value), ("sync", "disabled") | ("barrier", "0"))
                || matches!(name.as_str(), "fsync" | "full_page_writes")
                    && boolean(value) == Some(false)
        };
        let severity = if lost(value) || lost(&last.value) { Serious } else { Warning };
        let message = format!(
            "{name}={} is asked for (line {}), and {name}={value} is listed{}: which of them the figures were measured with is not known",
            last.value,
            last.line,
            for_subject(listed)
        );
        let computed = json!({ "property": name, "asked": last.value, "listed": value, "subject": listed.subject });
        verdicts.found(severity, Likely, &[line, last.line], message, computed);
    }
}

fn for_subject(property: &Property) -> String {
    match property.subject.as_str() {
        "" => String::new(),
        subject => format!(" for {subject}"),
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

/// A number in bytes, milliseconds or, without a unit, as it is; with the kind of its unit.
fn quantity(value: &str) -> Option<(f64, &'static str)> {
    let digits = value.bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count();
    let (number, unit) = value.split_at(digits);
    let number: f64 = number.parse().ok()?;
    let power = |exponent| Some((number * 1024_f64.powi(exponent), "bytes"));
    match unit.trim() {
        "" => Some((number, "")),
        "ms" => Some((number, "time")),
        "s" => Some((number * 1e3, "time")),
        "min" => Some((number * 6e4, "time")),
        "h" => Some((number * 3.6e6, "time")),
        unit => match unit.to_ascii_lowercase().as_str() {
            "b" => power(0),
            "k" | "kb" | "kib" => power(1),
            "m" | "mb" | "mib" => power(2),
            "g" | "gb" | "gib" => power(3),
            "t" | "tb" | "tib" => power(4),
            _ => None,
        },
    }
}

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
