//! Families of comparisons: ratios that are judged together.

use std::collections::{BTreeMap, BTreeSet};

use pgdyno_model::record::RunState;
use pgdyno_model::{NoisePrior, Plan};
use pgdyno_stats::{self as stats, Ratio};

use super::pairing::{design, interim_analyses};
use crate::gate::Measure;
use crate::question::asked_pairs;
use crate::treatment::TreatmentSamples;
use crate::view::{RatioView, Withheld};

/// Chance of any false difference in a family of comparisons.
pub(crate) const ALPHA: f64 = 1.0 - stats::CONFIDENCE;

/// Ratio that was judged together with all others of its family.
#[derive(Clone)]
pub(crate) struct Judged {
    pub(crate) ratio: Ratio,
    /// Share of the family's 5% at which this ratio alone would be judged as strictly.
    pub(crate) share: f64,
    /// Joint p-value; none without an interval.
    pub(crate) p: Option<f64>,
    /// Measure: `tps` or `maximum rate`.
    pub(crate) measure: &'static str,
    /// Margin of equivalence, and the joint p-value of a difference at least as large.
    pub(crate) equivalence: Option<(f64, f64)>,
    /// Reason for withholding the verdict although there is an interval.
    pub(crate) withheld: Option<Withheld>,
}

impl Judged {
    /// Returns whether the difference is significant; none without an interval or verdict.
    pub(crate) fn significant(&self) -> Option<bool> {
        self.p.filter(|_| self.withheld.is_none()).map(|p| p <= ALPHA)
    }

    /// Returns whether the two are equivalent within the margin; none without interval, margin or
    /// verdict.
    pub(crate) fn equivalent(&self) -> Option<bool> {
        self.equivalence.filter(|_| self.withheld.is_none()).map(|(_, p)| p <= ALPHA)
    }

    /// Returns the minimum detectable effect (a share).
    pub(crate) fn minimum_detectable(&self) -> Option<f64> {
        self.ratio.minimum_detectable_at(self.share)
    }

    /// Returns the inverse ratio with its verdict.
    fn inverse(&self) -> Self {
        Self { ratio: self.ratio.inverse(), ..self.clone() }
    }
}

impl From<&Judged> for RatioView {
    fn from(judged: &Judged) -> Self {
        let ratio = &judged.ratio;
        Self {
            value: ratio.value,
            ci95: ratio.ci95,
            within_runs: None,
            method: ratio.method,
            p: ratio.p,
            p_together: judged.p,
            significant: judged.significant(),
            withheld: judged.withheld,
            why: ratio.why,
            measure: judged.measure,
            margin: judged.equivalence.map(|(margin, _)| margin),
            equivalent: judged.equivalent(),
            minimum_detectable: judged.minimum_detectable(),
        }
    }
}

/// Returns the measure that compares the treatments of `plan`.
pub(crate) fn measure(plan: &Plan) -> &'static str {
    if plan.find.is_some() { "maximum rate" } else { "tps" }
}

/// Judges `ratios` together by Holm's rule, each with the interval of its own.
///
/// A ratio without an interval was not tested, and does not make the other verdicts stricter.
pub(crate) fn judge(ratios: Vec<Ratio>, measure: &'static str, margin: Option<f64>) -> Vec<Judged> {
    let p: Vec<f64> = ratios.iter().filter_map(|ratio| ratio.p).collect();
    let share = 1.0 / p.len().max(1) as f64;
    let mut together = stats::holm(&p).into_iter();
    let equivalences = equivalences(&ratios, margin);
    ratios
        .into_iter()
        .zip(equivalences)
        .map(|(ratio, equivalence)| Judged {
            share,
            measure,
            p: ratio.p.and_then(|_| together.next()),
            equivalence,
            ratio,
            withheld: None,
        })
        .collect()
}

/// Returns the `margin` with the joint p-value of a difference at least as large (Holm); none for a
/// ratio without an interval.
fn equivalences(ratios: &[Ratio], margin: Option<f64>) -> Vec<Option<(f64, f64)>> {
    let alone =
        |ratio: &Ratio| margin.and_then(|margin| Some((margin, ratio.equivalence_p(margin)?)));
    let alone: Vec<Option<(f64, f64)>> = ratios.iter().map(alone).collect();
    let p: Vec<f64> = alone.iter().flatten().map(|(_, p)| *p).collect();
    let mut together = stats::holm(&p).into_iter();
    alone
        .into_iter()
        .map(|alone| alone.and_then(|(margin, _)| Some((margin, together.next()?))))
        .collect()
}

/// Ratios of all pairs of a run's treatments, judged as one family.
///
/// The chance that any equal pair is called different is at most 5%, whichever pairs a reader looks
/// at, and also where the data chose the pair: the best beside another.
pub(crate) struct Family {
    judged: BTreeMap<(usize, usize), Judged>,
}

impl Family {
    /// Judges the pairs of `plan`, from the (block, tps) of each treatment's trials.
    ///
    /// A treatment without trials forms no pair.
    pub(crate) fn new(plan: &Plan, values: &[&[(u32, f64)]]) -> Self {
        Self::with_prior(plan, values, plan.noise_prior)
    }

    /// Makes the family of a percentile of latency, like [`Family::new`]. No earlier run tells the
    /// noise of a percentile.
    pub(super) fn of_percentile(plan: &Plan, values: &[&[(u32, f64)]]) -> Self {
        Self::with_prior(plan, values, None)
    }

    fn with_prior(plan: &Plan, values: &[&[(u32, f64)]], prior: Option<NoisePrior>) -> Self {
        let looks = interim_analyses(plan);
        let asked = asked_pairs(plan);
        let pairs = stats::all_pairs(values, &asked, design(plan, looks.as_ref(), prior));
        let ratios: Vec<Ratio> = pairs.values().map(|pair| pair.ratio.clone()).collect();
        let judged = pairs.into_iter().zip(equivalences(&ratios, plan.margin));
        let judged = judged.map(|((treatments, pair), equivalence)| {
            let judged = Judged {
                ratio: pair.ratio,
                p: pair.p,
                share: pair.share,
                measure: measure(plan),
                equivalence,
                withheld: None,
            };
            (treatments, judged)
        });
        Self { judged: judged.collect() }
    }

    /// Judges the pairs of a run in `state`.
    ///
    /// A run with a fixed number of repeats gets no verdict before it is complete. Looking earlier,
    /// and stopping when a difference shows, would find differences that are none.
    pub(crate) fn of_run(plan: &Plan, state: RunState, sums: &[TreatmentSamples]) -> Self {
        let values = TreatmentSamples::all_values(sums, Measure::Tps);
        let mut family = Self::new(plan, &values);
        if is_provisional(plan, state) {
            let with_interval =
                family.judged.values_mut().filter(|judged| judged.ratio.ci95.is_some());
            with_interval.for_each(|judged| judged.withheld = Some(Withheld::RunNotFinished));
        }
        family
    }

    /// Returns the `candidates` that may be the fastest: in 95% of runs the fastest is among them.
    /// None without a verdict on any of them.
    pub(crate) fn may_be_best(&self, candidates: &[usize]) -> Option<BTreeSet<usize>> {
        let is_judged = |(a, b): &(usize, usize)| {
            let both = candidates.contains(a) && candidates.contains(b);
            both && self.judged[&(*a, *b)].significant().is_some()
        };
        self.judged.keys().any(is_judged).then(|| {
            let ratio = |a, b| self.judged.get(&(a, b)).map(|judged| &judged.ratio);
            let p = stats::p_of_best(ratio, candidates);
            p.into_iter().filter(|(_, p)| *p > ALPHA).map(|(treatment, _)| treatment).collect()
        })
    }

    /// Returns the ratio `a` ÷ `b`; none if either was not measured.
    pub(crate) fn judged(&self, a: usize, b: usize) -> Option<Judged> {
        let known = self.judged.get(&(a, b)).cloned();
        known.or_else(|| self.judged.get(&(b, a)).map(Judged::inverse))
    }
}

/// Whether a run of fixed repeats may still go on.
pub(crate) fn is_provisional(plan: &Plan, state: RunState) -> bool {
    plan.stopping.is_none() && matches!(state, RunState::Running | RunState::Interrupted)
}
