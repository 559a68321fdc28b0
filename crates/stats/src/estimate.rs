//! Means over repeats with Student's confidence intervals.

use crate::no_interval::NoInterval;
use crate::student::{CONFIDENCE, ROUNDING, moments, t_quantile};

/// Mean over repeats, with its confidence interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// Values that the mean is made from (count).
    pub n: usize,
    /// Arithmetic (or geometric) mean; none without values.
    pub mean: Option<f64>,
    /// Sample standard deviation; none for fewer than two values.
    pub sd: Option<f64>,
    /// 95% confidence interval of the mean; none where [`Estimate::why`] has a reason.
    pub ci95: Option<[f64; 2]>,
    /// Reason for a missing interval.
    pub why: Option<NoInterval>,
}

/// Returns the mean of `values` with Student's 95% confidence interval.
///
/// ```
/// let tps = pgdyno_stats::mean_ci95(&[1010.0, 990.0, 1000.0]);
/// assert_eq!(tps.mean, Some(1000.0));
/// let [low, high] = tps.ci95.unwrap();
/// assert!(low < 1000.0 && 1000.0 < high);
/// ```
///
/// A value that is not finite is an error of the caller: the mean is then `None`.
pub fn mean_ci95(values: &[f64]) -> Estimate {
    mean_ci95_at(1.0, values)
}

/// Returns the mean of `values` with an interval for a run that interim analyses may have ended.
///
/// The interval may be wrong with `alpha_share` of the usual chance of 5% (see
/// [`InterimAnalyses`](crate::InterimAnalyses)): it is wider for a smaller share.
pub fn mean_ci95_at(alpha_share: f64, values: &[f64]) -> Estimate {
    let n = values.len();
    let without = |mean, sd, why| Estimate { n, mean, sd, ci95: None, why: Some(why) };
    let Some((mean, sd)) = moments(values) else {
        return match values {
            [] => without(None, None, NoInterval::NoTrial),
            [only] if only.is_finite() => without(Some(*only), None, NoInterval::OneRepeat),
            _ => without(None, None, NoInterval::NotFinite),
        };
    };
    if sd <= ROUNDING * mean.abs() {
        return without(Some(mean), Some(sd), NoInterval::AllEqual);
    }
    match t_quantile(1.0 - alpha_share * (1.0 - CONFIDENCE) / 2.0, (n - 1) as f64) {
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
        None => without(Some(mean), Some(sd), NoInterval::NotComputable),
    }
}

/// Returns the geometric mean of `values` with a 95% confidence interval.
///
/// The interval is Student's of the mean logarithm, and `sd` is the deviation of the logarithms. A
/// value that is not finite and positive makes the mean `None`. `alpha_share` is that of
/// [`mean_ci95_at`].
pub fn geometric_mean_ci95(alpha_share: f64, values: &[f64]) -> Estimate {
    let logs: Vec<f64> = values.iter().map(|v| if *v > 0.0 { v.ln() } else { f64::NAN }).collect();
    let of_logs = mean_ci95_at(alpha_share, &logs);
    let ci95 = of_logs.ci95.map(|ci| ci.map(f64::exp)).filter(|[_, hi]| hi.is_finite());
    let too_wide = (of_logs.ci95.is_some() && ci95.is_none()).then_some(NoInterval::TooWide);
    Estimate { mean: of_logs.mean.map(f64::exp), ci95, why: of_logs.why.or(too_wide), ..of_logs }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::coverage;

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-6 * b.abs().max(1.0), "{a} is not {b}");
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
    fn an_interval_that_cannot_be_known_is_a_reason_and_not_a_number() {
        for (values, mean, reason) in [
            (&[][..], None, NoInterval::NoTrial),
            (&[5.0][..], Some(5.0), NoInterval::OneRepeat),
            (&[5.0, 5.0, 5.0][..], Some(5.0), NoInterval::AllEqual),
            (&[0.0, 0.0][..], Some(0.0), NoInterval::AllEqual),
            (&[1.0, f64::NAN][..], None, NoInterval::NotFinite),
            (&[f64::INFINITY][..], None, NoInterval::NotFinite),
            (&[f64::MAX, f64::MAX][..], None, NoInterval::NotFinite),
        ] {
            let e = mean_ci95(values);
            assert_eq!((e.mean, e.ci95), (mean, None), "{values:?}");
            assert_eq!(e.why, Some(reason), "{values:?}");
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
