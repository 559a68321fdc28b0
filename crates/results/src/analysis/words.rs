//! Results in sentences.

use std::cmp::Ordering;

use pgdyno_model::Levels;

use super::compare::Judged;
use super::floor;
use super::view::{Comparison, RatioView, RunView, TreatmentView};
use crate::number;

/// A treatment in one line.
pub(super) fn label(levels: &Levels) -> String {
    if levels.0.is_empty() { "the only treatment".to_owned() } else { levels.to_string() }
}

pub(super) fn ratio_to_best(judged: &Judged, generator_limited: bool) -> RatioView {
    let verdict = match (judged.ratio.value, judged.told_apart()) {
        (Some(value), Some(true)) => {
            let direction = if value < 1.0 { "slower than" } else { "faster than" };
            format!(
                "{direction} the best: {}× its {}{}",
                number::times(value),
                judged.measure,
                interval(judged)
            )
        }
        (_, Some(_)) => format!("no significant difference from the best{}", unseen(judged)),
        (_, None) => reason(judged, "no interval"),
    };
    view(judged, format!("{verdict}{}{}", equivalence(judged), limit(generator_limited)))
}

/// Why there is no verdict.
fn reason(judged: &Judged, or: &'static str) -> String {
    judged.withheld.clone().unwrap_or_else(|| judged.ratio.why.unwrap_or(or).to_owned())
}

pub(super) fn comparison(
    factor: &str,
    (treatment, levels): (usize, &Levels),
    (to, base): (usize, &Levels),
    judged: &Judged,
    generator_limited: bool,
) -> Comparison {
    let level =
        |levels: &Levels| levels.get(factor).map_or_else(String::new, |level| format!("{factor}={level}"));
    let given = Levels(levels.0.iter().filter(|(name, _)| name != factor).cloned().collect()).to_string();
    let with = if given.is_empty() { String::new() } else { format!("With {given}: ") };
    let (this, that) = (level(levels), level(base));
    let verdict = verdict(&this, &that, judged, None, generator_limited);
    Comparison {
        factor: factor.to_owned(),
        given,
        treatment,
        to,
        words: format!("{with}{verdict}."),
        ratio: view(judged, verdict),
        holm: judged.told_apart(),
        latency: Vec::new(),
        generator_limited,
    }
}

/// What the ratio says of `this` beside `that`; `within_runs` is the interval that the trials of two runs give by themselves.
pub(super) fn verdict(
    this: &str,
    that: &str,
    judged: &Judged,
    within_runs: Option<[f64; 2]>,
    generator_limited: bool,
) -> String {
    let measure = judged.measure;
    let verdict = match (judged.ratio.value, judged.told_apart()) {
        (Some(value), Some(true)) => {
            format!("{this} has {}× the {measure} of {that}{}", number::times(value), interval(judged))
        }
        (Some(value), Some(false)) => format!(
            "no significant difference between {this} and {that} (ratio {}{}){}",
            number::times(value),
            judged.ratio.ci95.map_or_else(String::new, |ci95| format!(", 95% CI {}", range(ci95))),
            unseen(judged)
        ),
        (Some(value), None) => {
            let alone = within_runs
                .filter(|_| judged.ratio.ci95.is_none())
                .map_or_else(String::new, |ci95| format!(" (by these two runs' own trials {})", range(ci95)));
            let value = number::times(value);
            format!(
                "{this} had {value}× the {measure} of {that}{}{alone}; {}",
                interval(judged),
                reason(judged, "no interval")
            )
        }
        (None, _) => format!("{this} and {that} cannot be compared: {}", reason(judged, "no ratio")),
    };
    format!("{verdict}{}{}", equivalence(judged), limit(generator_limited))
}

pub(super) fn view(judged: &Judged, verdict: String) -> RatioView {
    let ratio = &judged.ratio;
    RatioView {
        value: ratio.value,
        ci95: ratio.ci95,
        method: ratio.method,
        p: ratio.p,
        p_together: judged.p,
        told_apart: judged.told_apart(),
        withheld: judged.withheld.clone(),
        within_runs: None,
        equivalent: judged.equivalent(),
        detectable: judged.detectable(),
        verdict,
    }
}

fn range([lo, hi]: [f64; 2]) -> String {
    format!("{}–{}", number::times(lo), number::times(hi))
}

fn interval(judged: &Judged) -> String {
    judged.ratio.ci95.map_or_else(String::new, |ci95| format!(" (95% CI {})", range(ci95)))
}

/// What a verdict of no difference leaves open.
fn unseen(judged: &Judged) -> String {
    let alone = judged.ratio.p.is_some_and(|p| p <= super::compare::ALPHA);
    let alone = if alone {
        format!("; it would be one by itself, but not beside {} comparisons", judged.comparisons)
    } else {
        String::new()
    };
    /// Repeats that differ so much say nothing of any size.
    const HOPELESS: f64 = 9.0;
    let seen = judged.detectable().map_or_else(String::new, |share| {
        if share > HOPELESS {
            " (the repeats differ so much that a tenfold difference could be missed)".to_owned()
        } else {
            format!(" (minimum detectable: {}%)", number::percent(share))
        }
    });
    format!("{seen}{alone}")
}

/// Whether the difference is known to be less than the margin.
fn equivalence(judged: &Judged) -> String {
    let Some((margin, _)) = judged.equivalence else { return String::new() };
    let margin = number::percent(margin);
    match (judged.equivalent(), judged.told_apart()) {
        (Some(true), Some(true)) => format!("; the difference is less than the margin of {margin}%"),
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

/// One or two sentences that answer the question as far as the data do.
pub(super) fn answer(view: &RunView) -> Vec<String> {
    let mut measured: Vec<(&TreatmentView, f64)> =
        view.treatments.iter().filter_map(|t| Some((t, t.tps.as_ref()?.mean))).collect();
    measured.sort_by(|a, b| {
        (view.best == Some(b.0.index), b.1)
            .partial_cmp(&(view.best == Some(a.0.index), a.1))
            .unwrap_or(Ordering::Equal)
    });
    let Some(((best, mean), (slowest, least))) = measured.first().copied().zip(measured.last().copied())
    else {
        return vec!["No trial is completed yet: nothing can be said.".to_owned()];
    };
    if mean <= 0.0 {
        return vec![
            "No transaction was completed in any trial: nothing can be said about speed.".to_owned(),
        ];
    }
    let unit = if view.plan.find.is_some() { "transactions/s at most" } else { "tps" };
    let found = format!("{} {unit}{}", number::rate(mean), around(best));
    if measured.len() == 1 {
        let latency = best.latency_us.as_ref().map_or_else(String::new, |l| {
            format!(
                "; half of the transactions took at most {} ms, 99% at most {} ms",
                number::milliseconds(l.p50),
                number::milliseconds(l.p99)
            )
        });
        return vec![format!("{}: {found}{latency}.", capital(&best.label))];
    }
    let equals: Vec<&str> = measured[1..]
        .iter()
        .filter(|(t, _)| t.ratio_to_best.as_ref().is_some_and(|r| r.told_apart != Some(true)))
        .map(|(t, _)| t.label.as_str())
        .collect();
    let mut first = if equals.is_empty() {
        format!("{} is fastest with {found}", best.label)
    } else {
        format!("{} is ahead with {found}", best.label)
    };
    if equals.is_empty() && least > 0.0 {
        let slowest = format!("{} times the slowest, {}", number::times(mean / least), slowest.label);
        first.push_str(&format!(", {slowest}"));
    } else if view.treatments.iter().all(|t| t.trials <= 1) {
        first.push_str(", but with one repeat each no difference can be told from chance");
    } else {
        let (some, more) = equals.split_at(equals.len().min(2));
        first.push_str(&format!(", but cannot be told apart from {}", some.join(" and from ")));
        if !more.is_empty() {
            first.push_str(&format!(" and {} more", more.len()));
        }
    }
    if measured.iter().any(|(t, _)| t.generator_limited > 0) {
        first.push_str(" (in some trials the load generator may have been the limit)");
    }
    first.push('.');
    let mut out = vec![first];
    // The first factor is what the question is about: it is spoken of even where it did nothing that can be told.
    let effects = view.plan.factors.iter().enumerate().filter_map(|(i, factor)| effect(view, factor, i == 0));
    out.extend(effects.take(2));
    if let Some(pair) = floor::same_pair(&view.plan) {
        let [a, b] = pair.map(|index| view.treatments[index].label.as_str());
        out.push(format!("{a} and {b} are the same treatment: what differs between them is noise."));
    }
    out
}

/// What the factor's strongest change does, under each combination of the others; none if it does nothing that can be
/// told, unless it is to be spoken of `anyway`.
fn effect(view: &RunView, factor: &str, anyway: bool) -> Option<String> {
    const SHOWN: usize = 4;
    let size = |c: &Comparison| c.ratio.value.filter(|v| *v > 0.0).map_or(0.0, |v| v.ln().abs());
    let of_factor = || view.comparisons.iter().filter(|c| c.factor == factor);
    let strongest = of_factor()
        .filter(|c| c.ratio.told_apart == Some(true))
        .max_by(|a, b| size(a).total_cmp(&size(b)))
        .or_else(|| of_factor().filter(|_| anyway).max_by(|a, b| size(a).total_cmp(&size(b))))?;
    let level = |c: &Comparison, index: usize| {
        Some(view.plan.treatments.get(index)?.levels.get(&c.factor)?.to_string())
    };
    let (from, to) = (level(strongest, strongest.to)?, level(strongest, strongest.treatment)?);
    let same = |c: &&Comparison| {
        c.factor == strongest.factor
            && level(c, c.to).as_ref() == Some(&from)
            && level(c, c.treatment).as_ref() == Some(&to)
    };
    let measure = super::compare::measure(&view.plan);
    let say = |c: &Comparison| {
        let with = if c.given.is_empty() { String::new() } else { format!(" with {}", c.given) };
        match (c.ratio.value, c.ratio.told_apart) {
            (Some(value), Some(true)) => format!("{}× the {measure}{with}", number::times(value)),
            (_, Some(false)) => format!("no difference that can be told{with}"),
            _ => format!("unknown{with}"),
        }
    };
    let all: Vec<&Comparison> = view.comparisons.iter().filter(same).collect();
    let mut said: Vec<String> = all.iter().take(SHOWN).map(|c| say(c)).collect();
    if all.len() > SHOWN {
        said.push(format!("{} more below", all.len() - SHOWN));
    }
    Some(format!("{} from {from} to {to}: {}.", strongest.factor, said.join(", ")))
}

/// The interval in words, or that there is none.
fn around(t: &TreatmentView) -> String {
    match t.tps.as_ref().and_then(|tps| tps.ci95) {
        Some([lo, hi]) => format!(" (95% CI {} to {})", number::rate(lo), number::rate(hi)),
        None => String::new(),
    }
}

fn capital(text: &str) -> String {
    // Factor names keep their spelling; only the words of our own are put at a sentence's start.
    if text.starts_with("the ") { format!("T{}", &text[1..]) } else { text.to_owned() }
}
