//! How tps grows with the number of clients, and what bounds it.

use std::collections::BTreeSet;

use pgdyno_model::record::RunState;
use pgdyno_model::{Levels, Plan, Treatment};
use pgdyno_stats as stats;

use super::family::is_provisional;
use super::pairing::Pairing;
use super::treatment::TreatmentSamples;
use super::view::{PeakPlace, ScalingView};
use crate::prose;

/// The client sweeps of `plan`. A run in `state` that may still change has no peak yet.
pub(super) fn sweeps(plan: &Plan, state: RunState, sums: &[TreatmentSamples]) -> Vec<ScalingView> {
    let bare = |t: &Treatment| Treatment {
        levels: Levels(Vec::new()),
        clients: 0,
        threads: 0,
        ..t.clone()
    };
    let given = |t: &Treatment| {
        Levels(t.levels.0.iter().filter(|(name, _)| name != "clients").cloned().collect())
            .to_string()
    };
    let mut groups: Vec<(Treatment, String, Vec<usize>)> = Vec::new();
    for (index, t) in plan.treatments.iter().enumerate() {
        // With a rate, tps is what was asked for and not what the clients reach.
        if t.options.rate.is_some() || plan.find.is_some() {
            continue;
        }
        let (bare, given) = (bare(t), given(t));
        match groups.iter_mut().find(|(b, g, _)| *b == bare && *g == given) {
            Some((.., members)) => members.push(index),
            None => groups.push((bare, given, vec![index])),
        }
    }
    groups
        .into_iter()
        .filter(|(.., members)| {
            let clients: BTreeSet<u32> =
                members.iter().map(|i| plan.treatments[*i].clients).collect();
            clients.len() > 2
        })
        .map(|(_, given, treatments)| {
            let trials: Vec<(u32, u32, f64)> = treatments
                .iter()
                .flat_map(|i| {
                    sums[*i]
                        .tps
                        .iter()
                        .map(|(block, tps)| (*block, plan.treatments[*i].clients, *tps))
                })
                .collect();
            let law = stats::scaling(&trials);
            let peak = match is_provisional(plan, state) {
                true => None,
                false => peak(plan, &treatments, sums),
            };
            let words = prose::scaling(&given, law.as_ref(), peak.as_ref());
            ScalingView { given, treatments, law: law.ok(), peak, words }
        })
        .collect()
}

/// Finds where the highest tps of the treatments `members` lies, which differ in clients only; none
/// unless each of them has an interval.
///
/// A number of clients is left out if its ratio to the highest is significantly below 1. Each of
/// the n − 1 comparisons has the n − 1st part of 5% (Bonferroni), so that the true highest is left
/// out in at most 5% of sweeps.
fn peak(plan: &Plan, members: &[usize], sums: &[TreatmentSamples]) -> Option<PeakPlace> {
    let mut levels: Vec<(u32, &[(u32, f64)])> =
        members.iter().map(|i| (plan.treatments[*i].clients, sums[*i].tps.as_slice())).collect();
    levels.sort_by_key(|(clients, _)| *clients);
    #[allow(clippy::cast_precision_loss)]
    let mean =
        |tps: &[(u32, f64)]| tps.iter().map(|(_, tps)| tps).sum::<f64>() / tps.len().max(1) as f64;
    let (highest, best) = levels
        .iter()
        .filter(|(_, tps)| !tps.is_empty())
        .max_by(|a, b| mean(a.1).total_cmp(&mean(b.1)))
        .copied()?;
    #[allow(clippy::cast_precision_loss)]
    let share = 1.0 / (levels.len() - 1) as f64;
    let pairing = Pairing::of(plan);
    let mut beside = Vec::new();
    for (clients, tps) in levels.iter().filter(|(clients, _)| *clients != highest) {
        let [_, most] = pairing.ratio(tps, best).ci95_at(share)?;
        if most >= 1.0 {
            beside.push(*clients);
        }
    }
    Some(PeakPlace { highest, beside, measured: levels.iter().map(|(c, _)| *c).collect() })
}
