//! A run that ends by itself: which comparisons are still open, and why it ended.

use std::collections::BTreeSet;

use pgdyno_model::live::Outlook;
use pgdyno_model::record::RunState;
use pgdyno_model::{Plan, Stopping};
use pgdyno_stats as stats;

use super::question::planned_pairs;
use super::treatment::TreatmentSamples;
use super::view::{Compared, Decision, Ended, StoppingView};
use crate::comparison::family::Family;
use crate::comparison::pairing::{Pairing, interim_analyses};

/// The treatments that block `block` is to measure, by what the blocks before it found: (block,
/// tps) of each treatment's completed trials. None are left when all comparisons are decided. A
/// plan of fixed repeats wants all of them always.
pub fn wanted(plan: &Plan, tps: &[Vec<(u32, f64)>], block: u32) -> BTreeSet<usize> {
    let mut wanted: BTreeSet<usize> = (0..plan.treatments.len()).collect();
    let (Some(stopping), Some(looks)) = (&plan.stopping, interim_analyses(plan)) else {
        return wanted;
    };
    for look in looks.at().iter().filter(|look| **look < block) {
        let until: Vec<Vec<(u32, f64)>> = tps
            .iter()
            .map(|all| all.iter().filter(|(b, _)| b <= look).copied().collect())
            .collect();
        let open = open(plan, stopping, &until);
        // Who was let go stays so.
        wanted.retain(|t| open.contains(t));
    }
    wanted
}

/// Returns how the comparisons stand after block `block`, and how many more blocks they take until
/// all are decided; none for a plan of fixed repeats. `tps` is as in [`wanted`].
///
/// The forecast supposes that the blocks to come repeat those so far, in turn: the measured
/// differences stay what they are, and so does the spread s of the blocks. Student's interval
/// t·s/√n then narrows with the blocks n, at each interim analysis with the quantile t of its
/// freedom and of its share of the 5%. The first analysis that leaves nothing open under the rule
/// of [`wanted`] is the answer. This is the projection under the current trend of K. K. G. Lan and
/// J. Wittes, *The B-value: a tool for monitoring data*, Biometrics 44 (1988).
pub fn outlook(plan: &Plan, tps: &[Vec<(u32, f64)>], block: u32) -> Option<Outlook> {
    let (stopping, looks) = (plan.stopping.as_ref()?, interim_analyses(plan)?);
    let pairs = planned_pairs(plan);
    let decisions = match pairs.is_empty() {
        true => (0..plan.treatments.len()).map(|t| alone(plan, stopping, &tps[t])).collect(),
        false => states(plan, stopping, &pairs, tps),
    };
    let open = decisions.iter().filter(|decision| **decision == Decision::Open).count();
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Some(Outlook {
        blocks: block,
        decided: count(decisions.len() - open),
        comparisons: count(decisions.len()),
        blocks_left: blocks_left(plan, looks.at(), tps, block),
        ceiling: stopping.ceiling,
    })
}

/// Returns the blocks from `block` to the analysis that decides everything, if the blocks so far
/// repeat; none before two blocks, or if something stays open at the last analysis.
fn blocks_left(plan: &Plan, looks: &[u32], tps: &[Vec<(u32, f64)>], block: u32) -> Option<u32> {
    if block < 2 {
        return None;
    }
    if wanted(plan, tps, block + 1).is_empty() {
        return Some(0);
    }
    let mut all = tps.to_vec();
    for next in block + 1..=looks.last().copied()? {
        let source = (next - 1) % block + 1;
        for trials in &mut all {
            let repeated = trials.iter().find(|(b, _)| *b == source).map(|(_, tps)| (next, *tps));
            trials.extend(repeated);
        }
        if looks.contains(&next) && wanted(plan, &all, next + 1).is_empty() {
            return Some(next - block);
        }
    }
    None
}

/// The treatments of comparisons that `tps` leaves open.
fn open(plan: &Plan, stopping: &Stopping, tps: &[Vec<(u32, f64)>]) -> BTreeSet<usize> {
    let pairs = planned_pairs(plan);
    if pairs.is_empty() {
        let open = (0..plan.treatments.len())
            .filter(|t| alone(plan, stopping, &tps[*t]) == Decision::Open);
        return open.collect();
    }
    let states = states(plan, stopping, &pairs, tps);
    pairs
        .iter()
        .zip(states)
        .filter(|(_, state)| *state == Decision::Open)
        .flat_map(|((_, a, b), _)| [*a, *b])
        .collect()
}

/// Judges a run that compares nothing: whether the treatment's own mean is known well enough.
fn alone(plan: &Plan, stopping: &Stopping, tps: &[(u32, f64)]) -> Decision {
    if tps.is_empty() {
        return Decision::Nothing;
    }
    let values: Vec<f64> = tps.iter().map(|(_, tps)| *tps).collect();
    let estimate = stats::mean_ci95_at(Pairing::within(plan).share(tps, tps), &values);
    let half = estimate.mean.zip(estimate.ci95).map(|(mean, [lo, hi])| (hi - lo) / 2.0 / mean);
    match (half, stopping.precision) {
        (Some(half), Some(precision)) if half <= precision => Decision::Precise,
        _ => Decision::Open,
    }
}

fn states(
    plan: &Plan,
    stopping: &Stopping,
    pairs: &[(&String, usize, usize)],
    tps: &[Vec<(u32, f64)>],
) -> Vec<Decision> {
    let values: Vec<&[(u32, f64)]> = tps.iter().map(Vec::as_slice).collect();
    let family = Family::new(plan, &values);
    let state = |(_, a, b): &(&String, usize, usize)| {
        let Some(judged) = family.judged(*a, *b) else { return Decision::Nothing };
        let half = judged.ratio.ci95.map(|[lo, hi]| (hi / lo).sqrt() - 1.0);
        if judged.significant() == Some(true) {
            Decision::Different
        } else if judged.equivalent() == Some(true) {
            Decision::Equivalent
        } else if half.zip(stopping.precision).is_some_and(|(half, precision)| half <= precision) {
            Decision::Precise
        } else {
            Decision::Open
        }
    };
    pairs.iter().map(state).collect()
}

/// Returns where a run in `state` stands; none for one of fixed repeats.
pub(super) fn view(
    plan: &Plan,
    state: RunState,
    sums: &[TreatmentSamples],
) -> Option<StoppingView> {
    let stopping = plan.stopping.as_ref()?;
    let tps: Vec<Vec<(u32, f64)>> = sums.iter().map(|s| s.tps.clone()).collect();
    let pairs = planned_pairs(plan);
    let states: Vec<(Compared, Decision)> = if pairs.is_empty() {
        let alone = |t: usize| (Compared::Alone(t), alone(plan, stopping, &tps[t]));
        (0..plan.treatments.len()).map(alone).collect()
    } else {
        let compared = pairs.iter().map(|(_, a, b)| Compared::With(*a, *b));
        compared.zip(states(plan, stopping, &pairs, &tps)).collect()
    };
    let blocks = tps.iter().flatten().map(|(block, _)| *block).max().unwrap_or(0);
    let open = states.iter().filter(|(_, state)| *state == Decision::Open).count();
    let ended = (state == RunState::Completed).then_some(if open == 0 {
        Ended::Decided
    } else if blocks >= stopping.ceiling {
        Ended::Ceiling
    } else {
        Ended::Budget
    });
    Some(StoppingView {
        floor: stopping.floor,
        ceiling: stopping.ceiling,
        looks: stats::InterimAnalyses::between(stopping.floor, stopping.ceiling).at().to_vec(),
        blocks,
        decided: states.len() - open,
        states,
        ended,
    })
}
