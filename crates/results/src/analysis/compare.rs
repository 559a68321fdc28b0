//! Treatments beside each other: which differ, which are equivalent, which cannot be told apart.

use pgdyno_stats::Ratio;

use super::family::Family;
use super::question::planned_pairs;
use super::treatment::TreatmentSamples;
use super::view::{Comparison, LatencyRatio, PERCENTILES, RatioView, RunView, TreatmentView};
use crate::gate::Measure;
use crate::prose;

/// Fills in the best of `candidates` and every treatment's ratio to it. The best has the highest
/// geometric mean: ratios are geometric means too, so that with all trials complete none of a
/// candidate's is above 1.
pub(super) fn rank(view: &mut RunView, sums: &[TreatmentSamples], family: &Family) {
    let mean_log = |t: &TreatmentView| {
        let tps = &sums[t.index].tps;
        #[allow(clippy::cast_precision_loss)]
        let count = tps.len() as f64;
        (!tps.is_empty() && tps.iter().all(|(_, v)| *v > 0.0))
            .then(|| tps.iter().map(|(_, v)| v.ln()).sum::<f64>() / count)
    };
    let best = view
        .treatments
        .iter()
        .filter(|t| t.not_ranked.is_none())
        .filter_map(|t| Some((t.index, mean_log(t)?)))
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(index, _)| index);
    view.best = best;
    let is_candidate = |t: &&TreatmentView| t.trials > 0 && t.not_ranked.is_none();
    let candidates: Vec<usize> =
        view.treatments.iter().filter(is_candidate).map(|t| t.index).collect();
    let may_be_best = family.may_be_best(&candidates);
    for t in view.treatments.iter_mut().filter(|t| t.trials > 0) {
        let without = |value, verdict: &str| RatioView {
            value,
            verdict: verdict.into(),
            ..RatioView::default()
        };
        let is_candidate = candidates.contains(&t.index);
        t.may_be_best =
            may_be_best.as_ref().filter(|_| is_candidate).map(|all| all.contains(&t.index));
        t.ratio_to_best = match best {
            None => {
                Some(without(None, "no transaction was completed, so that no ratio can be formed"))
            }
            Some(best) if best == t.index => {
                Some(without(Some(1.0), "the best: the highest geometric mean"))
            }
            Some(best) => family
                .judged(t.index, best)
                .map(|judged| prose::ratio_to_best(&judged, limited(sums, t.index, best))),
        };
    }
}

/// Every such pair that was measured.
pub(super) fn compare(
    view: &RunView,
    sums: &[TreatmentSamples],
    family: &Family,
) -> Vec<Comparison> {
    // Each percentile is a family of its own.
    let of_percentile = |(name, _): &(&'static str, f64)| {
        let measure = Measure::from_name(name)?;
        let values = TreatmentSamples::all_values(sums, measure);
        Some((measure, Family::of_percentile(&view.plan, &values)))
    };
    let families: Vec<(Measure, Family)> = PERCENTILES.iter().filter_map(of_percentile).collect();
    let comparison = |(factor, treatment, to): (&String, usize, usize)| {
        let judged = family.judged(treatment, to)?;
        let levels = |index: usize| &view.plan.treatments[index].levels;
        let words = prose::comparison(
            factor,
            (treatment, levels(treatment)),
            (to, levels(to)),
            &judged,
            limited(sums, treatment, to),
        );
        let ratio = |measure: Measure| {
            let (_, family) = families.iter().find(|(known, _)| *known == measure)?;
            Some(family.judged(treatment, to)?.ratio)
        };
        Some(Comparison { latency: latency(ratio), ..words })
    };
    planned_pairs(&view.plan).into_iter().filter_map(comparison).collect()
}

/// Whether a trial of either treatment may have measured the load generator.
fn limited(sums: &[TreatmentSamples], a: usize, b: usize) -> bool {
    sums[a].generator_limited + sums[b].generator_limited > 0
}

/// The percentiles of latency that `ratio` forms a ratio of.
pub(super) fn latency(ratio: impl Fn(Measure) -> Option<Ratio>) -> Vec<LatencyRatio> {
    let of = |(name, _): &(&'static str, f64)| {
        let ratio = ratio(Measure::from_name(name)?)?;
        Some(LatencyRatio {
            percentile: name,
            value: ratio.value?,
            ci95: ratio.ci95,
            method: ratio.method,
        })
    };
    PERCENTILES.iter().filter_map(of).collect()
}
