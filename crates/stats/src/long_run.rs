//! Autocorrelation: the number of independent seconds that a mean over seconds is worth.

use crate::student::{CONFIDENCE, ROUNDING, moments, t_quantile};

/// Fewest independent seconds by which an interval or a warm-up is judged. Below it, the seconds
/// resemble each other so much that their resemblance cannot be estimated either.
pub const LEAST_EFFECTIVE: f64 = 20.0;

/// Fewest elements whose autocorrelation is worth a number.
const FEWEST: usize = 10;

/// Resemblance of neighbours in a series.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Autocorrelation {
    /// Correlation of neighbours (-1 to 1).
    pub first: f64,
    /// Independent values whose mean would be as sure as this series' (count, at most the series'
    /// length).
    pub effective: f64,
}

/// Returns the autocorrelation of `series`. None for fewer than 10 elements, for an element that is
/// not finite, and for a series that does not vary.
pub fn autocorrelation(series: &[f64]) -> Option<Autocorrelation> {
    let found = LongRun::measure(series)?;
    Some(Autocorrelation { first: found.first, effective: found.effective().max(1.0) })
}

/// Returns half of the 95% interval of the mean of `series`, as a share of the mean. None where the
/// elements are worth fewer than [`LEAST_EFFECTIVE`] independent ones, and without spread or a
/// positive mean.
pub fn relative_error_of_mean(series: &[f64]) -> Option<f64> {
    /// Widening of the interval of a series worth exactly 20 independent elements. Series that
    /// barely reach 20 are mostly worth fewer. From simulations, so that these intervals too hold
    /// the truth in 95% of cases.
    const CAUTION: f64 = 0.15;
    let found = judged(series)?;
    let effective = found.effective();
    let t = t_quantile(0.5 + CONFIDENCE / 2.0, found.freedom())?;
    let caution = 1.0 + CAUTION * (LEAST_EFFECTIVE / effective).powi(2);
    Some(caution * t * found.error_of_mean() / found.mean)
}

/// Returns the standard error of the mean of `series`, as a share of the mean. None where
/// [`relative_error_of_mean`] has none.
pub fn standard_error_of_mean(series: &[f64]) -> Option<f64> {
    judged(series).map(|found| found.error_of_mean() / found.mean)
}

/// Measures `series`; none if its elements are worth too few independent ones.
fn judged(series: &[f64]) -> Option<LongRun> {
    let is_enough = |found: &LongRun| found.mean > 0.0 && found.effective() >= LEAST_EFFECTIVE;
    LongRun::measure(series).filter(is_enough)
}

/// Autocorrelation and variance of a series, from which the error of its mean follows.
#[derive(Clone, Copy, Debug)]
pub(super) struct LongRun {
    pub(super) mean: f64,
    /// Correlation of neighbours (-1 to 1).
    first: f64,
    /// Elements (count).
    n: f64,
    /// Elements that are worth one independent element (at least 1).
    time: f64,
    /// Variance of a mean of n elements, times n.
    pub(super) variance: f64,
}

impl LongRun {
    /// Measures `series`. None for fewer than 10 elements, for an element that is not finite, and
    /// for a series that does not vary.
    ///
    /// It takes the larger of two estimates, both corrected for the mean being that of the same
    /// elements. That of a first-order autoregression has the smaller error where it fits: its
    /// coefficient as F. H. C. Marriott and J. A. Pope, *Bias in the estimation of
    /// autocorrelations*, Biometrika 41 (1954), correct it. The other follows any shape: the sum up
    /// to where pairs of neighbouring autocorrelations are no longer positive, the initial positive
    /// sequence of C. J. Geyer, *Practical Markov chain Monte Carlo*, Statistical Science 7 (1992).
    pub(super) fn measure(series: &[f64]) -> Option<Self> {
        let count = series.len();
        let (mean, sd) =
            moments(series).filter(|(mean, sd)| count >= FEWEST && *sd > ROUNDING * mean.abs())?;
        let n = count as f64;
        let squares = sd * sd * (n - 1.0);
        let at = |lag: usize| {
            series.iter().zip(&series[lag..]).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>()
                / squares
        };
        let first = at(1);

        let coefficient = ((n * first + 1.0) / (n - 4.0)).clamp(-0.3, 0.99);
        let of_autoregression = (1.0 + coefficient) / (1.0 - coefficient);
        // Deviations from their own mean are smaller than those from the true one.
        let variance = of_autoregression / (1.0 - (of_autoregression - 1.0) / n).max(0.3);

        let pairs: Vec<f64> = (0..count / 4)
            .map(|pair| at(2 * pair) + at(2 * pair + 1))
            .take_while(|sum| *sum > 0.0)
            .collect();
        let lags = (4 * pairs.len().max(1) - 1) as f64;
        let of_sequence =
            (2.0 * pairs.iter().sum::<f64>() - 1.0).max(0.5) / (1.0 - lags / n).max(0.1);

        Some(Self {
            mean,
            first,
            n,
            time: of_autoregression.max(of_sequence).max(1.0),
            variance: sd * sd * variance.max(of_sequence),
        })
    }

    /// Returns the number of independent elements whose mean would be as sure.
    fn effective(&self) -> f64 {
        self.n / self.time
    }

    /// Returns the number of independent elements that `n` such elements are worth.
    pub(super) fn effective_of(&self, n: f64) -> f64 {
        n / self.time
    }

    /// Degrees of freedom of a t with this variance. That of an autoregression is a fit: the
    /// variance of its logarithm is (2 + 4τ) / n for the autocorrelation time τ (the delta method),
    /// which is that of as many squares.
    pub(super) fn freedom(&self) -> f64 {
        self.n / (1.0 + 2.0 * self.time)
    }

    fn error_of_mean(&self) -> f64 {
        (self.variance / self.n).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Normal, autoregression};

    #[test]
    fn alike_neighbours_are_worth_less_and_independent_values_all() {
        let mut random = Normal(24);
        let mut mean = |r: f64| {
            let of = |s: Vec<f64>| autocorrelation(&s).unwrap().effective;
            (0..200).map(|_| of(autoregression(&mut random, 400, r))).sum::<f64>() / 200.0
        };
        // n (1 - r) / (1 + r): 400, 133, 44.
        assert!((330.0..=400.0).contains(&mean(0.0)));
        assert!((100.0..=150.0).contains(&mean(0.5)));
        assert!((33.0..=55.0).contains(&mean(0.8)));
        assert_eq!(autocorrelation(&[1.0; 50]), None);
        assert_eq!(autocorrelation(&[1.0, 2.0]), None);
        assert_eq!(autocorrelation(&[f64::NAN; 50]), None);
    }

    #[test]
    fn a_mean_of_seconds_that_are_worth_few_has_no_interval() {
        let mut random = Normal(25);
        let mut spoken = |n: usize, r: f64| {
            let series = |random: &mut Normal| -> Vec<f64> {
                autoregression(random, n, r).iter().map(|v| 100.0 + v).collect()
            };
            (0..100).filter(|_| relative_error_of_mean(&series(&mut random)).is_some()).count()
        };
        // Worth 100, 13 and 3 independent ones.
        let found = (spoken(100, 0.0), spoken(120, 0.8), spoken(60, 0.9));
        assert!(found.0 == 100 && found.1 <= 15 && found.2 <= 2, "{found:?}");
        assert_eq!(relative_error_of_mean(&[0.0; 100]), None);
    }
}
