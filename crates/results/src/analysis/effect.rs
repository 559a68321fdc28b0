//! Effect of one level of a factor against another, under each combination of the other levels.

use pgdyno_model::Levels;

use super::family::{Family, Judged};
use super::question::asked_levels;
use super::view::{Comparison, RunView, TreatmentView};

/// Effect under one combination of the other factors' levels.
pub(crate) struct Effect {
    /// Levels of the other factors in one line; empty without any.
    pub(crate) given: String,
    /// Ratio of the level's measure to that of the level it is compared with.
    pub(crate) judged: Judged,
}

/// Returns the effect for each two treatments that differ in these levels alone.
pub(crate) fn effects(
    view: &RunView,
    family: &Family,
    factor: &str,
    level: &str,
    against: &str,
) -> Vec<Effect> {
    let has =
        |levels: &Levels, label: &str| levels.get(factor).is_some_and(|l| l.to_string() == label);
    let of = |t: &TreatmentView| {
        let given = t.factors.without(&[factor]);
        let other = view
            .treatments
            .iter()
            .find(|o| has(&o.factors, against) && o.factors.without(&[factor]) == given)?;
        Some(Effect { given: given.to_string(), judged: family.judged(t.index, other.index)? })
    };
    view.treatments.iter().filter(|t| has(&t.factors, level)).filter_map(of).collect()
}

/// Returns the comparisons between the two levels that the question is about; all comparisons of
/// the factor if the plan compares neither with the other.
pub(crate) fn asked_comparisons(view: &RunView) -> Vec<&Comparison> {
    let Some((factor, level, against)) = asked_levels(&view.plan) else { return Vec::new() };
    let label = |index: usize| Some(view.treatments.get(index)?.factors.get(&factor)?.to_string());
    let is_asked = |c: &&Comparison| {
        let (this, that) = (label(c.treatment), label(c.to));
        let both = [this.as_ref(), that.as_ref()];
        c.factor == factor && [&level, &against].iter().all(|wanted| both.contains(&Some(*wanted)))
    };
    let asked: Vec<&Comparison> = view.comparisons.iter().filter(is_asked).collect();
    if asked.is_empty() {
        return view.comparisons.iter().filter(|c| c.factor == factor).collect();
    }
    asked
}
