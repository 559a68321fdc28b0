//! Treatments beside each other: which differ, which are equivalent, which cannot be told apart.

use pgdyno_model::{LevelValue, Plan, Treatment};

use super::treatment::Sums;
use super::view::{Comparison, LatencyRatio, PERCENTILES, RatioView, RunView, TreatmentView};
use super::{stopping, words};
use crate::stats::{self, Looks, Ratio};

/// The chance of any wrong verdict that a family of comparisons is allowed.
pub(super) const ALPHA: f64 = 1.0 - stats::CONFIDENCE;

/// How two treatments' (block, value) come to a ratio.
pub(super) enum Pairing {
    /// Within blocks, whose number was fixed.
    Blocks,
    /// Within blocks of a run that was looked at while it went on.
    Looks(Looks),
    /// Of two runs, with the looks that either had.
    Unpaired(Option<Looks>, Option<Looks>),
}

impl Pairing {
    /// That of treatments of one run.
    pub(super) fn of(plan: &Plan) -> Self {
        stopping::looks(plan).map_or(Self::Blocks, Self::Looks)
    }

    /// That of a run's treatment over another run's.
    pub(super) fn across(this: &Plan, that: &Plan) -> Self {
        Self::Unpaired(stopping::looks(this), stopping::looks(that))
    }

    /// `a` over `b`.
    pub(super) fn ratio(&self, a: &[(u32, f64)], b: &[(u32, f64)]) -> Ratio {
        match self {
            Self::Blocks => stats::ratio(a, b),
            Self::Looks(looks) => stats::ratio_over(looks, a, b),
            Self::Unpaired(..) => stats::unpaired_ratio_at(self.share(a, b), a, b),
        }
    }

    pub(super) fn is_paired(&self) -> bool {
        !matches!(self, Self::Unpaired(..))
    }

    /// The share of the chance of a wrong interval that one from these trials may spend.
    pub(super) fn share(&self, a: &[(u32, f64)], b: &[(u32, f64)]) -> f64 {
        let of = |looks: &Option<Looks>, trials: &[(u32, f64)]| {
            looks.as_ref().map_or(1.0, |looks| looks.share(count(trials.len())))
        };
        match self {
            Self::Blocks => 1.0,
            Self::Looks(looks) => looks.share(count(a.len().min(b.len()))),
            Self::Unpaired(this, that) => of(this, a).min(of(that, b)),
        }
    }
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// A ratio, judged together with all others of its family.
pub(super) struct Judged {
    pub(super) ratio: Ratio,
    /// Comparisons that are judged together (count).
    pub(super) comparisons: usize,
    /// The p-value when they are; none without an interval.
    pub(super) p: Option<f64>,
    /// What it is a ratio of: `tps`, or `maximum rate`.
    pub(super) measure: &'static str,
    /// The margin, and the p-value of a difference as large as it or larger, judged likewise.
    pub(super) equivalence: Option<(f64, f64)>,
}

impl Judged {
    /// Whether the two differ; none without an interval.
    pub(super) fn told_apart(&self) -> Option<bool> {
        self.p.map(|p| p <= ALPHA)
    }

    /// Whether they differ by less than the margin; none without an interval or margin.
    pub(super) fn equivalent(&self) -> Option<bool> {
        self.equivalence.map(|(_, p)| p <= ALPHA)
    }

    /// The smallest true difference that would have been found in most such runs.
    pub(super) fn detectable(&self) -> Option<f64> {
        self.ratio.detectable(self.comparisons)
    }
}

/// What `plan`'s treatments are compared by.
pub(super) fn measure(plan: &Plan) -> &'static str {
    if plan.find.is_some() { "maximum rate" } else { "tps" }
}

/// Judges `ratios` of `plan`'s treatments together. Those without an interval were not tested and do not make the others' verdicts stricter.
pub(super) fn judge(ratios: Vec<Ratio>, plan: &Plan, margin: Option<f64>) -> Vec<Judged> {
    let measure = measure(plan);
    let p: Vec<f64> = ratios.iter().filter_map(|ratio| ratio.p).collect();
    let comparisons = p.len();
    let mut together = stats::holm(&p).into_iter();
    let equivalence = |ratio: &Ratio| margin.and_then(|margin| Some((margin, ratio.equivalence_p(margin)?)));
    let alone: Vec<Option<(f64, f64)>> = ratios.iter().map(equivalence).collect();
    let p: Vec<f64> = alone.iter().flatten().map(|(_, p)| *p).collect();
    let mut equivalent = stats::holm(&p).into_iter();
    ratios
        .into_iter()
        .zip(alone)
        .map(|(ratio, alone)| Judged {
            comparisons,
            measure,
            p: ratio.p.and_then(|_| together.next()),
            equivalence: alone.and_then(|(margin, _)| Some((margin, equivalent.next()?))),
            ratio,
        })
        .collect()
}

/// Fills in every treatment's ratio to the best. The best has the highest geometric mean: ratios are geometric means
/// too, so that with all trials complete none is above 1. Since the data chose it, each ratio is judged together with
/// those of all pairs.
pub(super) fn rank(view: &mut RunView, sums: &[Sums]) {
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
        .filter_map(|t| Some((t.index, mean_log(t)?)))
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(index, _)| index);
    view.best = best;
    let measured: Vec<usize> = view.treatments.iter().filter(|t| t.trials > 0).map(|t| t.index).collect();
    // Those with the best first: where nothing can be formed there is no best and nothing to judge.
    let with_best = |a: usize, b: usize| best.filter(|best| *best == a || *best == b);
    let pairs: Vec<(usize, usize)> = measured
        .iter()
        .flat_map(|a| measured.iter().map(move |b| (*a, *b)))
        .filter(|(a, b)| a < b)
        .map(|(a, b)| if with_best(a, b) == Some(a) { (b, a) } else { (a, b) })
        .collect();
    let pairing = Pairing::of(&view.plan);
    let ratios = pairs.iter().map(|(a, b)| pairing.ratio(&sums[*a].tps, &sums[*b].tps)).collect();
    let judged = judge(ratios, &view.plan, view.plan.margin);
    for t in view.treatments.iter_mut().filter(|t| t.trials > 0) {
        let without =
            |value, verdict: &str| RatioView { value, verdict: verdict.into(), ..RatioView::default() };
        t.ratio_to_best = match best {
            None => Some(without(None, "no transaction was completed, so that no ratio can be formed")),
            Some(best) if best == t.index => Some(without(Some(1.0), "the best: the highest geometric mean")),
            Some(best) => pairs
                .iter()
                .zip(&judged)
                .find(|(pair, _)| **pair == (t.index, best))
                .map(|(_, judged)| words::ratio_to_best(judged, limited(sums, t.index, best))),
        };
    }
}

/// For every factor: each treatment and the one that differs in that factor only and has its first level.
pub(super) fn planned_pairs(plan: &Plan) -> Vec<(&String, usize, usize)> {
    let mut pairs = Vec::new();
    for factor in &plan.factors {
        for (index, t) in plan.treatments.iter().enumerate() {
            if let Some(first) = plan.treatments.iter().position(|o| alike_but(factor, o, t))
                && first != index
            {
                pairs.push((factor, index, first));
            }
        }
    }
    pairs
}

/// Every such pair that was measured.
pub(super) fn compare(view: &RunView, sums: &[Sums]) -> Vec<Comparison> {
    let measured = |t: &usize| !sums[*t].tps.is_empty();
    let mut pairs = planned_pairs(&view.plan);
    pairs.retain(|(_, a, b)| measured(a) && measured(b));
    let pairing = Pairing::of(&view.plan);
    let ratios = pairs.iter().map(|(_, a, b)| pairing.ratio(&sums[*a].tps, &sums[*b].tps)).collect();
    judge(ratios, &view.plan, view.plan.margin)
        .iter()
        .zip(pairs)
        .map(|(judged, (factor, treatment, to))| {
            let levels = |index: usize| &view.plan.treatments[index].levels;
            let words = words::comparison(
                factor,
                (treatment, levels(treatment)),
                (to, levels(to)),
                judged,
                limited(sums, treatment, to),
            );
            Comparison { latency: latency(&sums[treatment], &sums[to], &pairing), ..words }
        })
        .collect()
}

/// Whether a trial of either treatment may have measured the load generator.
fn limited(sums: &[Sums], a: usize, b: usize) -> bool {
    sums[a].generator_limited + sums[b].generator_limited > 0
}

/// The ratios of the percentiles of latency, where both have any.
pub(super) fn latency(a: &Sums, b: &Sums, pairing: &Pairing) -> Vec<LatencyRatio> {
    let of = |(i, (name, _)): (usize, &(&'static str, f64))| {
        let ratio = pairing.ratio(&a.percentiles[i], &b.percentiles[i]);
        Some(LatencyRatio { percentile: name, value: ratio.value?, ci95: ratio.ci95, method: ratio.method })
    };
    PERCENTILES.iter().enumerate().filter_map(of).collect()
}

/// Whether two treatments agree in all factors but `factor`.
fn alike_but(factor: &str, a: &Treatment, b: &Treatment) -> bool {
    let others = |t: &Treatment| -> Vec<(String, LevelValue)> {
        t.levels.0.iter().filter(|(name, _)| name != factor).cloned().collect()
    };
    others(a) == others(b)
}
