//! Ratios of any two treatments of a run.

use super::family::{Family, Judged, planned_pairs};
use super::view::{PairRow, PairsView, RunView};

/// Most treatments of which every pair is kept: 2,016 pairs.
const MOST: usize = 64;

/// Returns the ratios of the run's treatments, as far as a page needs them.
///
/// A ratio to the best is corrected for the fact that the data chose the best, as
/// `ratio_to_best` of a treatment is, unless the plan compares the two.
pub(super) fn pairs(view: &RunView, family: &Family) -> PairsView {
    let count = view.treatments.len();
    let complete = count <= MOST;
    let planned: Vec<(usize, usize)> =
        planned_pairs(&view.plan).into_iter().map(|(_, a, b)| (a.min(b), a.max(b))).collect();
    let with_best = (0..count)
        .filter_map(|other| view.best.map(|best| (best.min(other), best.max(other))))
        .filter(|(a, b)| a != b);
    let mut wanted: Vec<(usize, usize)> = if complete {
        (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b))).collect()
    } else {
        with_best.chain(planned.iter().copied()).collect()
    };
    wanted.sort_unstable();
    wanted.dedup();
    let measured = view.treatments.iter().filter(|t| t.trials > 0).count();
    let judged = |(a, b): (usize, usize)| -> Option<Judged> {
        let judged = family.judged(b, a)?;
        let is_with_best = view.best == Some(a) || view.best == Some(b);
        let is_chosen = is_with_best && !planned.contains(&(a, b));
        Some(if is_chosen { judged.beside_the_best(measured) } else { judged })
    };
    let row = |pair: (usize, usize)| {
        let judged = judged(pair)?;
        let [low, high] = judged.ratio.ci95.map_or([None; 2], |ci95| ci95.map(Some));
        let significant = judged.significant();
        Some(PairRow(pair.0, pair.1, judged.ratio.value?, low, high, judged.p, significant))
    };
    PairsView { treatments: count, rows: wanted.into_iter().filter_map(row).collect(), complete }
}
