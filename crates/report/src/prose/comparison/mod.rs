//! Comparisons in sentences: of two treatments, of two runs, and of gates.

pub(super) mod gate;
pub(super) mod runs;

use pgdyno_analysis::{Comparison, RatioView, RunView, TreatmentView, Withheld};
use pgdyno_model::{Levels, Plan};
use pgdyno_stats::{FEWEST_RUNS, NoInterval};
use pgdyno_text::format;

use super::phrases::with;

/// Renders the place of a treatment beside the best; none where it has none.
pub(crate) fn ratio_to_best(view: &RunView, t: &TreatmentView) -> Option<String> {
    let ratio = t.ratio_to_best.as_ref()?;
    let Some(best) = view.best else {
        return Some("no transaction was completed, so that no ratio can be formed".to_owned());
    };
    if best == t.index {
        return Some("the best: the highest geometric mean".to_owned());
    }
    let limited = t.generator_limited + view.treatments[best].generator_limited > 0;
    let verdict = match (ratio.value, ratio.significant) {
        (Some(value), Some(true)) => {
            let direction = if value < 1.0 { "slower than" } else { "faster than" };
            format!(
                "{direction} the best: {}× its {}{}",
                format::times(value),
                ratio.measure,
                interval(ratio)
            )
        }
        (_, Some(_)) => format!(
            "no significant difference from the best{}",
            minimum_detectable(ratio.minimum_detectable)
        ),
        (_, None) => no_verdict(ratio, "no interval"),
    };
    Some(format!("{verdict}{}{}", equivalence(ratio), limit(limited)))
}

/// Says why there is no verdict.
fn no_verdict(ratio: &RatioView, or: &'static str) -> String {
    ratio.withheld.map_or_else(|| reason(ratio.why, or), withheld)
}

/// Renders the reason for withholding a verdict.
pub(crate) fn withheld(why: Withheld) -> String {
    match why {
        Withheld::RunNotFinished => "no verdict before the run is finished".to_owned(),
        Withheld::TooFewRuns { found } => {
            format!("undecided across runs, since {}", equal_runs_unknown(found))
        }
    }
}

/// Says that `found` earlier runs are too few for a verdict across runs.
pub(crate) fn equal_runs_unknown(found: usize) -> String {
    format!(
        "how far equal runs differ here is not known ({found} of {FEWEST_RUNS} earlier runs of \
         this experiment on this host)"
    )
}

/// Renders a comparison of two treatments of `plan`: `With clients=8: …`.
pub(crate) fn comparison(plan: &Plan, comparison: &Comparison) -> String {
    format!("{}{}.", with(&comparison.given), comparison_verdict(plan, comparison))
}

/// Renders the verdict on two treatments of `plan`.
pub(crate) fn comparison_verdict(plan: &Plan, comparison: &Comparison) -> String {
    let factor = &comparison.factor;
    let level = |treatment: usize| {
        let levels: &Levels = &plan.treatments[treatment].levels;
        levels.get(factor).map_or_else(String::new, |level| format!("{factor}={level}"))
    };
    let (this, that) = (level(comparison.treatment), level(comparison.to));
    verdict(&this, &that, &comparison.ratio, comparison.generator_limited)
}

/// Renders what the ratio says of `this` beside `that`.
pub(crate) fn verdict(
    this: &str,
    that: &str,
    ratio: &RatioView,
    generator_limited: bool,
) -> String {
    let measure = ratio.measure;
    let verdict = match (ratio.value, ratio.significant) {
        (Some(value), Some(true)) => {
            format!(
                "{this} has {}× the {measure} of {that}{}",
                format::times(value),
                interval(ratio)
            )
        }
        (Some(value), Some(false)) => format!(
            "no significant difference between {this} and {that} (ratio {}{}){}",
            format::times(value),
            ratio.ci95.map_or_else(String::new, |ci95| format!(", 95% CI {}", range(ci95))),
            minimum_detectable(ratio.minimum_detectable)
        ),
        (Some(value), None) => {
            let alone = ratio
                .within_runs
                .filter(|_| ratio.ci95.is_none())
                .map_or_else(String::new, |ci95| {
                    format!(" (by these two runs' own trials {})", range(ci95))
                });
            let value = format::times(value);
            format!(
                "{this} had {value}× the {measure} of {that}{}{alone}; {}",
                interval(ratio),
                no_verdict(ratio, "no interval")
            )
        }
        (None, _) => {
            format!("{this} and {that} cannot be compared: {}", no_verdict(ratio, "no ratio"))
        }
    };
    format!("{verdict}{}{}", equivalence(ratio), limit(generator_limited))
}

pub(crate) fn range([lo, hi]: [f64; 2]) -> String {
    format!("{}–{}", format::times(lo), format::times(hi))
}

fn interval(ratio: &RatioView) -> String {
    ratio.ci95.map_or_else(String::new, |ci95| format!(" (95% CI {})", range(ci95)))
}

/// Differences beyond this share are no figure to plan with: the repeats say nothing of any size.
pub(crate) const HOPELESS: f64 = 1.0;

/// ` (minimum detectable: 3.0%)`; nothing where it is not known.
pub(crate) fn minimum_detectable(share: Option<f64>) -> String {
    match share {
        None => String::new(),
        Some(share) if share > HOPELESS => {
            " (even a twofold difference could be missed)".to_owned()
        }
        Some(share) => format!(" (minimum detectable: {}%)", format::percent(share)),
    }
}

/// Says whether the difference is known to be less than the margin.
fn equivalence(ratio: &RatioView) -> String {
    let Some(margin) = ratio.margin else { return String::new() };
    let margin = format::percent(margin);
    match (ratio.equivalent, ratio.significant) {
        (Some(true), Some(true)) => {
            format!("; the difference is less than the margin of {margin}%")
        }
        (Some(true), _) => format!("; equivalent within the margin of {margin}%"),
        (_, Some(false)) => format!("; not shown to be equivalent within the margin of {margin}%"),
        _ => String::new(),
    }
}

/// Warns that the load generator may be what was compared.
fn limit(generator_limited: bool) -> &'static str {
    if generator_limited {
        "; generator-limited: the load generator may be what was compared, not the server"
    } else {
        ""
    }
}

/// Returns the words for a missing interval; `or` if there is no reason.
pub(crate) fn reason(why: Option<NoInterval>, or: &str) -> String {
    why.map_or_else(|| or.to_owned(), |why| why.to_string())
}
