//! Ratios of a comparison's pairs, and whether a verdict may be drawn from each.

use pgdyno_stats::{self as stats, Method, Ratio, RunTrials};
use strum::VariantArray as _;

use super::super::family::is_provisional;
use super::super::pairing::{Pairing, design};
use super::chosen::Selection;
use super::history::{Earlier, History};
use super::view::{EarlierCount, Others};
use crate::gate::Measure;
use crate::treatment::TreatmentSamples;
use crate::view::Withheld;

/// Ratios of the pairs: formed within blocks of one run, or across runs by what earlier runs tell.
pub(super) struct Ratios<'a> {
    pub(super) a: &'a Selection,
    pub(super) b: &'a Selection,
    pub(super) pairs: &'a [(usize, usize)],
    pub(super) pairing: Pairing,
    /// Earlier runs of each pair; none within one run.
    earlier: Option<Vec<Earlier<'a>>>,
    /// Ratio of each pair within one run, by measure, judged with the noise that all treatments
    /// share; none for a pair without it. Empty across runs, and with interim analyses.
    by_common_noise: Vec<(Measure, Vec<Option<Ratio>>)>,
    is_provisional: bool,
}

/// One ratio, B ÷ A, and what may be said of it.
pub(super) struct Found {
    pub(super) ratio: Ratio,
    /// Interval from the two runs' own trials, which leaves out how far equal runs differ; none
    /// within one run.
    pub(super) within_runs: Option<[f64; 2]>,
    /// Reason for a ratio without a verdict.
    pub(super) withheld: Option<Withheld>,
}

impl<'a> Ratios<'a> {
    pub(super) fn new(
        a: &'a Selection,
        b: &'a Selection,
        pairs: &'a [(usize, usize)],
        by: &[String],
        history: &'a History,
    ) -> Self {
        let same_run = a.run.head.id == b.run.head.id;
        let (of_a, of_b) = (&a.run.plan, &b.run.plan);
        let earlier = pairs.iter().map(|(i, j)| history.of_pair((a, *i), (b, *j), by));
        let pairing = if same_run { Pairing::within(of_b) } else { Pairing::across(of_b, of_a) };
        let with_common_noise: &[Measure] = match pairing {
            Pairing::Blocks => Measure::VARIANTS,
            Pairing::InterimAnalyses(_) | Pairing::Unpaired(..) => &[],
        };
        let by_common_noise = |measure: &Measure| (*measure, by_common_noise(a, pairs, *measure));
        Self {
            pairing,
            by_common_noise: with_common_noise.iter().map(by_common_noise).collect(),
            earlier: (!same_run).then(|| earlier.collect()),
            is_provisional: [a, b]
                .iter()
                .any(|side| is_provisional(&side.run.plan, side.run.head.state)),
            a,
            b,
            pairs,
        }
    }

    /// Computes the ratio of `pair`'s values of `measure`.
    pub(super) fn judged(&self, pair: usize, measure: Measure) -> Found {
        let (i, j) = self.pairs[pair];
        let (a, b) = (&self.a.run.sums[i], &self.b.run.sums[j]);
        let by_common_noise = self.by_common_noise.iter().find(|(known, _)| *known == measure);
        let alone = by_common_noise
            .and_then(|(_, ratios)| ratios[pair].clone())
            .unwrap_or_else(|| self.pairing.ratio(b.values(measure), a.values(measure)));
        let not_finished =
            (self.is_provisional && alone.ci95.is_some()).then_some(Withheld::RunNotFinished);
        let Some(earlier) = self.earlier.as_ref().map(|all| &all[pair]) else {
            return Found { ratio: alone, within_runs: None, withheld: not_finished };
        };
        let within_runs = alone.ci95;
        match earlier.ratio(measure, a, b, &self.pairing).filter(|_| alone.value.is_some()) {
            Some(ratio) => Found { ratio, within_runs, withheld: not_finished },
            None => Found {
                withheld: alone
                    .value
                    .is_some()
                    .then_some(Withheld::TooFewRuns { found: earlier.count() }),
                ratio: alone.without_interval(),
                within_runs,
            },
        }
    }

    /// Returns whether one treatment of `pair` has no completed trial.
    pub(super) fn lacks_trial(&self, pair: usize) -> bool {
        let (i, j) = self.pairs[pair];
        [&self.a.run.sums[i], &self.b.run.sums[j]]
            .iter()
            .any(|sums| sums.values(Measure::Tps).is_empty())
    }

    /// Returns whether a trial of `pair` has too few transactions for `measure`.
    pub(super) fn lacks(&self, pair: usize, measure: Measure) -> bool {
        let (i, j) = self.pairs[pair];
        let lacks =
            |sums: &TreatmentSamples| sums.values(measure).len() < sums.values(Measure::Tps).len();
        lacks(&self.a.run.sums[i]) || lacks(&self.b.run.sums[j])
    }

    /// Counts the earlier runs of the pairs, whose ratios of tps are `found`; none within one run.
    /// With `own_only`, other experiments do not count.
    pub(super) fn earlier_runs(&self, found: &[Found], own_only: bool) -> Option<EarlierCount> {
        let all = self.earlier.as_ref()?;
        let counts = || all.iter().map(Earlier::count);
        let is_withheld = |of: &Found| matches!(of.withheld, Some(Withheld::TooFewRuns { .. }));
        let withheld = found.iter().position(is_withheld);
        let others = match all.get(withheld.unwrap_or(0))?.host_noise(Measure::Tps) {
            _ if own_only => Others::NotAsked,
            Err(why) => Others::Unknown(why),
            Ok(noise) if withheld.is_none() => Others::Used(noise),
            Ok(noise) if noise.is_enough() => Others::Quieter,
            Ok(_) => Others::TooFew,
        };
        let (least, most) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
        Some(EarlierCount { least, most, others })
    }
}

/// Computes the ratios of the `pairs` of one run with the noise that all its treatments share; none
/// for a pair without it.
fn by_common_noise(
    side: &Selection,
    pairs: &[(usize, usize)],
    measure: Measure,
) -> Vec<Option<Ratio>> {
    let plan = &side.run.plan;
    let values = TreatmentSamples::all_values(&side.run.sums, measure);
    let prior = plan.noise_prior.filter(|_| measure == Measure::Tps);
    let trials = RunTrials::new(&values, design(plan, None, prior));
    let is_pooled = |ratio: &Ratio| ratio.method == Some(Method::Pooled);
    let ratio = |(i, j): &(usize, usize)| stats::average_ratio(&trials, &[(*j, *i)]);
    pairs.iter().map(|pair| ratio(pair).filter(is_pooled)).collect()
}
