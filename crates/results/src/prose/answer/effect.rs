//! Sentences on what one level of a factor costs or gains against another.

use pgdyno_model::format;

use super::super::factors::dependence;
use super::super::phrases::capital;
use super::super::{minimum_detectable, reason};
use super::leader;
use crate::analysis::RunView;
use crate::analysis::effect::{Effect, effects};
use crate::analysis::family::{Family, Judged, measure};
use crate::analysis::question::asked_levels;

/// Most combinations of the other factors' levels that are named one by one.
const SHOWN: usize = 3;

pub(super) fn answer(view: &RunView, family: &Family) -> Vec<String> {
    let Some((factor, level, against)) = asked_levels(&view.plan) else {
        return leader::answer(view);
    };
    let words = view.plan.answer.as_ref().and_then(|answer| answer.words.clone());
    let words = words.unwrap_or_else(|| format!("{factor}={level}"));
    let effects = effects(view, family, &factor, &level, &against);
    let mut out = Vec::new();
    if effects.is_empty() {
        out.push(format!(
            "What {words} costs is not known: no two completed treatments differ in {factor}={level} and {factor}={against} alone."
        ));
    } else {
        out.push(said(&words, &format!("{factor}={against}"), &effects, measure(&view.plan)));
        out.extend(dependence(view, &factor));
    }
    out.extend(leader::ahead(view));
    out
}

fn said(words: &str, against: &str, effects: &[Effect], measure: &str) -> String {
    let with = |effect: &Effect| {
        if effect.given.is_empty() { String::new() } else { format!(" with {}", effect.given) }
    };
    if effects.len() <= SHOWN {
        let each: Vec<String> = effects
            .iter()
            .map(|effect| format!("{}{}", one(&effect.judged, measure), with(effect)))
            .collect();
        return format!("{} against {against}: {}.", capital(words), each.join("; "));
    }
    let of = |wanted: &dyn Fn(&Judged) -> bool| -> Vec<&Effect> {
        effects.iter().filter(|effect| wanted(&effect.judged)).collect()
    };
    let is = |judged: &Judged, more: bool| {
        judged.significant() == Some(true) && judged.ratio.value.is_some_and(|v| (v > 1.0) == more)
    };
    let size = |effect: &Effect| effect.judged.ratio.value.map_or(0.0, |v| v.ln().abs());
    let part = |found: Vec<&Effect>, what: &str| {
        let most = found.iter().max_by(|a, b| size(a).total_cmp(&size(b)))?;
        Some(format!(
            "{what} in {} (most: {}{})",
            found.len(),
            one(&most.judged, measure),
            with(most)
        ))
    };
    let count = |found: Vec<&Effect>, what: &str| {
        (!found.is_empty()).then(|| format!("{what} in {}", found.len()))
    };
    let parts: Vec<String> = [
        part(of(&|j| is(j, true)), "a gain"),
        part(of(&|j| is(j, false)), "a cost"),
        count(of(&|j| j.significant() == Some(false)), "no significant difference"),
        count(of(&|j| j.significant().is_none()), "no verdict"),
    ]
    .into_iter()
    .flatten()
    .collect();
    format!(
        "{} against {against}, of {} combinations: {}.",
        capital(words),
        effects.len(),
        parts.join(", ")
    )
}

/// Renders one effect: `costs 66% of the tps (95% CI 61–70%)`.
fn one(judged: &Judged, measure: &str) -> String {
    /// Gains from here on are rendered as a multiple.
    const MULTIPLE: f64 = 2.0;
    let ratio = &judged.ratio;
    let Some(value) = ratio.value else {
        return format!("not known ({})", reason(ratio.why, "no ratio"));
    };
    let percent = |share: f64| format::percent(share.abs());
    let (verb, change) = match value {
        v if v < 1.0 => ("costs", format!("{}% of the {measure}", percent(1.0 - v))),
        v if v < MULTIPLE => ("gains", format!("{}% of {measure}", percent(v - 1.0))),
        v => ("gives", format!("{}× the {measure}", format::times(v))),
    };
    let interval = ratio.ci95.map_or_else(String::new, |[lo, hi]| match value {
        v if v >= MULTIPLE => format!(" (95% CI {}–{}×)", format::times(lo), format::times(hi)),
        v if v < 1.0 && hi < 1.0 => {
            format!(" (95% CI {}–{}%)", percent(1.0 - hi), percent(1.0 - lo))
        }
        v if v >= 1.0 && lo >= 1.0 => {
            format!(" (95% CI {}–{}%)", percent(lo - 1.0), percent(hi - 1.0))
        }
        _ => format!(
            " (ratio {}, 95% CI {}–{})",
            format::times(value),
            format::times(lo),
            format::times(hi)
        ),
    });
    match judged.significant() {
        Some(true) => format!("{verb} {change}{interval}"),
        Some(false) => {
            format!("no significant difference{}", minimum_detectable(judged.minimum_detectable()))
        }
        None if judged.withheld.is_some() => format!("so far it {verb} {change}{interval}"),
        None => format!("it {verb} {change} ({})", reason(ratio.why, "no interval")),
    }
}
