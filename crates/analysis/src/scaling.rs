//! Fits how tps grows with the number of clients, and what bounds it.

use std::collections::BTreeSet;

use pgdyno_model::{Levels, Plan, Treatment};
use pgdyno_stats as stats;

use super::treatment::TreatmentSamples;
use super::view::ScalingView;

/// The client sweeps of `plan`.
pub(super) fn sweeps(plan: &Plan, sums: &[TreatmentSamples]) -> Vec<ScalingView> {
    let bare = |t: &Treatment| Treatment {
        levels: Levels(Vec::new()),
        clients: 0,
        threads: 0,
        ..t.clone()
    };
    let given = |t: &Treatment| t.levels.without(&["clients"]).to_string();
    let mut groups: Vec<(Treatment, String, Vec<usize>)> = Vec::new();
    for (index, t) in plan.treatments.iter().enumerate() {
        // With a rate, tps is what was asked for and not what the clients reach.
        if !t.is_closed_loop() || !t.groups.is_empty() || plan.find.is_some() {
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
            ScalingView { given, treatments, law: stats::scaling(&trials) }
        })
        .collect()
}
