//! Families of comparisons: ratios that are judged together.

use pgdyno_model::record::RunState;
use pgdyno_model::{LevelValue, Plan, Treatment};
use pgdyno_stats::{self as stats, Ratio};

use super::pairing::Pairing;
use super::treatment::TreatmentSamples;
use super::view::Withheld;

/// Chance of any false difference in a family of comparisons.
pub(crate) const ALPHA: f64 = 1.0 - stats::CONFIDENCE;

/// Ratio that was judged together with all others of its family.
#[derive(Clone)]
pub(crate) struct Judged {
    pub(crate) ratio: Ratio,
    /// Comparisons that are judged together (count).
    pub(crate) comparisons: usize,
    /// Share of the family's 5% at which Holm's rule judges this ratio first.
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

    /// Corrects a ratio to the best of `treatments` for the fact that the data chose the best.
    ///
    /// The interval holds whichever treatment was chosen (Bonferroni). A difference is significant
    /// only if the p-value that belongs to that interval is small as well.
    pub(crate) fn beside_the_best(mut self, treatments: usize) -> Self {
        #[allow(clippy::cast_precision_loss)]
        let share = 1.0 / treatments.saturating_sub(1).max(1) as f64;
        self.ratio.ci95 = self.ratio.ci95_at(share);
        self.p = self
            .p
            .zip(self.ratio.p)
            .map(|(together, alone)| together.max((alone / share).min(1.0)));
        self
    }
}

/// Returns the measure that compares the treatments of `plan`.
pub(crate) fn measure(plan: &Plan) -> &'static str {
    if plan.find.is_some() { "maximum rate" } else { "tps" }
}

/// Judges `ratios` together by Holm's rule; `weights` has one weight for each.
///
/// A ratio without an interval was not tested, and does not make the other verdicts stricter.
pub(crate) fn judge(
    ratios: Vec<Ratio>,
    weights: &[f64],
    measure: &'static str,
    margin: Option<f64>,
) -> Vec<Judged> {
    let tested =
        || ratios.iter().zip(weights).filter_map(|(ratio, weight)| Some((ratio.p?, *weight)));
    let (p, tested): (Vec<f64>, Vec<f64>) = tested().unzip();
    let (comparisons, whole) = (p.len(), tested.iter().sum::<f64>());
    let mut together = stats::holm_weighted(&p, &tested).into_iter();
    let equivalence =
        |ratio: &Ratio| margin.and_then(|margin| Some((margin, ratio.equivalence_p(margin)?)));
    let alone: Vec<Option<(f64, f64)>> = ratios.iter().map(equivalence).collect();
    let known =
        alone.iter().zip(weights).filter_map(|(alone, weight)| Some((alone.as_ref()?.1, *weight)));
    let (p, known): (Vec<f64>, Vec<f64>) = known.unzip();
    let mut equivalent = stats::holm_weighted(&p, &known).into_iter();
    ratios
        .into_iter()
        .zip(weights)
        .zip(alone)
        .map(|((ratio, weight), alone)| Judged {
            comparisons,
            share: if whole > 0.0 { weight / whole } else { 1.0 },
            measure,
            p: ratio.p.and_then(|_| together.next()),
            equivalence: alone.and_then(|(margin, _)| Some((margin, equivalent.next()?))),
            ratio,
            withheld: None,
        })
        .collect()
}

/// Ratios of all pairs of a run's treatments, judged as one family.
///
/// The chance that any equal pair is called different is at most 5%, whichever pairs a reader looks
/// at. Pairs that differ in one factor are what the plan is about: they have [`PLANNED_SHARE`] of
/// the weight. The other pairs matter since the data choose the best.
pub(crate) struct Family {
    pairs: Vec<(usize, usize)>,
    judged: Vec<Judged>,
}

/// Weight of the planned comparisons in a family of all pairs.
const PLANNED_SHARE: f64 = 0.8;

impl Family {
    /// Judges the pairs of `plan`, from the (block, value) of each treatment's trials.
    ///
    /// A treatment without trials forms no pair.
    pub(crate) fn new(plan: &Plan, values: &[&[(u32, f64)]]) -> Self {
        let measured: Vec<usize> = (0..values.len()).filter(|t| !values[*t].is_empty()).collect();
        let after = |(i, a): (usize, &usize)| {
            let a = *a;
            measured[i + 1..].iter().map(move |b| (a, *b)).collect::<Vec<_>>()
        };
        let pairs: Vec<(usize, usize)> = measured.iter().enumerate().flat_map(after).collect();
        let planned = planned_pairs(plan);
        let is_planned = |(a, b): &(usize, usize)| {
            planned.iter().any(|(_, x, y)| (x, y) == (a, b) || (x, y) == (b, a))
        };
        let of_plan = pairs.iter().filter(|pair| is_planned(pair)).count();
        #[allow(clippy::cast_precision_loss)]
        let weight = |pair: &(usize, usize)| match (of_plan, pairs.len() - of_plan) {
            (0, _) | (_, 0) => 1.0,
            (n, _) if is_planned(pair) => PLANNED_SHARE / n as f64,
            (_, n) => (1.0 - PLANNED_SHARE) / n as f64,
        };
        let weights: Vec<f64> = pairs.iter().map(weight).collect();
        let pairing = Pairing::of(plan);
        let ratios = pairs.iter().map(|(a, b)| pairing.ratio(values[*a], values[*b])).collect();
        let judged = judge(ratios, &weights, measure(plan), plan.margin);
        Self { pairs, judged }
    }

    /// Judges the pairs of a run in `state`.
    ///
    /// A run with a fixed number of repeats gets no verdict before it is complete. Looking earlier,
    /// and stopping when a difference shows, would find differences that are none.
    pub(super) fn of_run(plan: &Plan, state: RunState, sums: &[TreatmentSamples]) -> Self {
        let values: Vec<&[(u32, f64)]> = sums.iter().map(|sums| sums.tps.as_slice()).collect();
        let mut family = Self::new(plan, &values);
        if is_provisional(plan, state) {
            let with_interval =
                family.judged.iter_mut().filter(|judged| judged.ratio.ci95.is_some());
            with_interval.for_each(|judged| judged.withheld = Some(Withheld::RunNotFinished));
        }
        family
    }

    /// Returns the ratio `a` ÷ `b`; none if either was not measured.
    pub(crate) fn judged(&self, a: usize, b: usize) -> Option<Judged> {
        let of = |pair: (usize, usize)| {
            let found = self.pairs.iter().position(|known| *known == pair)?;
            Some(&self.judged[found])
        };
        of((a, b)).cloned().or_else(|| of((b, a)).map(Judged::inverse))
    }
}

/// Whether a run of fixed repeats may still go on.
pub(crate) fn is_provisional(plan: &Plan, state: RunState) -> bool {
    plan.stopping.is_none() && matches!(state, RunState::Running | RunState::Interrupted)
}

/// For every factor: each treatment and the one that differs in that factor only and has its first
/// level.
pub(crate) fn planned_pairs(plan: &Plan) -> Vec<(&String, usize, usize)> {
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

/// Whether two treatments agree in all factors but `factor`.
fn alike_but(factor: &str, a: &Treatment, b: &Treatment) -> bool {
    let others = |t: &Treatment| -> Vec<(String, LevelValue)> {
        t.levels.0.iter().filter(|(name, _)| name != factor).cloned().collect()
    };
    others(a) == others(b)
}
