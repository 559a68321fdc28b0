//! Effect of one level of a factor against another, under each combination of the other levels.

use pgdyno_model::Levels;

use super::family::{Family, Judged};
use super::view::{Comparison, RunView, TreatmentView};

/// Effect under one combination of the other factors' levels.
pub(crate) struct Effect {
    /// Levels of the other factors in one line; empty without any.
    pub(crate) given: String,
    /// Ratio of the level's measure to that of the level it is compared with.
    pub(crate) judged: Judged,
}

/// Returns the factor, the level whose effect is asked for, and the level it is compared with; none
/// if no treatment has them.
pub(crate) fn asked_levels(view: &RunView) -> Option<(String, String, String)> {
    let answer = view.plan.answer.as_ref()?;
    let of = |factor: &String| -> Vec<String> {
        let mut labels: Vec<String> = Vec::new();
        for t in &view.treatments {
            let label = t
                .factors
                .get(factor)
                .map(ToString::to_string)
                .filter(|label| !labels.contains(label));
            labels.extend(label);
        }
        labels
    };
    let is_meant = |labels: &[String]| {
        [&answer.level, &answer.against].into_iter().flatten().all(|wanted| labels.contains(wanted))
    };
    let (factor, labels) =
        view.plan.factors.iter().map(|f| (f, of(f))).find(|(_, labels)| is_meant(labels))?;
    let level = answer.level.clone().or_else(|| labels.last().cloned())?;
    let against = answer.against.clone().or_else(|| labels.first().cloned())?;
    (level != against).then(|| (factor.clone(), level, against))
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
    let others = |levels: &Levels| {
        Levels(levels.0.iter().filter(|(name, _)| name != factor).cloned().collect())
    };
    let of = |t: &TreatmentView| {
        let given = others(&t.factors);
        let other = view
            .treatments
            .iter()
            .find(|o| has(&o.factors, against) && others(&o.factors) == given)?;
        Some(Effect { given: given.to_string(), judged: family.judged(t.index, other.index)? })
    };
    view.treatments.iter().filter(|t| has(&t.factors, level)).filter_map(of).collect()
}

/// Returns the comparisons between the two levels that the question is about; all comparisons of
/// the factor if the plan compares neither with the other.
pub(crate) fn asked_comparisons(view: &RunView) -> Vec<&Comparison> {
    let Some((factor, level, against)) = asked_levels(view) else { return Vec::new() };
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
