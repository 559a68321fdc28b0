//! Share of a gap between two treatments that one part explains.

use crate::student::{CONFIDENCE, ROUNDING, moments, t_quantile};

/// Values of a quantity and of one part of it, trial by trial: (block, part, whole).
type Parts = [(u32, f64, f64)];

/// A difference of means with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gap {
    /// Mean of the second treatment less that of the first.
    pub value: f64,
    /// 95% confidence interval; none without repeats or spread.
    pub ci95: Option<[f64; 2]>,
}

/// Gaps in the part and in the whole, with their ratio.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Share {
    /// The gap in the part.
    pub part: Gap,
    /// The gap in the whole.
    pub whole: Gap,
    /// `part` ÷ `whole`: shares of parts that add up to the whole add up to 1. None without a gap.
    pub share: Option<f64>,
    /// 95% confidence interval of `share`; none where that of `whole` holds 0 or is none.
    pub ci95: Option<[f64; 2]>,
}

/// Returns the share of the gap from `a` to `b` that lies in the part. None without a trial on
/// either side, or with values that are not finite.
///
/// The gaps are differences of means over trials, paired by block if `paired` and if at least two
/// blocks are in both. The interval is E. C. Fieller's, *Some problems in interval estimation*,
/// Journal of the Royal Statistical Society B 16 (1954), with Student's t. Unpaired, t has the
/// degrees of freedom of the smaller side, which is conservative.
///
/// `level` is the share of the chance of a wrong interval that this look may spend: 1, except for
/// runs with [`InterimAnalyses`](crate::InterimAnalyses).
pub fn share(level: f64, a: &Parts, b: &Parts, paired: bool) -> Option<Share> {
    if a.is_empty()
        || b.is_empty()
        || a.iter().chain(b).any(|(_, p, w)| !p.is_finite() || !w.is_finite())
    {
        return None;
    }
    let in_both = |(block, part, whole): &(u32, f64, f64)| {
        a.iter().find(|(other, ..)| other == block).map(|(_, p, w)| (part - p, whole - w))
    };
    let within: Vec<(f64, f64)> =
        if paired { b.iter().filter_map(in_both).collect() } else { Vec::new() };
    let means = if within.len() >= 2 {
        Means::new(&within)
    } else {
        let bare = |of: &Parts| of.iter().map(|(_, p, w)| (*p, *w)).collect::<Vec<_>>();
        Means::new(&bare(b)).less(&Means::new(&bare(a)))
    };
    let t = means
        .freedom
        .and_then(|freedom| t_quantile(1.0 - level * (1.0 - CONFIDENCE) / 2.0, freedom));
    let gap = |value: f64, variance: f64| {
        let half = t.map(|t| t * variance.sqrt()).filter(|half| *half > ROUNDING * value.abs());
        Gap { value, ci95: half.map(|half| [value - half, value + half]) }
    };
    let (part, whole) = (gap(means.part, means.var_part), gap(means.whole, means.var_whole));
    let share = (means.whole != 0.0).then(|| means.part / means.whole).filter(|s| s.is_finite());
    Some(Share { part, whole, share, ci95: t.and_then(|t| means.fieller(t)) })
}

/// Means of part and whole, the variances and the covariance of these means.
struct Means {
    part: f64,
    whole: f64,
    var_part: f64,
    var_whole: f64,
    covariance: f64,
    /// Degrees of freedom; none for fewer than two values.
    freedom: Option<f64>,
}

impl Means {
    fn new(values: &[(f64, f64)]) -> Self {
        let n = values.len() as f64;
        let (part, whole) = (
            values.iter().map(|v| v.0).sum::<f64>() / n,
            values.iter().map(|v| v.1).sum::<f64>() / n,
        );
        let column = |of: fn(&(f64, f64)) -> f64| values.iter().map(of).collect::<Vec<_>>();
        let variance = |values: Vec<f64>| moments(&values).map_or(0.0, |(_, sd)| sd * sd / n);
        let products: f64 = values.iter().map(|v| (v.0 - part) * (v.1 - whole)).sum();
        Self {
            part,
            whole,
            var_part: variance(column(|v| v.0)),
            var_whole: variance(column(|v| v.1)),
            covariance: if n > 1.0 { products / (n - 1.0) / n } else { 0.0 },
            freedom: (n > 1.0).then_some(n - 1.0),
        }
    }

    fn less(&self, other: &Self) -> Self {
        Self {
            part: self.part - other.part,
            whole: self.whole - other.whole,
            var_part: self.var_part + other.var_part,
            var_whole: self.var_whole + other.var_whole,
            covariance: self.covariance + other.covariance,
            freedom: self.freedom.zip(other.freedom).map(|(a, b)| a.min(b)),
        }
    }

    /// Returns the interval of all r for which part − r · whole may be 0.
    fn fieller(&self, t: f64) -> Option<[f64; 2]> {
        let t2 = t * t;
        let a = self.whole.powi(2) - t2 * self.var_whole;
        let b = self.part * self.whole - t2 * self.covariance;
        let c = self.part.powi(2) - t2 * self.var_part;
        let root = (b * b - a * c).max(0.0).sqrt();
        let spread = self.var_part + self.var_whole > (ROUNDING * self.whole).powi(2);
        (a > 0.0 && spread)
            .then(|| [(b - root) / a, (b + root) / a])
            .filter(|ci| ci.iter().all(|r| r.is_finite()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::coverage;

    #[test]
    fn a_share_and_its_interval_by_hand() {
        // Differences of the part 8, 9, 10, of the whole 10, 10, 13: means 9 and 11, variances of
        // the means 1/3 and 1, covariance 3 / 2 / 3 = 0.5. t(2)² = 18.5128.
        let a = [(1, 1.0, 2.0), (2, 1.0, 2.0), (3, 1.0, 2.0)];
        let b = [(1, 9.0, 12.0), (2, 10.0, 12.0), (3, 11.0, 15.0)];
        let found = share(1.0, &a, &b, true).unwrap();
        assert_eq!(
            (found.part.value, found.whole.value, found.share),
            (9.0, 11.0, Some(9.0 / 11.0))
        );
        let t2 = 4.302_653_f64.powi(2);
        let (x, y, z) = (121.0 - t2, 99.0 - t2 / 2.0, 81.0 - t2 / 3.0);
        let root = (y * y - x * z).sqrt();
        let [lo, hi] = found.ci95.unwrap();
        assert!(
            (lo - (y - root) / x).abs() < 1e-5 && (hi - (y + root) / x).abs() < 1e-5,
            "{lo} {hi}"
        );
        let half = found.whole.ci95.unwrap()[1] - 11.0;
        assert!((half - 4.302_653).abs() < 1e-5);
    }

    #[test]
    fn without_a_gap_or_repeats_there_is_no_share_or_no_interval() {
        let one = [(1, 1.0, 2.0)];
        let other = [(1, 2.0, 4.0)];
        assert_eq!(share(1.0, &one, &other, true).unwrap().share, Some(0.5));
        assert_eq!(share(1.0, &one, &other, true).unwrap().ci95, None);
        assert_eq!(share(1.0, &one, &one, true).unwrap().share, None);
        assert_eq!(share(1.0, &one, &[], true), None);
        assert_eq!(share(1.0, &one, &[(1, f64::NAN, 1.0)], false), None);
        // A gap that may be none.
        let (a, b) = ([(1, 1.0, 5.0), (2, 1.0, 9.0)], [(1, 2.0, 8.0), (2, 2.0, 7.0)]);
        assert_eq!(share(1.0, &a, &b, true).unwrap().ci95, None);
        // Equal repeats.
        let (a, b) = ([(1, 1.0, 5.0), (2, 1.0, 5.0)], [(1, 2.0, 8.0), (2, 2.0, 8.0)]);
        assert_eq!(
            (share(1.0, &a, &b, true).unwrap().ci95, share(1.0, &a, &b, true).unwrap().whole.ci95),
            (None, None)
        );
    }

    #[test]
    fn nineteen_of_twenty_intervals_hold_the_share() {
        for paired in [true, false] {
            let share = coverage(4000, |normal| {
                let mut draw = |part: f64, rest: f64| -> Vec<(u32, f64, f64)> {
                    (0..5)
                        .map(|block| {
                            let part = part + 0.2 * normal.draw();
                            (block, part, part + rest + 0.3 * normal.draw())
                        })
                        .collect()
                };
                let (a, b) = (draw(2.0, 3.0), draw(5.0, 4.0));
                super::share(1.0, &a, &b, paired)
                    .unwrap()
                    .ci95
                    .is_some_and(|[lo, hi]| (lo..=hi).contains(&0.75))
            });
            // Unpaired it is conservative.
            assert!(
                (93.0..=if paired { 97.0 } else { 99.5 }).contains(&share),
                "{paired}: {share}%"
            );
        }
    }
}
