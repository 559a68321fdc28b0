//! Compares the treatments of a run: which differ, which are equivalent, which show no significant
//! difference.

use pgdyno_model::Plan;
use pgdyno_stats::Ratio;

use super::family::Family;
use crate::gate::Measure;
use crate::question::planned_pairs;
use crate::treatment::TreatmentSamples;
use crate::view::{Comparison, LatencyRatio, PERCENTILES, RatioView, TreatmentView};

/// Returns the index of the best treatment: the ranked one with the highest geometric mean. Ratios
/// are geometric means too, so that with all trials complete no candidate's ratio to it is above 1.
pub(crate) fn best(treatments: &[TreatmentView], sums: &[TreatmentSamples]) -> Option<usize> {
    let mean_log = |t: &TreatmentView| {
        let tps = &sums[t.index].tps;
        let count = tps.len() as f64;
        (!tps.is_empty() && tps.iter().all(|(_, v)| *v > 0.0))
            .then(|| tps.iter().map(|(_, v)| v.ln()).sum::<f64>() / count)
    };
    treatments
        .iter()
        .filter(|t| t.not_ranked.is_none())
        .filter_map(|t| Some((t.index, mean_log(t)?)))
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(index, _)| index)
}

/// Place of a treatment beside the best.
#[derive(Default)]
pub(crate) struct Standing {
    /// Whether it may be the fastest; none if it is not ranked, and without verdicts.
    pub(crate) may_be_best: Option<bool>,
    /// Ratio of its tps to that of the best; none without a completed trial.
    pub(crate) ratio_to_best: Option<RatioView>,
}

/// Returns each treatment's place beside `best`, in their order.
pub(crate) fn standings(
    treatments: &[TreatmentView],
    best: Option<usize>,
    family: &Family,
) -> Vec<Standing> {
    let is_candidate = |t: &&TreatmentView| t.trials > 0 && t.not_ranked.is_none();
    let candidates: Vec<usize> = treatments.iter().filter(is_candidate).map(|t| t.index).collect();
    let may_be_best = family.may_be_best(&candidates);
    let without = |value| RatioView { value, ..RatioView::default() };
    let standing = |t: &TreatmentView| {
        if t.trials == 0 {
            return Standing::default();
        }
        let all = may_be_best.as_ref().filter(|_| candidates.contains(&t.index));
        Standing {
            may_be_best: all.map(|all| all.contains(&t.index)),
            ratio_to_best: match best {
                None => Some(without(None)),
                Some(best) if best == t.index => Some(without(Some(1.0))),
                Some(best) => family.judged(t.index, best).map(|judged| RatioView::from(&judged)),
            },
        }
    };
    treatments.iter().map(standing).collect()
}

/// Compares every pair of `plan` that differs in one factor and was measured.
pub(crate) fn compare(plan: &Plan, sums: &[TreatmentSamples], family: &Family) -> Vec<Comparison> {
    // Each percentile is a family of its own.
    let of_percentile = |(name, _): &(&'static str, f64)| {
        let measure = Measure::from_name(name)?;
        let values = TreatmentSamples::all_values(sums, measure);
        Some((measure, Family::of_percentile(plan, &values)))
    };
    let families: Vec<(Measure, Family)> = PERCENTILES.iter().filter_map(of_percentile).collect();
    let comparison = |(factor, treatment, to): (&String, usize, usize)| {
        let judged = family.judged(treatment, to)?;
        let ratio = |measure: Measure| {
            let (_, family) = families.iter().find(|(known, _)| *known == measure)?;
            Some(family.judged(treatment, to)?.ratio)
        };
        Some(Comparison {
            factor: factor.clone(),
            given: plan.treatments[treatment].levels.without(&[factor]).to_string(),
            treatment,
            to,
            ratio: RatioView::from(&judged),
            holm: judged.significant(),
            latency: latency(ratio),
            generator_limited: sums[treatment].generator_limited + sums[to].generator_limited > 0,
        })
    };
    planned_pairs(plan).into_iter().filter_map(comparison).collect()
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
