//! Phrases that several sentences share.

use pgdyno_model::format;

use crate::analysis::family::is_provisional;
use crate::analysis::{RunView, TpsView, TreatmentView};

/// The first `shown` of `all`, and how many more there are.
pub(super) fn listed(all: &[String], shown: usize, between: &str) -> String {
    let mut text = all.iter().take(shown).cloned().collect::<Vec<_>>().join(between);
    if all.len() > shown {
        text.push_str(&format!("{between}{} more", all.len() - shown));
    }
    text
}

/// `So far, ` before what is said of a run that may still change it.
pub(super) fn so_far(view: &RunView) -> &'static str {
    if is_provisional(&view.plan, view.run.state) { "So far, " } else { "" }
}

/// ` tps` or what else is compared, with its interval: `1,234 tps (95% CI 1,200 to 1,268)`.
pub(super) fn rate(view: &RunView, t: &TreatmentView) -> String {
    let Some(tps) = &t.tps else { return "no figure".to_owned() };
    let unit = if view.plan.find.is_some() { "transactions/s at most" } else { "tps" };
    format!("{} {unit}{}", format::rate(tps.mean), interval(tps))
}

/// ` (95% CI 1,200 to 1,268)`; empty without an interval.
pub(super) fn interval(tps: &TpsView) -> String {
    tps.ci95.map_or_else(String::new, |[lo, hi]| {
        format!(" (95% CI {} to {})", format::rate(lo), format::rate(hi))
    })
}

/// A sentence's first letter as a capital, but for the names of factors and their levels.
pub(super) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) if !text.split(' ').next().unwrap_or_default().contains('=') => {
            first.to_uppercase().chain(chars).collect()
        }
        _ => text.to_owned(),
    }
}
