//! Effect of one level of a factor against another, under each combination of the other levels.

use pgdyno_model::Plan;

use super::question::{asked_levels, effect_pairs};
use super::view::{Comparison, Effect, RatioView, RunView};
use crate::comparison::family::Family;

/// Returns the effect for each two treatments that differ in the asked levels of `factor` alone.
///
/// Empty without such a question.
pub(crate) fn effects(plan: &Plan, family: &Family) -> Vec<Effect> {
    let Some((factor, ..)) = asked_levels(plan) else { return Vec::new() };
    let effect = |(this, that): (usize, usize)| {
        let given = plan.treatments[this].levels.without(&[&factor]).to_string();
        Some(Effect { given, ratio: RatioView::from(&family.judged(this, that)?) })
    };
    effect_pairs(plan).into_iter().filter_map(effect).collect()
}

/// Returns the comparisons between the two levels that the question is about; all comparisons of
/// the factor if the plan compares neither with the other.
pub fn asked_comparisons(view: &RunView) -> Vec<&Comparison> {
    let Some((factor, ..)) = asked_levels(&view.plan) else { return Vec::new() };
    let pairs = effect_pairs(&view.plan);
    let is_asked = |c: &&Comparison| {
        pairs.contains(&(c.treatment, c.to)) || pairs.contains(&(c.to, c.treatment))
    };
    let asked: Vec<&Comparison> = view.comparisons.iter().filter(is_asked).collect();
    if asked.is_empty() {
        return view.comparisons.iter().filter(|c| c.factor == factor).collect();
    }
    asked
}
