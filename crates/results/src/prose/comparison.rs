//! Comparisons in sentences.

use pgdyno_model::{Levels, format};
use pgdyno_stats::{FEWEST_RUNS, NoInterval};

use super::phrases::with;
use crate::analysis::family::Judged;
use crate::analysis::{Comparison, RatioView, Withheld};

pub(crate) fn ratio_to_best(judged: &Judged, generator_limited: bool) -> RatioView {
    let verdict = match (judged.ratio.value, judged.significant()) {
        (Some(value), Some(true)) => {
            let direction = if value < 1.0 { "slower than" } else { "faster than" };
            format!(
                "{direction} the best: {}× its {}{}",
                format::times(value),
                judged.measure,
                interval(judged)
            )
        }
        (_, Some(_)) => format!(
            "no significant difference from the best{}",
            minimum_detectable(judged.minimum_detectable())
        ),
        (_, None) => no_verdict(judged, "no interval"),
    };
    view(judged, format!("{verdict}{}{}", equivalence(judged), limit(generator_limited)))
}

/// Why there is no verdict.
fn no_verdict(judged: &Judged, or: &'static str) -> String {
    judged.withheld.as_ref().map_or_else(|| reason(judged.ratio.why, or), withheld)
}

/// Renders the reason for withholding a verdict.
pub(super) fn withheld(why: &Withheld) -> String {
    match why {
        Withheld::RunNotFinished => "no verdict before the run is finished".to_owned(),
        Withheld::TooFewRuns { found } => {
            format!("undecided across runs, since {}", equal_runs_unknown(*found))
        }
    }
}

/// Says that `found` earlier runs are too few for a verdict across runs.
pub(super) fn equal_runs_unknown(found: usize) -> String {
    format!(
        "how far equal runs differ here is not known ({found} of {FEWEST_RUNS} earlier runs of this experiment on this host)"
    )
}

pub(crate) fn comparison(
    factor: &str,
    (treatment, levels): (usize, &Levels),
    (to, base): (usize, &Levels),
    judged: &Judged,
    generator_limited: bool,
) -> Comparison {
    let level = |levels: &Levels| {
        levels.get(factor).map_or_else(String::new, |level| format!("{factor}={level}"))
    };
    let given = levels.without(&[factor]).to_string();
    let with = with(&given);
    let (this, that) = (level(levels), level(base));
    let verdict = verdict(&this, &that, judged, None, generator_limited);
    Comparison {
        factor: factor.to_owned(),
        given,
        treatment,
        to,
        words: format!("{with}{verdict}."),
        ratio: view(judged, verdict),
        holm: judged.significant(),
        latency: Vec::new(),
        generator_limited,
    }
}

/// What the ratio says of `this` beside `that`; `within_runs` is the interval that the trials of
/// two runs give by themselves.
pub(crate) fn verdict(
    this: &str,
    that: &str,
    judged: &Judged,
    within_runs: Option<[f64; 2]>,
    generator_limited: bool,
) -> String {
    let measure = judged.measure;
    let verdict = match (judged.ratio.value, judged.significant()) {
        (Some(value), Some(true)) => {
            format!(
                "{this} has {}× the {measure} of {that}{}",
                format::times(value),
                interval(judged)
            )
        }
        (Some(value), Some(false)) => format!(
            "no significant difference between {this} and {that} (ratio {}{}){}",
            format::times(value),
            judged.ratio.ci95.map_or_else(String::new, |ci95| format!(", 95% CI {}", range(ci95))),
            minimum_detectable(judged.minimum_detectable())
        ),
        (Some(value), None) => {
            let alone = within_runs
                .filter(|_| judged.ratio.ci95.is_none())
                .map_or_else(String::new, |ci95| {
                    format!(" (by these two runs' own trials {})", range(ci95))
                });
            let value = format::times(value);
            format!(
                "{this} had {value}× the {measure} of {that}{}{alone}; {}",
                interval(judged),
                no_verdict(judged, "no interval")
            )
        }
        (None, _) => {
            format!("{this} and {that} cannot be compared: {}", no_verdict(judged, "no ratio"))
        }
    };
    format!("{verdict}{}{}", equivalence(judged), limit(generator_limited))
}

pub(crate) fn view(judged: &Judged, verdict: String) -> RatioView {
    let ratio = &judged.ratio;
    RatioView {
        value: ratio.value,
        ci95: ratio.ci95,
        method: ratio.method,
        p: ratio.p,
        p_together: judged.p,
        significant: judged.significant(),
        withheld: judged.withheld,
        within_runs: None,
        equivalent: judged.equivalent(),
        minimum_detectable: judged.minimum_detectable(),
        verdict,
    }
}

pub(super) fn range([lo, hi]: [f64; 2]) -> String {
    format!("{}–{}", format::times(lo), format::times(hi))
}

fn interval(judged: &Judged) -> String {
    judged.ratio.ci95.map_or_else(String::new, |ci95| format!(" (95% CI {})", range(ci95)))
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

/// Whether the difference is known to be less than the margin.
fn equivalence(judged: &Judged) -> String {
    let Some((margin, _)) = judged.equivalence else { return String::new() };
    let margin = format::percent(margin);
    match (judged.equivalent(), judged.significant()) {
        (Some(true), Some(true)) => {
            format!("; the difference is less than the margin of {margin}%")
        }
        (Some(true), _) => format!("; equivalent within the margin of {margin}%"),
        (_, Some(false)) => format!("; not shown to be equivalent within the margin of {margin}%"),
        _ => String::new(),
    }
}

/// That the load generator may be what was compared.
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
