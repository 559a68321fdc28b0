//! Pairs of treatments that a plan compares, and those that its question is about.

use std::collections::BTreeSet;

use pgdyno_model::{AnswerKind, Plan};

/// Pairs, for every factor, each treatment with the one that differs in that factor only and has
/// its first level.
pub(crate) fn planned_pairs(plan: &Plan) -> Vec<(&String, usize, usize)> {
    let mut pairs = Vec::new();
    for factor in &plan.factors {
        for (index, t) in plan.treatments.iter().enumerate() {
            let given = t.levels.without(&[factor]);
            let is_alike =
                |other: &pgdyno_model::Treatment| other.levels.without(&[factor]) == given;
            if let Some(first) = plan.treatments.iter().position(is_alike)
                && first != index
            {
                pairs.push((factor, index, first));
            }
        }
    }
    pairs
}

/// Returns the factor, the level whose effect is asked for, and the level it is compared with; none
/// if no treatment has them.
pub fn asked_levels(plan: &Plan) -> Option<(String, String, String)> {
    let answer = plan.answer.as_ref()?;
    let labels = |factor: &String| -> Vec<String> {
        plan.levels(factor).iter().map(ToString::to_string).collect()
    };
    let is_meant = |labels: &[String]| {
        [&answer.level, &answer.against].into_iter().flatten().all(|wanted| labels.contains(wanted))
    };
    let (factor, labels) =
        plan.factors.iter().map(|f| (f, labels(f))).find(|(_, labels)| is_meant(labels))?;
    let level = answer.level.clone().or_else(|| labels.last().cloned())?;
    let against = answer.against.clone().or_else(|| labels.first().cloned())?;
    (level != against).then(|| (factor.clone(), level, against))
}

/// Returns the pairs of treatments (lower index first) that the question of `plan` is about; none
/// if it is about all.
///
/// A run that may end by itself is about the pairs that it decides, another one about the effect
/// that is asked for.
pub fn asked_pairs(plan: &Plan) -> BTreeSet<(usize, usize)> {
    let ordered = |(a, b): (usize, usize)| (a.min(b), a.max(b));
    if plan.stopping.is_some() {
        return planned_pairs(plan).into_iter().map(|(_, a, b)| ordered((a, b))).collect();
    }
    effect_pairs(plan).into_iter().map(ordered).collect()
}

/// Returns the pairs of treatments (with the level whose effect is asked for, with the other) that
/// differ in these levels alone; none where no effect is asked for.
pub(super) fn effect_pairs(plan: &Plan) -> Vec<(usize, usize)> {
    let is_effect = plan.answer.as_ref().is_some_and(|it| it.kind == AnswerKind::Effect);
    let Some((factor, level, against)) = asked_levels(plan).filter(|_| is_effect) else {
        return Vec::new();
    };
    let with = |label: &str| -> Vec<usize> {
        let has = |t: &usize| {
            let level = plan.treatments[*t].levels.get(&factor);
            level.is_some_and(|level| level.to_string() == label)
        };
        (0..plan.treatments.len()).filter(has).collect()
    };
    let (these, those) = (with(&level), with(&against));
    let given = |t: usize| plan.treatments[t].levels.without(&[&factor]);
    let pair = |this: &usize| {
        let that = those.iter().find(|that| given(**that) == given(*this))?;
        Some((*this, *that))
    };
    these.iter().filter_map(pair).collect()
}
