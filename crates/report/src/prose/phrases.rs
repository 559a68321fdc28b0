//! Phrases that several sentences share.

use pgdyno_text::format;

use pgdyno_analysis::{RunView, TpsView, TreatmentView};
use pgdyno_model::Plan;

use crate::text::plain;

/// Joins the first `shown` of `all`, and the number of the others.
pub(super) fn listed(all: &[String], shown: usize, between: &str) -> String {
    let mut text = all.iter().take(shown).cloned().collect::<Vec<_>>().join(between);
    if all.len() > shown {
        text.push_str(&format!("{between}{} more", all.len() - shown));
    }
    text
}

/// Renders a share: `4.8%`.
pub(super) fn share(value: f64) -> String {
    format!("{}%", format::percent(value))
}

/// Renders degrees of freedom as a whole number: `8 degrees of freedom`.
pub(crate) fn degrees_of_freedom(freedom: f64) -> String {
    match format!("{freedom:.0}") {
        one if one == "1" => "1 degree of freedom".to_owned(),
        many => format!("{many} degrees of freedom"),
    }
}

/// Renders under which levels something holds: `With clients=8: `; empty without levels.
pub(super) fn with(given: &str) -> String {
    if given.is_empty() { String::new() } else { format!("With {given}: ") }
}

/// Returns `So far, ` for a run whose result may still change; else nothing.
pub(super) fn so_far(view: &RunView) -> &'static str {
    if view.is_provisional() { "So far, " } else { "" }
}

/// Renders the compared figure with its interval: `1,234 tps (95% CI 1,200 to 1,268)`.
pub(super) fn rate(view: &RunView, t: &TreatmentView) -> String {
    let Some(tps) = &t.tps else { return "no figure".to_owned() };
    let unit = match view.plan.find {
        Some(_) => "transactions/s at most".to_owned(),
        None => tps_of(&view.plan),
    };
    format!("{} {unit}{}", format::rate(tps.mean), interval(tps))
}

/// `tps`, or `tps of new_order` where that script alone is compared.
pub(crate) fn tps_of(plan: &Plan) -> String {
    match &plan.headline {
        Some(script) => format!("tps of {}", plain(script)),
        None => "tps".to_owned(),
    }
}

/// Renders an interval: ` (95% CI 1,200 to 1,268)`; empty without one.
pub(super) fn interval(tps: &TpsView) -> String {
    tps.ci95.map_or_else(String::new, |[lo, hi]| {
        format!(" (95% CI {} to {})", format::rate(lo), format::rate(hi))
    })
}

/// Capitalizes the first letter, but not that of a factor and its level (`clients=8`).
pub(super) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) if !text.split(' ').next().unwrap_or_default().contains('=') => {
            first.to_uppercase().chain(chars).collect()
        }
        _ => text.to_owned(),
    }
}
