//! The ratios of a comparison's pairs, and what may be said of each.

use pgdyno_stats::{HostNoise, NoHostNoise, Ratio};

use super::super::family::is_provisional;
use super::super::pairing::Pairing;
use super::super::treatment::TreatmentSamples;
use super::super::view::Withheld;
use super::chosen::Selection;
use super::history::{Earlier, History};
use crate::gate::Measure;

/// How the ratios of the pairs are formed: within blocks of one run, or across runs with what
/// earlier runs tell.
pub(super) struct Ratios<'a> {
    pub(super) a: &'a Selection,
    pub(super) b: &'a Selection,
    pub(super) pairs: &'a [(usize, usize)],
    pub(super) pairing: Pairing,
    /// Of each pair, where two runs are compared.
    earlier: Option<Vec<Earlier<'a>>>,
    is_provisional: bool,
}

/// Earlier runs that the pairs of a comparison have.
pub(crate) struct EarlierCount {
    /// The fewest runs of the experiment (count).
    pub(crate) least: usize,
    /// The most (count).
    pub(crate) most: usize,
    /// What other experiments on the host tell of the pair that has least of them; none where
    /// nothing is compared.
    pub(crate) host: Option<Result<HostNoise, NoHostNoise>>,
    /// Whether a pair's own earlier runs are few, and differ by more than those of others here.
    pub(crate) own_are_wider: bool,
}

/// One ratio, B ÷ A, and what may be said of it.
pub(super) struct Found {
    pub(super) ratio: Ratio,
    /// The interval that the two runs' own trials give, where two runs are compared: it leaves out
    /// how far equal runs differ.
    pub(super) within_runs: Option<[f64; 2]>,
    /// Why there is no verdict although there is a ratio.
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
        let same_run = a.view.run.id == b.view.run.id;
        let (of_a, of_b) = (&a.view.plan, &b.view.plan);
        let earlier = pairs.iter().map(|(i, j)| history.of_pair((a, *i), (b, *j), by));
        Self {
            pairing: if same_run { Pairing::of(of_b) } else { Pairing::across(of_b, of_a) },
            earlier: (!same_run).then(|| earlier.collect()),
            is_provisional: [a, b]
                .iter()
                .any(|side| is_provisional(&side.view.plan, side.view.run.state)),
            a,
            b,
            pairs,
        }
    }

    /// The ratio of `pair`'s values of `measure`.
    pub(super) fn of(&self, pair: usize, measure: Measure) -> Found {
        let (i, j) = self.pairs[pair];
        let (a, b) = (&self.a.sums[i], &self.b.sums[j]);
        let alone = self.pairing.ratio(b.values(measure), a.values(measure));
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

    /// Whether one of `pair` has no completed trial.
    pub(super) fn lacks_trial(&self, pair: usize) -> bool {
        let (i, j) = self.pairs[pair];
        [&self.a.sums[i], &self.b.sums[j]].iter().any(|sums| sums.values(Measure::Tps).is_empty())
    }

    /// Whether a trial of `pair` has too few transactions for `measure`.
    pub(super) fn lacks(&self, pair: usize, measure: Measure) -> bool {
        let (i, j) = self.pairs[pair];
        let lacks =
            |sums: &TreatmentSamples| sums.values(measure).len() < sums.values(Measure::Tps).len();
        lacks(&self.a.sums[i]) || lacks(&self.b.sums[j])
    }

    /// The earlier runs that the pairs have; none within one run.
    pub(super) fn earlier_runs(&self) -> Option<EarlierCount> {
        let all = self.earlier.as_ref()?;
        let counts = || all.iter().map(Earlier::count);
        let hosts = all.iter().map(|earlier| earlier.host_noise(Measure::Tps));
        let is_wider = |pair: usize| {
            let found = self.of(pair, Measure::Tps);
            matches!(found.withheld, Some(Withheld::TooFewRuns { .. }))
                && all[pair].host_noise(Measure::Tps).is_ok()
        };
        Some(EarlierCount {
            own_are_wider: (0..all.len()).any(is_wider),
            least: counts().min().unwrap_or(0),
            most: counts().max().unwrap_or(0),
            host: hosts.min_by_key(|host| host.as_ref().map_or(0, |host| host.experiments)),
        })
    }
}
