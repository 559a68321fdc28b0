//! Which treatment is fastest, and what the factors do.

use std::cmp::Ordering;

use pgdyno_text::format;

use super::super::factors::dependence;
use super::super::phrases::{capital, rate, so_far};
use super::super::{minimum_detectable, ratio_to_best};
use pgdyno_analysis::{Comparison, RunView, TreatmentView, noise_floor};

/// Reason why nothing can be said about speed.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoSpeed {
    #[error("No trial is completed yet: nothing can be said.")]
    NoTrial,
    #[error("No transaction was completed in any trial: nothing can be said about speed.")]
    NoTransaction,
}

/// Returns the measured treatments with their mean tps, the best first.
///
/// # Errors
/// [`NoSpeed`] if no trial, or no transaction, was completed.
pub(super) fn speed(view: &RunView) -> Result<Vec<(&TreatmentView, f64)>, NoSpeed> {
    let mut measured: Vec<(&TreatmentView, f64)> =
        view.treatments.iter().filter_map(|t| Some((t, t.tps.as_ref()?.mean))).collect();
    measured.sort_by(|a, b| {
        (view.best == Some(b.0.index), b.1)
            .partial_cmp(&(view.best == Some(a.0.index), a.1))
            .unwrap_or(Ordering::Equal)
    });
    match measured.first() {
        None => Err(NoSpeed::NoTrial),
        Some((_, mean)) if *mean <= 0.0 => Err(NoSpeed::NoTransaction),
        Some(_) => Ok(measured),
    }
}

pub(super) fn answer(view: &RunView) -> Vec<String> {
    let mut out: Vec<String> = ahead(view).into_iter().collect();
    // The first factor is what the question is about: it is spoken of even where it did nothing
    // that is significant.
    let effects =
        view.plan.factors.iter().enumerate().filter_map(|(i, factor)| effect(view, factor, i == 0));
    if view.treatments.len() > 1 {
        out.extend(effects.take(2));
    }
    out.extend(view.plan.factors.first().and_then(|factor| dependence(view, factor)));
    if let Some(pair) = noise_floor::same_pair(&view.plan) {
        let [a, b] = pair.map(|index| view.treatments[index].label.as_str());
        out.push(format!(
            "{a} and {b} are the same treatment: what differs between them is noise."
        ));
    }
    out
}

/// Names the fastest of the ranked treatments, and others that may be as fast; none if no treatment
/// is ranked.
pub(super) fn ahead(view: &RunView) -> Option<String> {
    let mut measured = speed(view).ok()?;
    let all = measured.len();
    measured.retain(|(t, _)| t.not_ranked.is_none());
    let ((best, mean), (slowest, least)) =
        measured.first().copied().zip(measured.last().copied())?;
    let found = rate(view, best);
    let keeps =
        view.plan.find.as_ref().map_or_else(String::new, |find| format!(" that keep {}", find.slo));
    if measured.len() == 1 {
        let latency = best.latency_us.as_ref().map_or_else(String::new, |l| {
            format!(
                "; half of the transactions took at most {} ms, 99% at most {} ms",
                format::milliseconds(l.p50),
                format::milliseconds(l.p99)
            )
        });
        return Some(format!("{}: {found}{keeps}{latency}.", capital(&best.label)));
    }
    let equals: Vec<&TreatmentView> = measured[1..]
        .iter()
        .map(|(t, _)| *t)
        .filter(|t| t.ratio_to_best.as_ref().is_some_and(|r| r.significant != Some(true)))
        .collect();
    let so_far = so_far(view);
    let mut said = if equals.is_empty() {
        format!("{so_far}{} is fastest with {found}{keeps}", best.label)
    } else {
        format!("{so_far}{} is ahead with {found}{keeps}", best.label)
    };
    if equals.is_empty() && least > 0.0 {
        let ranked = if measured.len() < all { " of those ranked" } else { "" };
        said.push_str(&format!(
            ", {} times the slowest{ranked}, {}",
            format::times(mean / least),
            slowest.label
        ));
    } else if view.treatments.iter().all(|t| t.trials <= 1) {
        said.push_str(", but one repeat of each tells no difference from chance");
    } else if !so_far.is_empty() {
        said.push_str("; a verdict waits for the end of the run");
    } else {
        said.push_str(&beside(view, best, &equals));
    }
    if measured.iter().any(|(t, _)| t.generator_limited > 0) {
        said.push_str(" (in some trials the load generator may have been the limit)");
    }
    Some(format!("{said}."))
}

/// Names the treatments that may be the fastest, with the minimum detectable difference. Then it
/// names those without a verdict. `equals` do not differ significantly from the `best`.
fn beside(view: &RunView, best: &TreatmentView, equals: &[&TreatmentView]) -> String {
    let (alike, unknown): (Vec<&TreatmentView>, Vec<&TreatmentView>) = equals
        .iter()
        .partition(|t| t.ratio_to_best.as_ref().is_some_and(|r| r.significant.is_some()));
    let mut said = String::new();
    let mut fastest = vec![best];
    fastest.extend(alike.iter().filter(|t| t.may_be_best == Some(true)));
    if fastest.len() > 1 {
        let detectable =
            fastest.iter().filter_map(|t| t.ratio_to_best.as_ref()?.minimum_detectable);
        said = format!(
            "; the fastest is {} (95% confidence){}",
            names(&fastest, " or ", "one of "),
            minimum_detectable(detectable.reduce(f64::max))
        );
    } else if !alike.is_empty() {
        said = "; none of the others is faster (95% confidence)".to_owned();
    }
    if let Some(why) = unknown.first().and_then(|t| ratio_to_best(view, t)) {
        let names = names(&unknown, " and ", "");
        said.push_str(&format!("; beside {names} there is no verdict: {why}"));
    }
    said
}

/// Names the first three of `treatments`, and counts the others. `link` precedes the last name,
/// `of_more` the count.
fn names(treatments: &[&TreatmentView], link: &str, of_more: &str) -> String {
    let (some, more) = treatments.split_at(treatments.len().min(3));
    let mut names: Vec<String> = some.iter().map(|t| t.label.clone()).collect();
    if !more.is_empty() {
        names.push(format!("{of_more}{} more", more.len()));
    }
    let end = names.pop().unwrap_or_default();
    if names.is_empty() { end } else { format!("{}{link}{end}", names.join(", ")) }
}

/// Says what the factor's strongest change does under each combination of the other factors.
///
/// Returns none if no change is significant, unless `anyway`.
fn effect(view: &RunView, factor: &str, anyway: bool) -> Option<String> {
    const SHOWN: usize = 4;
    let size = |c: &Comparison| c.ratio.value.filter(|v| *v > 0.0).map_or(0.0, |v| v.ln().abs());
    let of_factor = || view.comparisons.iter().filter(|c| c.factor == factor);
    let strongest = of_factor()
        .filter(|c| c.ratio.significant == Some(true))
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
    let measure = view.measure();
    let say = |c: &Comparison| {
        let with = if c.given.is_empty() { String::new() } else { format!(" with {}", c.given) };
        match (c.ratio.value, c.ratio.significant) {
            (Some(value), Some(true)) => format!("{}× the {measure}{with}", format::times(value)),
            (_, Some(false)) => format!("no significant difference{with}"),
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
