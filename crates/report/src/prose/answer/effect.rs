//! Sentences on what one level of a factor costs or gains against another.

use pgdyno_text::format;

use super::super::comparison::range;
use super::super::factors::dependence;
use super::super::phrases::capital;
use super::super::{minimum_detectable, reason};
use super::leader;
use pgdyno_analysis::question::asked_levels;
use pgdyno_analysis::{Effect, EffectView, RatioView, RunView};

/// Most combinations of the other factors' levels that are named one by one.
const SHOWN: usize = 3;

pub(super) fn answer(view: &RunView) -> Vec<String> {
    let Some((factor, level, against)) = asked_levels(&view.plan) else {
        return leader::answer(view);
    };
    let words = view.plan.answer.as_ref().and_then(|answer| answer.words.clone());
    let words = words.unwrap_or_else(|| format!("{factor}={level}"));
    let effects = &view.effects;
    let mut out = Vec::new();
    if effects.is_empty() {
        out.push(format!(
            "What {words} costs is not known: no two completed treatments differ in \
             {factor}={level} and {factor}={against} alone."
        ));
    } else {
        let measure = view.measure();
        let subject = format!("{} against {factor}={against}", capital(&words));
        match view.effect.as_ref().map(|effect| average(&subject, effect, measure)) {
            Some(average) => {
                out.extend([average, render_effects("Taken one by one", effects, measure)]);
            }
            None => out.push(render_effects(&subject, effects, measure)),
        }
        out.extend(dependence(view, &factor));
    }
    out.extend(leader::ahead(view));
    out
}

/// Renders the average effect: `… costs 45% of the tps on average over 5 combinations (95% CI
/// 41–49%)`.
fn average(subject: &str, effect: &EffectView, measure: &str) -> String {
    let over = format!("on average over {} combinations", effect.combinations);
    let Size { change, interval } = size(effect.ratio, Some(effect.ci95), measure);
    if effect.significant {
        format!("{subject} {change} {over}{interval}.")
    } else {
        let (ratio, ci95) = (format::times(effect.ratio), range(effect.ci95));
        format!("{subject}: no significant difference {over} (ratio {ratio}, 95% CI {ci95}).")
    }
}

/// Renders the effects, one by one while they are few.
fn render_effects(subject: &str, effects: &[Effect], measure: &str) -> String {
    let with = |effect: &Effect| {
        if effect.given.is_empty() { String::new() } else { format!(" with {}", effect.given) }
    };
    if effects.len() <= SHOWN {
        let each: Vec<String> = effects
            .iter()
            .map(|effect| format!("{}{}", one(&effect.ratio, measure), with(effect)))
            .collect();
        return format!("{subject}: {}.", each.join("; "));
    }
    let of = |wanted: &dyn Fn(&RatioView) -> bool| -> Vec<&Effect> {
        effects.iter().filter(|effect| wanted(&effect.ratio)).collect()
    };
    let is = |ratio: &RatioView, more: bool| {
        ratio.significant == Some(true) && ratio.value.is_some_and(|v| (v > 1.0) == more)
    };
    let distance = |effect: &Effect| effect.ratio.value.map_or(0.0, |v| v.ln().abs());
    let part = |found: Vec<&Effect>, what: &str| {
        let most = found.iter().max_by(|a, b| distance(a).total_cmp(&distance(b)))?;
        Some(format!(
            "{what} in {} (most: {}{})",
            found.len(),
            one(&most.ratio, measure),
            with(most)
        ))
    };
    let count = |found: Vec<&Effect>, what: &str| {
        (!found.is_empty()).then(|| format!("{what} in {}", found.len()))
    };
    let parts: Vec<String> = [
        part(of(&|r| is(r, true)), "a gain"),
        part(of(&|r| is(r, false)), "a cost"),
        count(of(&|r| r.significant == Some(false)), "no significant difference"),
        count(of(&|r| r.significant.is_none()), "no verdict"),
    ]
    .into_iter()
    .flatten()
    .collect();
    format!("{subject}, of {} combinations: {}.", effects.len(), parts.join(", "))
}

/// Words for the size of an effect.
struct Size {
    /// `costs 66% of the tps`.
    change: String,
    /// ` (95% CI 61–70%)`; empty without one.
    interval: String,
}

/// Renders a ratio as a cost or a gain.
fn size(value: f64, ci95: Option<[f64; 2]>, measure: &str) -> Size {
    /// Gains from here on are rendered as a multiple.
    const MULTIPLE: f64 = 2.0;
    let percent = |share: f64| format::percent(share.abs());
    let change = match value {
        v if v < 1.0 => format!("costs {}% of the {measure}", percent(1.0 - v)),
        v if v < MULTIPLE => format!("gains {}% of {measure}", percent(v - 1.0)),
        v => format!("gives {}× the {measure}", format::times(v)),
    };
    let interval = ci95.map_or_else(String::new, |[lo, hi]| match value {
        v if v >= MULTIPLE => format!(" (95% CI {}×)", range([lo, hi])),
        v if v < 1.0 && hi < 1.0 => {
            format!(" (95% CI {}–{}%)", percent(1.0 - hi), percent(1.0 - lo))
        }
        v if v >= 1.0 && lo >= 1.0 => {
            format!(" (95% CI {}–{}%)", percent(lo - 1.0), percent(hi - 1.0))
        }
        _ => format!(" (ratio {}, 95% CI {})", format::times(value), range([lo, hi])),
    });
    Size { change, interval }
}

/// Renders one effect: `costs 66% of the tps (95% CI 61–70%)`.
fn one(ratio: &RatioView, measure: &str) -> String {
    let Some(value) = ratio.value else {
        return format!("not known ({})", reason(ratio.why, "no ratio"));
    };
    let Size { change, interval } = size(value, ratio.ci95, measure);
    match ratio.significant {
        Some(true) => format!("{change}{interval}"),
        Some(false) => {
            format!("no significant difference{}", minimum_detectable(ratio.minimum_detectable))
        }
        None if ratio.withheld.is_some() => format!("so far it {change}{interval}"),
        None => format!("it {change} ({})", reason(ratio.why, "no interval")),
    }
}
