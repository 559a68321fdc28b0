//! Ratios of any two treatments of a run.

use pgdyno_model::Plan;

use super::family::Family;
use crate::question::planned_pairs;
use crate::view::{PairRow, PairsView};

/// Most treatments of which every pair is kept: 2,016 pairs.
const MOST: usize = 64;

/// Returns the ratios of the run's treatments, as far as a page needs them.
pub(crate) fn pairs(plan: &Plan, best: Option<usize>, family: &Family) -> PairsView {
    let count = plan.treatments.len();
    let complete = count <= MOST;
    let planned: Vec<(usize, usize)> =
        planned_pairs(plan).into_iter().map(|(_, a, b)| (a.min(b), a.max(b))).collect();
    let with_best = (0..count)
        .filter_map(|other| best.map(|best| (best.min(other), best.max(other))))
        .filter(|(a, b)| a != b);
    let mut wanted: Vec<(usize, usize)> = if complete {
        (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b))).collect()
    } else {
        with_best.chain(planned.iter().copied()).collect()
    };
    wanted.sort_unstable();
    wanted.dedup();
    let row = |pair: (usize, usize)| {
        let judged = family.judged(pair.1, pair.0)?;
        let [low, high] = judged.ratio.ci95.map_or([None; 2], |ci95| ci95.map(Some));
        let significant = judged.significant();
        Some(PairRow(pair.0, pair.1, judged.ratio.value?, low, high, judged.p, significant))
    };
    PairsView { treatments: count, rows: wanted.into_iter().filter_map(row).collect(), complete }
}
