//! How far equal runs of a host's experiments differ: what is known of an experiment that has not
//! been repeated there.
//!
//! Spreads of several experiments are pooled, and the pool is the prior of another experiment's own
//! spread (moderated variances: G. K. Smyth, *Linear models and empirical Bayes methods for
//! assessing differential expression in microarray experiments*, Statistical Applications in
//! Genetics and Molecular Biology 3, 2004). Smyth estimates from the data how far spreads differ; a
//! host has too few experiments for that. [`LOG_SPREAD_OF_SPREADS`] is taken instead, and spreads
//! that differ by more are not pooled at all. Simulations judge the whole procedure.

use statrs::distribution::{ChiSquared, ContinuousCDF};

use crate::power::{POWER, minimum_detectable};
use crate::prior::{freedom_for_another, wider_by_chance};
use crate::run_spread::{RunSpread, is_enough};
use crate::student::{CONFIDENCE, ROUNDING};
use crate::variance::Variance;

/// How far the logarithms of experiments' true spreads are taken to differ (standard deviation):
/// most lie within a fifth of the host's typical one.
const LOG_SPREAD_OF_SPREADS: f64 = 0.2;

/// Chance at which equal spreads of a host's experiments are called different, and nothing is
/// pooled.
const UNLIKE: f64 = 0.01;
/// Chance at which an experiment's own spread is called wider than the pool's.
const WIDER: f64 = 0.05;

/// Noise between equal runs, from several experiments on one host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HostNoise {
    /// The experiments' pooled spread.
    pub pooled: RunSpread,
    /// Experiments that were pooled (count).
    pub experiments: usize,
    /// Degrees of freedom that the pool is worth for an experiment that is not one of them.
    for_another: f64,
}

/// Reason for a host without a known noise between runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NoHostNoise {
    /// No experiment was run twice.
    #[error("no experiment was run twice here")]
    NotRepeated,
    /// The experiments' spreads differ by more than chance.
    #[error("experiments here differ too much in their spreads")]
    Unlike,
}

impl HostNoise {
    /// Pools the spreads of `experiments`.
    pub fn pool(experiments: &[RunSpread]) -> Result<Self, NoHostNoise> {
        let is_known = |of: &&RunSpread| of.freedom > 0.0 && of.of_runs > ROUNDING.powi(2);
        let known: Vec<RunSpread> = experiments.iter().filter(is_known).copied().collect();
        let pooled =
            known.iter().copied().reduce(RunSpread::pooled_with).ok_or(NoHostNoise::NotRepeated)?;
        if unlike_by_chance(&known, &pooled).is_some_and(|p| p < UNLIKE) {
            return Err(NoHostNoise::Unlike);
        }
        let for_another = of_another(pooled.freedom);
        Ok(Self { pooled, experiments: known.len(), for_another })
    }

    /// Returns whether the pool alone lets two runs of another experiment be compared.
    pub fn is_enough(&self) -> bool {
        is_enough(self.for_another)
    }

    /// Returns the smallest true difference of two runs of another experiment that a comparison
    /// finds in 80% of cases (a share); none where the pool alone is too little for a comparison.
    pub fn detectable(&self) -> Option<f64> {
        if !self.is_enough() {
            return None;
        }
        let alpha = 1.0 - CONFIDENCE;
        let lambda = minimum_detectable(self.for_another, alpha, POWER)?;
        Some((lambda * (2.0 * self.pooled.of_runs).sqrt()).exp_m1())
    }

    /// Returns the spread of an experiment with its `own` one, if it has any. None where its own is
    /// wider than chance lets one of this host be, and known by less than two degrees of freedom.
    ///
    /// An own spread that is so much wider counts alone.
    pub(crate) fn with(&self, own: Option<RunSpread>) -> Option<RunSpread> {
        let prior = RunSpread { freedom: self.for_another, ..self.pooled };
        let Some(own) = own.filter(|own| own.freedom > 0.0) else { return Some(prior) };
        if wider_by_chance(of_runs(own), of_runs(prior))? < WIDER {
            return is_enough(own.freedom).then_some(own);
        }
        Some(prior.pooled_with(own))
    }
}

/// Returns the p-value of equal spreads by Bartlett's test (*Properties of sufficiency and
/// statistical tests*, Proceedings of the Royal Society A 160, 1937); none for one experiment.
fn unlike_by_chance(experiments: &[RunSpread], pooled: &RunSpread) -> Option<f64> {
    let between = experiments.len().checked_sub(1).filter(|n| *n > 0)? as f64;
    let sum = |of: fn(&RunSpread) -> f64| experiments.iter().map(of).sum::<f64>();
    let ratio = pooled.freedom * pooled.of_runs.ln() - sum(|e| e.freedom * e.of_runs.ln());
    let correction = 1.0 + (sum(|e| e.freedom.recip()) - pooled.freedom.recip()) / (3.0 * between);
    Some(ChiSquared::new(between).ok()?.sf(ratio / correction))
}

/// Returns the degrees of freedom by which a pooled variance knows that of another experiment.
fn of_another(freedom: f64) -> f64 {
    freedom_for_another(freedom, (2.0 * LOG_SPREAD_OF_SPREADS).powi(2))
}

fn of_runs(spread: RunSpread) -> Variance {
    Variance { value: spread.of_runs, freedom: spread.freedom }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Normal, coverage};
    use crate::runs::{EarlierRuns, ratio_across};

    fn spread(of_runs: f64, freedom: f64) -> RunSpread {
        RunSpread { of_runs, of_trials: 0.0, freedom }
    }

    #[test]
    fn a_pool_is_worth_less_for_another_experiment() {
        // ψ′(4.5) by the two terms: 0.2469; with 0.16 more 0.4069, which is that of 5.767.
        assert!((of_another(9.0) - 5.767).abs() < 0.01, "{}", of_another(9.0));
        // However many runs: 0.16 alone is that of 13.43.
        assert!((of_another(1e9) - 13.43).abs() < 0.01, "{}", of_another(1e9));
    }

    #[test]
    fn spreads_are_pooled_by_their_degrees_of_freedom() {
        let noise = HostNoise::pool(&[spread(1.0, 3.0), spread(2.0, 6.0)]).unwrap();
        assert!((noise.pooled.of_runs - 5.0 / 3.0).abs() < 1e-12);
        assert!((noise.pooled.freedom - 9.0).abs() < 1e-12);
        let with = noise.with(Some(spread(1.0, 2.0))).unwrap();
        assert!((with.freedom - 7.767).abs() < 0.01);
        assert!((with.of_runs - (5.767 * 5.0 / 3.0 + 2.0) / 7.767).abs() < 0.01);
    }

    #[test]
    fn what_is_too_wide_for_the_host_counts_alone() {
        let noise = HostNoise::pool(&[spread(1.0, 9.0)]).unwrap();
        assert_eq!(noise.with(Some(spread(100.0, 2.0))), Some(spread(100.0, 2.0)));
        assert_eq!(noise.with(Some(spread(100.0, 1.0))), None);
    }

    #[test]
    fn a_host_without_repeated_runs_or_with_unlike_ones_has_no_noise() {
        for nothing in [&[][..], &[spread(1.0, 0.0)], &[spread(0.0, 5.0)]] {
            assert_eq!(HostNoise::pool(nothing), Err(NoHostNoise::NotRepeated));
        }
        let unlike = [spread(1.0, 5.0), spread(100.0, 5.0)];
        assert_eq!(HostNoise::pool(&unlike), Err(NoHostNoise::Unlike));
    }

    /// Simulates two runs of an experiment that has `own` earlier runs, on a host with
    /// `experiments` others of `runs` each. Spreads are 2%, and their logarithms differ by
    /// `differ`. Returns how often B, which has `speed` times the tps, is shown to be slower
    /// (percent).
    fn shown_slower(
        own: usize,
        (experiments, runs): (usize, usize),
        differ: f64,
        speed: f64,
    ) -> f64 {
        coverage(3000, |normal| {
            let run = |normal: &mut Normal, spread: f64| {
                let effect = spread * normal.draw();
                let trial = |n| (n, (7.0 + effect + 0.005 * normal.draw()).exp());
                (1..=5).map(trial).collect::<Vec<(u32, f64)>>()
            };
            let group = |normal: &mut Normal, spread: f64, runs: usize| {
                let runs: Vec<_> = (0..runs).map(|_| run(normal, spread)).collect();
                let mut earlier = EarlierRuns::default();
                earlier.add_group(runs.iter().map(Vec::as_slice));
                earlier
            };
            let draw = |normal: &mut Normal| 0.02 * (differ * normal.draw()).exp();
            let others: Vec<RunSpread> = (0..experiments)
                .filter_map(|_| {
                    let spread = draw(normal);
                    group(normal, spread, runs).spread_of_experiment()
                })
                .collect();
            let spread = draw(normal);
            let earlier = group(normal, spread, own);
            let (a, mut b) = (run(normal, spread), run(normal, spread));
            b.iter_mut().for_each(|(_, value)| *value *= speed);
            let host = HostNoise::pool(&others).ok();
            let found = ratio_across(1.0, &b, &a, &earlier, host.as_ref());
            found.and_then(|ratio| ratio.ci95).is_some_and(|[_, high]| high < 1.0)
        })
    }

    #[test]
    fn equal_runs_are_seldom_told_apart_and_ten_percent_are() {
        for (own, others) in [(0, (1, 10)), (0, (3, 4)), (0, (9, 2)), (2, (3, 4)), (3, (3, 4))] {
            let [equal, unlike, slower] = [(0.0, 1.0), (0.3, 1.0), (0.0, 0.9)]
                .map(|(differ, speed)| shown_slower(own, others, differ, speed));
            eprintln!(
                "{own} own, {others:?}: {equal}% and {unlike}% of equal, {slower}% of slower"
            );
            assert!(equal <= 3.0 && unlike <= 4.8, "{own} {others:?}: {equal}% {unlike}%");
            assert!(slower >= 82.0, "{own} {others:?}: {slower}%");
        }
    }
}
