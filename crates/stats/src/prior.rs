//! Noise prior: the noise that earlier runs predict for another one.
//!
//! The variances of earlier runs are pooled, and the pool adds degrees of freedom to a run's own
//! (moderated variances: G. K. Smyth, *Linear models and empirical Bayes methods for assessing
//! differential expression in microarray experiments*, Statistical Applications in Genetics and
//! Molecular Biology 3, 2004).

use statrs::distribution::{ContinuousCDF, FisherSnedecor};
use statrs::function::gamma::digamma;

use crate::mean::{count, mean};
use crate::variance::Variance;

/// Least assumed difference between experiments' spreads of trials (standard deviation of their
/// logarithms). The four recipes that docs/statistics.md measured spread by 4.0, 4.8, 5.7 and
/// 10.4%, whose logarithms differ by 0.41.
const LOG_SPREAD_OF_TRIALS: f64 = 0.4;

/// Chance at which a run's own noise is called wider than what was known before, and at which it is
/// called narrower.
const APART: f64 = 0.05;

/// Returns the variance of trials that earlier `experiments` of a host predict for another one
/// there, with the degrees of freedom that it is worth; none without any.
///
/// The difference between experiments is estimated from the variances of their logarithms, once
/// three are known.
pub fn noise_prior(experiments: &[Variance]) -> Option<Variance> {
    let is_known = |of: &&Variance| of.freedom > 0.0 && of.value > 0.0;
    let known: Vec<Variance> = experiments.iter().filter(is_known).copied().collect();
    let pooled = Variance::pooled(known.iter().copied())?;
    let between = between(&known).unwrap_or(0.0).max((2.0 * LOG_SPREAD_OF_TRIALS).powi(2));
    // The pool is the mean of few, and so differs from what is typical.
    let between = between * (1.0 + 1.0 / count(known.len()));
    Some(Variance { freedom: freedom_for_another(pooled.freedom, between), ..pooled })
}

/// Returns the variance of the logarithms of the true variances of `experiments`; none with fewer
/// than three. It may be estimated as less than 0.
fn between(experiments: &[Variance]) -> Option<f64> {
    if experiments.len() < 3 {
        return None;
    }
    // The mean logarithm of χ² ÷ ν is ψ(ν/2) − ln(ν/2).
    let log = |of: &Variance| {
        let half = of.freedom / 2.0;
        of.value.ln() - digamma(half) + half.ln()
    };
    let logs: Vec<f64> = experiments.iter().map(log).collect();
    let centre = mean(&logs);
    let found = logs.iter().map(|log| (log - centre).powi(2)).sum::<f64>() / count(logs.len() - 1);
    Some(found - mean(experiments.iter().map(|of| variance_of_log(of.freedom))))
}

/// Returns whether a run's own noise is known well enough for a prior beside it: with one degree of
/// freedom nothing would show that the two differ.
pub(crate) fn is_enough(freedom: f64) -> bool {
    freedom >= 2.0
}

/// Returns `own` pooled with the `prior`. None if the two differ more than chance explains, or if
/// too little is known of `own` to tell.
pub(crate) fn moderated(own: Variance, prior: Variance) -> Option<Variance> {
    if !is_enough(own.freedom) {
        return None;
    }
    let p = wider_by_chance(own, prior)?;
    (APART..=1.0 - APART).contains(&p).then(|| Variance::pooled([own, prior]))?
}

/// Returns the probability of an `own` variance at least this many times the `prior` if both were
/// equal.
pub(crate) fn wider_by_chance(own: Variance, prior: Variance) -> Option<f64> {
    let p = FisherSnedecor::new(own.freedom, prior.freedom).ok()?.sf(own.value / prior.value);
    p.is_finite().then_some(p)
}

/// Returns the degrees of freedom that a pooled variance with `freedom` is worth in another
/// experiment, whose logarithm varies by `between`.
///
/// The two variances add up, and the sum is turned back into degrees of freedom.
pub(crate) fn freedom_for_another(freedom: f64, between: f64) -> f64 {
    let variance = variance_of_log(freedom) + between;
    (1.0 + (1.0 + 2.0 * variance).sqrt()) / variance
}

/// Returns the variance of the logarithm of a variance with ν degrees of freedom: ψ′(ν/2), about
/// 1/x + 1/(2x²) at x = ν/2.
fn variance_of_log(freedom: f64) -> f64 {
    let half = freedom / 2.0;
    half.recip() + half.powi(-2) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variance(value: f64, freedom: f64) -> Variance {
        Variance { value, freedom }
    }

    #[test]
    fn experiments_are_pooled_and_count_for_less_in_another() {
        // ψ′(3) by the two terms: 0.3889. One experiment: twice 0.64 more is 1.6689, that of 1.85.
        let one = noise_prior(&[variance(2.0, 6.0)]).unwrap();
        assert!(one.value == 2.0 && (one.freedom - 1.848).abs() < 0.01, "{one:?}");
        // However many alike: 0.64 alone is that of 3.92.
        let many = noise_prior(&vec![variance(2.0, 1e6); 1000]).unwrap();
        assert!((many.freedom - 3.92).abs() < 0.01, "{many:?}");
        // Spreads that differ tenfold tell hardly anything of another.
        let unlike = [1.0, 100.0, 1.0, 100.0].map(|value| variance(value, 20.0));
        let unlike = noise_prior(&unlike).unwrap();
        assert!(unlike.value == 50.5 && unlike.freedom < 1.0, "{unlike:?}");
        for nothing in [&[][..], &[variance(1.0, 0.0)], &[variance(0.0, 5.0)]] {
            assert_eq!(noise_prior(nothing), None);
        }
    }

    #[test]
    fn a_prior_counts_unless_the_noise_is_another_one() {
        let prior = variance(1.0, 4.0);
        let both = moderated(variance(2.0, 6.0), prior).unwrap();
        assert!((both.value - 1.6).abs() < 1e-12 && (both.freedom - 10.0).abs() < 1e-12);
        // F(6, 4) lies between 0.2206 and 6.163 in 90 of 100 cases.
        for (own, counts) in [(0.21, false), (0.23, true), (6.1, true), (6.2, false)] {
            assert_eq!(moderated(variance(own, 6.0), prior).is_some(), counts, "{own}");
        }
        assert_eq!(moderated(variance(1.0, 1.0), prior), None);
        assert_eq!(moderated(variance(0.0, 6.0), prior), None);
    }
}
