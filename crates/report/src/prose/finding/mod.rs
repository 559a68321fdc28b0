//! Sentences on audited reports: findings, checks that held, lines that were not understood.
//!
//! One kind serves findings and checks: [`message`] is told which of the two it renders.

mod design;
mod repeats;
mod runs;
mod storage;
mod tables;

pub(crate) use design::machine_use;
use pgdyno_audit::{DesignKind, Kind, WhyNot};
use pgdyno_text::format;
use serde_json::{Value, json};

/// Renders a finding, or a check that `is_right`.
pub(crate) fn message(kind: &Kind, is_right: bool) -> String {
    match kind {
        Kind::Run(kind) => runs::message(kind, is_right),
        Kind::Table(kind) => tables::message(kind, is_right),
        Kind::Repeats(kind) => repeats::message(kind, is_right),
        Kind::Design(kind) => design::message(kind, is_right),
        Kind::Storage(kind) => storage::message(kind, is_right),
    }
}

/// Renders the figures by name, as `--json` has them.
///
/// JSON has had text where a kind has parameters with their units.
pub(crate) fn computed(kind: &Kind) -> Value {
    match kind {
        Kind::Design(DesignKind::OtherThanAsked { asked, reported, .. }) => {
            json!({ "asked": design::parameter(asked), "reported": design::parameter(reported) })
        }
        Kind::Design(DesignKind::AsAsked { compared }) => {
            json!({ "compared": compared.iter().map(design::parameter).collect::<Vec<_>>() })
        }
        Kind::Design(DesignKind::UnequalRuns { differences }) => {
            json!({ "differ_in": design::differences(differences) })
        }
        kind => serde_json::to_value(kind).unwrap_or_default(),
    }
}

/// Renders the reason why a line was not understood.
pub(crate) fn reason_not_understood(why: &WhyNot) -> String {
    match why {
        WhyNot::Garbled => "not all of it is UTF-8: what is not shows as \u{fffd}".to_owned(),
        WhyNot::AmbiguousNumber(number) => format!(
            "`{number}` is one number in English and another in German: nothing in its table tells \
             which"
        ),
        WhyNot::Figure => "it seems to hold a figure, and no recogniser reads it".to_owned(),
        WhyNot::Percentage => "a percentage, and it is not clear of what".to_owned(),
    }
}

/// `2.00`, `1,234`: to three significant digits.
fn rounded(value: f64) -> String {
    format::rate(value)
}

/// To four decimals, which a sentence bears that compares it with a printed figure.
fn exact(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn joined(values: &[f64]) -> String {
    values.iter().copied().map(exact).collect::<Vec<_>>().join(", ")
}
