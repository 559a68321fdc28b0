//! Pure statistics over trials: no clock, no store. What cannot be concluded is said in words,
//! never as a number.
//!
//! Trials of one treatment are taken as independent draws from a normal distribution (for ratios:
//! of their logarithms). Intervals are Student's: Student, *The probable error of a mean*,
//! Biometrika 6 (1908); for two groups of unequal variance: B. L. Welch, *The generalization of
//! "Student's" problem*, Biometrika 34 (1947).

mod changes;
mod holm;
mod long_run;
mod looks;
mod power;
#[cfg(test)]
pub(crate) mod random;
mod ratio;
mod runs;
mod scaling;
mod series;
mod share;
#[cfg(test)]
mod simulations;
mod trend;

use statrs::distribution::{ContinuousCDF, StudentsT};

pub use changes::changes;
pub use holm::{holm, holm_weighted};
pub use long_run::{Autocorrelation, LEAST_EFFECTIVE, autocorrelation, relative_error_of_mean};
pub use looks::Looks;
pub use power::{POWER, t_power};
pub use ratio::{Method, Ratio, ratio, ratio_over, unpaired_ratio, unpaired_ratio_at};
pub use runs::{EarlierRuns, FEWEST_RUNS, ratio_across};
pub use scaling::{Fitted, Scaling, scaling};
pub use series::{WarmUp, warm_up};
pub use share::{Gap, Share, share};
pub use trend::{Trend, share_of_orders_with_trend, trend, trends};

/// The confidence level of every interval.
pub const CONFIDENCE: f64 = 0.95;

/// A spread below this share of the mean is rounding, not spread.
const ROUNDING: f64 = 1e-12;

/// Why an interval that no number can hold is none.
const TOO_WIDE: &str = "the repeats differ too much for an interval";

/// A mean over repeats, and how sure it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// Values it is made from (count).
    pub n: usize,
    /// Their mean; none without values.
    pub mean: Option<f64>,
    /// Their sample standard deviation; none for fewer than two.
    pub sd: Option<f64>,
    /// The 95% confidence interval of the mean; none where [`Estimate::why`] says why.
    pub ci95: Option<[f64; 2]>,
    /// Why there is no interval.
    pub why: Option<&'static str>,
}

/// The mean of `values` with Student's 95% interval. Values that are not finite are an error of the
/// caller's and make the mean none.
#[must_use]
pub fn mean_ci95(values: &[f64]) -> Estimate {
    mean_ci95_at(1.0, values)
}

/// The same where looks told when the run ends ([`Looks`]): `share` of the chance that the interval
/// is wrong is what the last may spend, so that it is wider.
#[must_use]
#[allow(clippy::cast_precision_loss)]
pub fn mean_ci95_at(share: f64, values: &[f64]) -> Estimate {
    let n = values.len();
    let without = |mean, sd, why| Estimate { n, mean, sd, ci95: None, why: Some(why) };
    let Some((mean, sd)) = moments(values) else {
        return match values {
            [] => without(None, None, "no trial is completed"),
            [only] if only.is_finite() => {
                without(Some(*only), None, "one repeat only: no interval")
            }
            _ => without(None, None, "a value is not a finite number"),
        };
    };
    if sd <= ROUNDING * mean.abs() {
        return without(
            Some(mean),
            Some(sd),
            "all repeats are equal: their spread cannot be estimated, no interval",
        );
    }
    match t_quantile(1.0 - share * (1.0 - CONFIDENCE) / 2.0, (n - 1) as f64) {
        Some(t) => {
            let half = t * sd / (n as f64).sqrt();
            Estimate {
                n,
                mean: Some(mean),
                sd: Some(sd),
                ci95: Some([mean - half, mean + half]),
                why: None,
            }
        }
        None => without(Some(mean), Some(sd), "the interval could not be computed"),
    }
}

/// The geometric mean of `values` with Student's 95% interval of the mean logarithm. Its `sd` is
/// that of logarithms. Values that are not finite and positive make the mean none.
#[must_use]
pub fn geometric_mean_ci95(values: &[f64]) -> Estimate {
    geometric_mean_ci95_at(1.0, values)
}

/// The same at a `share` of the level, as [`mean_ci95_at`].
#[must_use]
pub fn geometric_mean_ci95_at(share: f64, values: &[f64]) -> Estimate {
    let logs: Vec<f64> = values.iter().map(|v| if *v > 0.0 { v.ln() } else { f64::NAN }).collect();
    let of_logs = mean_ci95_at(share, &logs);
    let ci95 = of_logs.ci95.map(|ci| ci.map(f64::exp)).filter(|[_, hi]| hi.is_finite());
    let too_wide = (of_logs.ci95.is_some() && ci95.is_none()).then_some(TOO_WIDE);
    Estimate { mean: of_logs.mean.map(f64::exp), ci95, why: of_logs.why.or(too_wide), ..of_logs }
}

/// Mean and sample standard deviation; none for fewer than two values or one that is not finite.
#[allow(clippy::cast_precision_loss)]
fn moments(values: &[f64]) -> Option<(f64, f64)> {
    if values.len() < 2 || values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean.is_finite() && variance.is_finite()).then(|| (mean, variance.sqrt()))
}

/// Student's t at probability `p` with `freedom` degrees of freedom.
fn t_quantile(p: f64, freedom: f64) -> Option<f64> {
    let t = StudentsT::new(0.0, 1.0, freedom).ok()?.inverse_cdf(p);
    t.is_finite().then_some(t)
}

/// The probability of a t at least so large.
fn t_one_sided(t: f64, freedom: f64) -> Option<f64> {
    let p = StudentsT::new(0.0, 1.0, freedom).ok()?.sf(t);
    p.is_finite().then_some(p)
}

/// The probability of a t at least so far from 0, either way.
fn t_two_sided(t: f64, freedom: f64) -> Option<f64> {
    let p = 2.0 * StudentsT::new(0.0, 1.0, freedom).ok()?.sf(t.abs());
    p.is_finite().then_some(p.min(1.0))
}

#[cfg(test)]
mod tests {
    use super::random::coverage;
    use super::*;

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-6 * b.abs().max(1.0), "{a} is not {b}");
    }

    #[test]
    fn the_quantiles_are_those_of_the_printed_tables() {
        // Two-sided 95%: the table in any textbook, to four digits.
        for (freedom, t) in
            [(1.0, 12.7062), (2.0, 4.3027), (4.0, 2.7764), (9.0, 2.2622), (30.0, 2.0423)]
        {
            assert!((t_quantile(0.975, freedom).unwrap() - t).abs() < 5e-5, "{freedom}");
        }
    }

    #[test]
    fn an_interval_computed_by_hand() {
        // 10, 12, 14: mean 12, s = 2, t(2) = 4.302653, half = 4.302653 * 2 / sqrt 3 = 4.968275.
        let e = mean_ci95(&[10.0, 12.0, 14.0]);
        close(e.mean.unwrap(), 12.0);
        close(e.sd.unwrap(), 2.0);
        let [lo, hi] = e.ci95.unwrap();
        close(lo, 7.031_725);
        close(hi, 16.968_275);
    }

    #[test]
    fn what_cannot_be_known_is_words_and_not_a_number() {
        for (values, mean, word) in [
            (&[][..], None, "no trial"),
            (&[5.0][..], Some(5.0), "one repeat"),
            (&[5.0, 5.0, 5.0][..], Some(5.0), "equal"),
            (&[0.0, 0.0][..], Some(0.0), "equal"),
            (&[1.0, f64::NAN][..], None, "finite"),
            (&[f64::INFINITY][..], None, "finite"),
            (&[f64::MAX, f64::MAX][..], None, "finite"),
        ] {
            let e = mean_ci95(values);
            assert_eq!((e.mean, e.ci95), (mean, None), "{values:?}");
            assert!(e.why.unwrap().contains(word), "{values:?}: {:?}", e.why);
        }
    }

    #[test]
    fn nineteen_of_twenty_intervals_hold_the_mean() {
        for n in [2, 3, 5, 12] {
            let share = coverage(4000, |normal| {
                let values: Vec<f64> = (0..n).map(|_| 1000.0 + 80.0 * normal.draw()).collect();
                let [lo, hi] = mean_ci95(&values).ci95.unwrap();
                (lo..=hi).contains(&1000.0)
            });
            assert!((93.0..=97.0).contains(&share), "n={n}: {share}%");
        }
    }
}
