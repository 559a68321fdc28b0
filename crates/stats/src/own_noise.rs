//! Each treatment's noise where a run's treatments do not spread alike.
//!
//! A few repeats hardly know it. Many treatments show how far spreads differ, and so how much the
//! spread of all counts beside a treatment's own (moderated variances: G. K. Smyth, *Linear models
//! and empirical Bayes methods for assessing differential expression in microarray experiments*,
//! Statistical Applications in Genetics and Molecular Biology 3, 2004).

use crate::additive::{blocks, is_usable, logarithms};
use crate::common_noise::Trials;
use crate::mean::{count, mean};
use crate::prior::noise_prior;
use crate::ratio::{LogDifference, Method, Noise, Ratio, within_blocks};
use crate::student::ROUNDING;
use crate::variance::Variance;

/// Fewest treatments that moderate each other's noise: three hardly show how far spreads differ.
/// Simulated with four and more, false differences are hardly ever more than without (ADR 0058).
const FEWEST: usize = 4;

/// Noise of a run's treatments, that of each moderated by that of all.
pub(crate) struct OwnNoise<'a> {
    trials: &'a [Trials<'a>],
    has_blocks: bool,
    /// Variance of each treatment's trials; none with fewer than two.
    each: Vec<Option<Variance>>,
}

impl<'a> OwnNoise<'a> {
    /// Estimates them; none with fewer than four treatments that were repeated and vary.
    pub(crate) fn new(trials: &'a [Trials<'a>], has_blocks: bool) -> Option<Self> {
        let own = own_variances(trials, has_blocks);
        let varies = |own: &Variance| own.value > ROUNDING.powi(2);
        let known: Vec<Variance> = own.iter().flatten().copied().filter(varies).collect();
        let all = noise_prior(&known).filter(|_| known.len() >= FEWEST)?;
        let moderated = |own: Option<Variance>| Variance::pooled([own?, all]);
        Some(Self { trials, has_blocks, each: own.into_iter().map(moderated).collect() })
    }

    /// Returns the ratio of treatments `a` ÷ `b`, with `alpha_share` of the 5% error chance.
    ///
    /// None where one of them has fewer than two trials, or no trial in two blocks of the other.
    pub(crate) fn ratio(&self, alpha_share: f64, a: usize, b: usize) -> Option<Ratio> {
        let of_mean = |t: usize, trials: usize| Some(self.each[t]?.scaled(1.0 / count(trials)));
        let (of_a, of_b) = (self.trials[a], self.trials[b]);
        let (difference, trials) = if self.has_blocks {
            let within = within_blocks(of_a, of_b);
            let trials = Some(within.len()).filter(|trials| *trials > 1)?;
            (mean(within), [trials; 2])
        } else {
            let of = |trials: Trials| mean(trials.iter().map(|(_, value)| value.ln()));
            (of(of_a) - of(of_b), [of_a.len(), of_b.len()])
        };
        let variance = Variance::of_sum([of_mean(a, trials[0])?, of_mean(b, trials[1])?]);
        let log = LogDifference::new(difference, variance);
        Some(Ratio::from_log(Method::Moderated, log, alpha_share, Noise::Own))
    }
}

/// Returns the variance of each treatment's logarithms around its mean, and around the medians of
/// the blocks if the run `has_blocks`.
///
/// A median is hardly moved by a few wild treatments, which would make the quiet ones look wild.
fn own_variances(trials: &[Trials], has_blocks: bool) -> Vec<Option<Variance>> {
    let usable = trials.iter().map(|t| if is_usable(t) { *t } else { &[] });
    let usable: Vec<Trials> = usable.collect();
    let centred: Vec<Vec<(usize, f64)>> = logarithms(&usable).iter().map(|t| centred(t)).collect();
    let of_block = |block: usize| {
        let here = centred.iter().flatten().filter(|(number, _)| *number == block);
        if has_blocks { median(here.map(|(_, value)| *value).collect()) } else { 0.0 }
    };
    let medians: Vec<f64> = (0..blocks(&usable).len()).map(of_block).collect();
    let own = |trials: &Vec<(usize, f64)>| {
        let rest: Vec<_> = trials.iter().map(|(b, value)| (*b, value - medians[*b])).collect();
        let freedom = count(rest.len().checked_sub(1).filter(|freedom| *freedom > 0)?);
        let squares: f64 = self::centred(&rest).iter().map(|(_, value)| value * value).sum();
        Some(Variance { value: squares / freedom, freedom })
    };
    centred.iter().map(own).collect()
}

/// Returns (block, value) less the mean of the values.
fn centred(trials: &[(usize, f64)]) -> Vec<(usize, f64)> {
    let centre = mean(trials.iter().map(|(_, value)| value));
    trials.iter().map(|(block, value)| (*block, value - centre)).collect()
}

/// Returns the median of `values`; 0 without any.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repeats(logs: &[f64]) -> Vec<(u32, f64)> {
        (1..).zip(logs.iter().map(|log| log.exp())).collect()
    }

    /// Four treatments whose logarithms lie -d, 0 and d around their means.
    fn four(of: [f64; 4]) -> Vec<Vec<(u32, f64)>> {
        of.iter().map(|d| repeats(&[-d, 0.0, *d])).collect()
    }

    fn noise(trials: &[Vec<(u32, f64)>], has_blocks: bool) -> Option<Vec<Option<Variance>>> {
        let trials: Vec<Trials> = trials.iter().map(Vec::as_slice).collect();
        OwnNoise::new(&trials, has_blocks).map(|noise| noise.each)
    }

    #[test]
    fn each_variance_lies_between_its_own_and_that_of_all() {
        // Variances 1, 1, 1 and 100 (÷ 10,000) on 2 degrees of freedom; their mean is 25.75.
        let found = noise(&four([0.01, 0.01, 0.01, 0.1]), false).unwrap();
        let all =
            noise_prior(&[1e-4, 1e-4, 1e-4, 1e-2].map(|value| Variance { value, freedom: 2.0 }));
        let freedom = all.unwrap().freedom;
        let pooled = |own: f64| (2.0 * own + freedom * 25.75e-4) / (2.0 + freedom);
        for (found, own) in found.iter().zip([1e-4, 1e-4, 1e-4, 1e-2]) {
            let found = found.unwrap();
            assert!((found.value - pooled(own)).abs() < 1e-9, "{found:?}");
            assert!((found.freedom - 2.0 - freedom).abs() < 1e-9, "{found:?}");
        }
    }

    #[test]
    fn a_level_of_a_block_and_a_wild_treatment_leave_the_others_quiet() {
        let mut trials = four([0.01, -0.01, 0.02, 0.5]);
        let before = noise(&trials, true).unwrap();
        for (block, value) in trials.iter_mut().flatten() {
            *value *= f64::from(*block);
        }
        let after = noise(&trials, true).unwrap();
        for (before, after) in before.iter().zip(&after) {
            assert!((before.unwrap().value - after.unwrap().value).abs() < 1e-12);
        }
    }

    #[test]
    fn a_pair_has_the_noise_of_both() {
        let trials = four([0.01, 0.01, 0.01, 0.1]);
        let trials: Vec<Trials> = trials.iter().map(Vec::as_slice).collect();
        let noise = OwnNoise::new(&trials, false).unwrap();
        let found = noise.ratio(1.0, 0, 3).unwrap();
        assert_eq!(found.method, Some(Method::Moderated));
        let [a, b] = [0, 3].map(|t| noise.each[t].unwrap().scaled(1.0 / 3.0));
        let error = Variance::of_sum([a, b]);
        let t = crate::student::t_quantile(0.975, error.freedom).unwrap();
        let half = t * error.value.sqrt();
        assert!((found.ci95.unwrap()[1].ln() - half).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn what_cannot_be_moderated_has_none() {
        assert!(noise(&four([0.01; 4])[..3], false).is_none());
        assert!(noise(&four([0.01, 0.01, 0.01, 0.0]), false).is_none());
        let mut five = four([0.01, 0.02, 0.03, 0.04]);
        five.push(repeats(&[0.0]));
        five.push(vec![(1, 0.0), (2, 1.0)]);
        five.push(vec![(7, 1.0), (8, 1.1)]);
        let trials: Vec<Trials> = five.iter().map(Vec::as_slice).collect();
        let noise = OwnNoise::new(&trials, true).unwrap();
        let is_judged = |a, b| noise.ratio(1.0, a, b).is_some();
        assert!(is_judged(0, 1) && !is_judged(0, 4) && !is_judged(0, 5) && !is_judged(0, 6));
    }
}
