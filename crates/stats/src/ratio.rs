//! Ratios of two treatments: how many times as fast one is as the other.
//!
//! All computation is on logarithms, so that a ratio and its inverse are treated alike and no
//! interval reaches below 0.

use crate::interim::InterimAnalyses;
use crate::mean::{count, mean};
use crate::no_interval::NoInterval;
use crate::power::{POWER, minimum_detectable};
use crate::student::{CONFIDENCE, ROUNDING, moments, t_one_sided, t_quantile, t_two_sided};
use crate::variance::Variance;

/// Method of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Student's interval of the log ratio within each block. A disturbance of the whole block
    /// cancels.
    Paired,
    /// Student's interval from the noise that all treatments of the run share.
    Pooled,
    /// Welch's interval of the difference of mean logarithms.
    Welch,
    /// Welch's interval from the two treatments' noise, each moderated by that of all treatments of
    /// the run.
    Moderated,
    /// Student's interval with the run as the unit, from the spread of earlier runs.
    Runs,
}

/// Ratio of two treatments' values (tps, a percentile of latency), with its confidence interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Ratio {
    /// Geometric mean of the ratio; none where none can be formed.
    pub value: Option<f64>,
    /// 95% confidence interval; none where [`Ratio::why`] has a reason.
    pub ci95: Option<[f64; 2]>,
    /// Method of the interval.
    pub method: Option<Method>,
    /// p-value: the probability of a ratio at least as far from 1 if there were no difference.
    pub p: Option<f64>,
    /// Reason for a missing value or interval.
    pub why: Option<NoInterval>,
    /// Interim analyses that the ratio was made from: one if the number of repeats was fixed, none
    /// without an interval.
    looks: Vec<Look>,
}

/// Result of one interim analysis, with the share of the 5% error chance that it spends.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Look {
    log: LogDifference,
    alpha_share: f64,
    noise: Noise,
}

/// Trials that a difference's error was estimated from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Noise {
    /// Those of the two treatments.
    Own,
    /// Those of so many treatments that spread alike.
    Shared { treatments: usize },
}

/// A difference of mean logarithms, its standard error and degrees of freedom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LogDifference {
    pub(crate) difference: f64,
    pub(crate) error: f64,
    pub(crate) freedom: f64,
}

impl LogDifference {
    /// Creates the difference whose estimate has this `variance`.
    pub(crate) fn new(difference: f64, variance: Variance) -> Self {
        let Variance { value, freedom } = variance;
        Self { difference, error: value.max(0.0).sqrt(), freedom }
    }
}

/// Returns the ratio `a` ÷ `b` of trials of one run, each given as (block, value).
///
/// ```
/// let a = [(1, 200.0), (2, 210.0)];
/// let b = [(1, 100.0), (2, 104.0)];
/// let found = pgdyno_stats::ratio(&a, &b);
/// assert_eq!(found.method, Some(pgdyno_stats::Method::Paired));
/// assert!(found.value.is_some_and(|value| (2.0..2.02).contains(&value)));
/// ```
///
/// Trials are paired by block if at least two blocks have both treatments. Otherwise Welch's method
/// compares the means.
pub fn ratio(a: &[(u32, f64)], b: &[(u32, f64)]) -> Ratio {
    paired_ratio(1.0, a, b)
}

/// As [`ratio()`], with `alpha_share` of the 5% error chance.
pub(crate) fn paired_ratio(alpha_share: f64, a: &[(u32, f64)], b: &[(u32, f64)]) -> Ratio {
    of_differences(a, b, &within_blocks(a, b), alpha_share)
}

/// Returns the differences of logarithms within the blocks that both treatments have.
pub(crate) fn within_blocks(a: &[(u32, f64)], b: &[(u32, f64)]) -> Vec<f64> {
    let within = |(block, value): &(u32, f64)| {
        b.iter().find(|(other, _)| other == block).map(|(_, base)| value.ln() - base.ln())
    };
    a.iter().filter_map(within).collect()
}

/// Returns the ratio `a` ÷ `b` of a run that interim analyses may have ended.
///
/// Interval and p-values hold over all `looks` together, at the price of a wider interval. The
/// interval is the intersection of the intervals of all looks.
pub fn ratio_over(looks: &InterimAnalyses, a: &[(u32, f64)], b: &[(u32, f64)]) -> Ratio {
    let in_both = |(block, _): &&(u32, f64)| b.iter().any(|(other, _)| other == block);
    let mut blocks: Vec<u32> = a.iter().filter(in_both).map(|(block, _)| *block).collect();
    blocks.sort_unstable();
    let n = u32::try_from(blocks.len()).unwrap_or(u32::MAX);
    if n < 2 {
        return unpaired_ratio(looks.alpha_share(n), a, b);
    }
    let mut over: Option<Ratio> = None;
    for (last, alpha_share) in looks.at_blocks(&blocks) {
        let first = |trials: &[(u32, f64)]| -> Vec<(u32, f64)> {
            let known = |block: &u32| *block <= last && blocks.contains(block);
            trials.iter().filter(|(block, _)| known(block)).copied().collect()
        };
        let found = paired_ratio(alpha_share, &first(a), &first(b));
        over = Some(match over {
            Some(earlier) => found.after(earlier),
            None => found,
        });
    }
    over.unwrap_or_else(|| ratio(a, b))
}

/// Returns the ratio `a` ÷ `b` of trials of two runs, by Welch's method.
///
/// Blocks of two runs have nothing in common, though they may bear equal numbers. `alpha_share` is
/// the share of the 5% error chance that the interval may spend: 1, or less for runs that interim
/// analyses may have ended (see [`InterimAnalyses::alpha_share`]).
pub fn unpaired_ratio(alpha_share: f64, a: &[(u32, f64)], b: &[(u32, f64)]) -> Ratio {
    of_differences(a, b, &[], alpha_share)
}

/// Computes the ratio from the differences of logarithms `within` blocks; by Welch's method if
/// these are fewer than two.
fn of_differences(a: &[(u32, f64)], b: &[(u32, f64)], within: &[f64], alpha_share: f64) -> Ratio {
    let without = Ratio::without;
    if a.is_empty() || b.is_empty() {
        return without(None, NoInterval::OneSideEmpty);
    }
    if a.iter().chain(b).any(|(_, value)| !value.is_finite() || *value <= 0.0) {
        return without(None, NoInterval::NoTransaction);
    }
    let logs =
        |trials: &[(u32, f64)]| trials.iter().map(|(_, value)| value.ln()).collect::<Vec<_>>();
    let (log, method) = match (moments(within), welch(&logs(a), &logs(b))) {
        (Some((mean, sd)), _) => {
            let n = count(within.len());
            (
                LogDifference { difference: mean, error: sd / n.sqrt(), freedom: n - 1.0 },
                Method::Paired,
            )
        }
        (None, Some(log)) => (log, Method::Welch),
        (None, None) => {
            let difference = mean(logs(a)) - mean(logs(b));
            return without(finite(difference.exp()), NoInterval::OneRepeat);
        }
    };
    Ratio::from_log(method, log, alpha_share, Noise::Own)
}

fn finite(value: f64) -> Option<f64> {
    (value.is_finite() && value > 0.0).then_some(value)
}

impl Ratio {
    /// Creates a ratio without an interval, for the reason `why`.
    fn without(value: Option<f64>, why: NoInterval) -> Self {
        Self { value, ci95: None, method: None, p: None, why: Some(why), looks: Vec::new() }
    }

    /// Creates a ratio from the `difference` of mean logarithms and its standard `error` on
    /// `freedom` degrees of freedom.
    ///
    /// None if the error is 0 or the arguments are not finite numbers.
    pub(crate) fn from_log_difference(
        method: Method,
        difference: f64,
        error: f64,
        freedom: f64,
        alpha_share: f64,
    ) -> Option<Self> {
        let ratio = Self::from_log(
            method,
            LogDifference { difference, error, freedom },
            alpha_share,
            Noise::Own,
        );
        ratio.ci95.is_some().then_some(ratio)
    }

    /// Creates a ratio from `log`; without an interval where that has no spread.
    pub(crate) fn from_log(
        method: Method,
        log: LogDifference,
        alpha_share: f64,
        noise: Noise,
    ) -> Self {
        let LogDifference { difference, error, freedom } = log;
        let value = finite(difference.exp());
        if error <= ROUNDING {
            return Self::without(value, NoInterval::AllEqual);
        }
        let (Some(t), Some(p)) = (
            t_quantile(1.0 - alpha_share * (1.0 - CONFIDENCE) / 2.0, freedom),
            t_two_sided(difference / error, freedom),
        ) else {
            return Self::without(value, NoInterval::NotComputable);
        };
        let ci95 = [(difference - t * error).exp(), (difference + t * error).exp()];
        if value.is_none() || ci95[0] <= 0.0 || !ci95[1].is_finite() {
            return Self::without(value, NoInterval::TooWide);
        }
        let p = Some((p / alpha_share).min(1.0));
        Self {
            value,
            ci95: Some(ci95),
            method: Some(method),
            p,
            why: None,
            looks: vec![Look { log, alpha_share, noise }],
        }
    }

    /// Combines this look with `earlier` ones.
    pub(crate) fn after(mut self, earlier: Self) -> Self {
        self.ci95 = self.ci95.map(|now| self.in_common(now, earlier.ci95));
        self.p = match (self.p, earlier.p) {
            (Some(now), Some(then)) => Some(now.min(then)),
            (now, _) => now,
        };
        if !self.looks.is_empty() {
            self.looks.splice(0..0, earlier.looks);
        }
        self
    }

    /// Returns the ratio without its interval: [`NoInterval::TooFewRuns`] unless it had a reason.
    #[must_use]
    pub fn without_interval(self) -> Self {
        let why = self.why.unwrap_or(NoInterval::TooFewRuns);
        Self::without(self.value, why)
    }

    /// Returns the ratio with the interval of [`Ratio::ci95_at`] in place of its own.
    pub(crate) fn with_interval_at(self, alpha_share: f64) -> Self {
        match self.ci95_at(alpha_share) {
            None if self.ci95.is_some() => Self::without(self.value, NoInterval::TooWide),
            ci95 => Self { ci95, ..self },
        }
    }

    /// Returns the inverse ratio: `b` ÷ `a` of `a` ÷ `b`.
    pub fn inverse(&self) -> Self {
        let turned = |look: &Look| Look {
            log: LogDifference { difference: -look.log.difference, ..look.log },
            ..*look
        };
        Self {
            value: self.value.map(f64::recip),
            ci95: self.ci95.map(|[lo, hi]| [hi.recip(), lo.recip()]),
            looks: self.looks.iter().map(turned).collect(),
            ..self.clone()
        }
    }

    /// Returns the interval that is wrong with `alpha_share` of the usual chance of 5%.
    ///
    /// It is wider for a smaller share. None without an interval.
    pub fn ci95_at(&self, alpha_share: f64) -> Option<[f64; 2]> {
        let interval = |look: &Look| {
            let LogDifference { difference, error, freedom } = look.log;
            let half = t_quantile(
                1.0 - alpha_share * look.alpha_share * (1.0 - CONFIDENCE) / 2.0,
                freedom,
            )? * error;
            Some([(difference - half).exp(), (difference + half).exp()])
        };
        let mut all = None;
        for look in &self.looks {
            let now = interval(look)?;
            all = Some(self.in_common(now, all));
        }
        all.filter(|[lo, hi]| *lo > 0.0 && hi.is_finite())
    }

    /// Intersects this look's interval with that of `earlier` looks.
    ///
    /// Once in many runs the intersection is empty, or lacks the value. This look's own interval
    /// then holds as well.
    fn in_common(&self, now: [f64; 2], earlier: Option<[f64; 2]>) -> [f64; 2] {
        let Some([least, most]) = earlier else { return now };
        let common = [now[0].max(least), now[1].min(most)];
        if self.value.is_some_and(|v| common[0] <= v && v <= common[1]) { common } else { now }
    }

    /// Returns the minimum detectable effect (a share: 0.1 for 10% more).
    ///
    /// A true difference of this size is significant in [`POWER`] of all runs with these repeats
    /// and this spread, if `comparisons` are judged together. None without an interval.
    pub fn minimum_detectable(&self, comparisons: usize) -> Option<f64> {
        self.minimum_detectable_at(1.0 / comparisons.max(1) as f64)
    }

    /// Returns the minimum detectable effect of a comparison judged at `alpha_share` of the level.
    pub fn minimum_detectable_at(&self, alpha_share: f64) -> Option<f64> {
        let look = self.looks.last()?;
        let alpha = alpha_share * look.alpha_share * (1.0 - CONFIDENCE);
        let difference =
            (minimum_detectable(look.log.freedom, alpha, POWER)? * look.log.error).exp() - 1.0;
        difference.is_finite().then_some(difference)
    }

    /// Returns the true ratio that runs like this one show to lie `below` (or above) `bound`.
    ///
    /// A one-sided test at half of `alpha_share` of the level shows it in [`POWER`] of the runs.
    /// None without an interval, or if `bound` is not a positive number.
    pub fn shown_beyond(&self, bound: f64, below: bool, alpha_share: f64) -> Option<f64> {
        let look = self.looks.last()?;
        // Of a two-sided test at twice the level, the other side is nearly nothing where power is
        // 80%.
        let alpha = alpha_share * look.alpha_share * (1.0 - CONFIDENCE);
        let distance = minimum_detectable(look.log.freedom, alpha, POWER)? * look.log.error;
        let ratio = (ratio_bound(bound)? + if below { -distance } else { distance }).exp();
        ratio.is_finite().then_some(ratio)
    }

    /// Returns the p-value of the hypothesis that the two differ by `margin` or more.
    ///
    /// A margin of 0.03 stands for ratios from 1 ÷ 1.03 to 1.03. Two one-sided tests: D. J.
    /// Schuirmann, *A comparison of the two one-sided tests procedure and the power approach for
    /// assessing the equivalence of average bioavailability*, Journal of Pharmacokinetics and
    /// Biopharmaceutics 15 (1987). None without an interval, or for a margin that is not positive.
    pub fn equivalence_p(&self, margin: f64) -> Option<f64> {
        let bound = (margin > 0.0).then(|| margin.ln_1p()).filter(|b| b.is_finite())?;
        self.least_p(|LogDifference { difference, error, freedom }, _| {
            let above = t_one_sided((difference + bound) / error, freedom)?;
            let below = t_one_sided((bound - difference) / error, freedom)?;
            Some(above.max(below))
        })
    }

    /// Returns the p-value of the hypothesis that the true ratio is `bound` or more.
    ///
    /// A small value shows that the ratio lies below. None without an interval, or if `bound` is
    /// not a positive number.
    pub fn below_p(&self, bound: f64) -> Option<f64> {
        let bound = ratio_bound(bound)?;
        self.least_p(|log, _| t_one_sided((bound - log.difference) / log.error, log.freedom))
    }

    /// Returns the p-value of the hypothesis that the true ratio is `bound` or less.
    ///
    /// A small value shows that the ratio lies above. None as in [`Ratio::below_p`].
    pub fn above_p(&self, bound: f64) -> Option<f64> {
        let bound = ratio_bound(bound)?;
        self.least_p(|log, _| t_one_sided((log.difference - bound) / log.error, log.freedom))
    }

    /// Returns the least p-value of all looks, each divided by its share of the level.
    ///
    /// None without a look, or if one has no p-value.
    pub(crate) fn least_p(
        &self,
        mut p: impl FnMut(LogDifference, Noise) -> Option<f64>,
    ) -> Option<f64> {
        let of = |look: &Look| Some((p(look.log, look.noise)? / look.alpha_share).min(1.0));
        let each = self.looks.iter().map(of);
        each.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::min)
    }
}

fn ratio_bound(bound: f64) -> Option<f64> {
    (bound > 0.0).then(|| bound.ln()).filter(|log| log.is_finite())
}

/// Computes the difference of means with Welch's degrees of freedom.
///
/// None with fewer than two values on a side.
fn welch(a: &[f64], b: &[f64]) -> Option<LogDifference> {
    let ((mean_a, sd_a), (mean_b, sd_b)) = (moments(a)?, moments(b)?);
    let of_mean =
        |sd: f64, n: usize| Variance { value: sd.powi(2) / count(n), freedom: count(n) - 1.0 };
    let Variance { value, freedom } =
        Variance::of_sum([of_mean(sd_a, a.len()), of_mean(sd_b, b.len())]);
    // Without any spread there are no degrees of freedom to speak of; the caller sees the error of
    // 0.
    let freedom = if freedom.is_finite() { freedom } else { 1.0 };
    Some(LogDifference::new(mean_a - mean_b, Variance { value, freedom }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::coverage;

    fn blocks(values: &[f64]) -> Vec<(u32, f64)> {
        (1..).zip(values.iter().copied()).collect()
    }

    #[test]
    fn a_paired_interval_computed_by_hand() {
        // Log ratios ln 2, ln 2.2, ln 1.8: mean 0.6897971, s 0.1003769, half 4.302653 * s / sqrt 3
        // = 0.2493494.
        let r = ratio(&blocks(&[200.0, 440.0, 90.0]), &blocks(&[100.0, 200.0, 50.0]));
        assert_eq!(r.method, Some(Method::Paired));
        let mean = (2f64.ln() + 2.2f64.ln() + 1.8f64.ln()) / 3.0;
        assert!((r.value.unwrap() - mean.exp()).abs() < 1e-12);
        let [lo, hi] = r.ci95.unwrap();
        assert!((lo - 1.553_40).abs() < 1e-4 && (hi - 2.557_80).abs() < 1e-4, "{lo} {hi}");
        // t = 0.6897971 / (0.1003769 / sqrt 3) = 11.9028; with 2 degrees of freedom p = 1 - t /
        // sqrt(t² + 2) = 0.006985.
        assert!((r.p.unwrap() - 0.006_985).abs() < 1e-6, "{:?}", r.p);
    }

    #[test]
    fn without_common_blocks_welch_by_hand() {
        // Logs 0, 1 against 3, 5: difference -3.5, variances of the means 0.25 and 1,
        // error sqrt 1.25, freedom 1.25² / (0.25² + 1²) = 1.470588.
        let e = f64::exp;
        let r = ratio(&[(1, e(0.0)), (2, e(1.0))], &[(3, e(3.0)), (4, e(5.0))]);
        assert_eq!(r.method, Some(Method::Welch));
        assert!((r.value.unwrap().ln() + 3.5).abs() < 1e-12);
        let LogDifference { error, freedom, .. } = welch(&[0.0, 1.0], &[3.0, 5.0]).unwrap();
        assert!((error - 1.25f64.sqrt()).abs() < 1e-12 && (freedom - 1.470_588).abs() < 1e-6);
    }

    #[test]
    fn a_ratio_and_its_inverse_agree() {
        let (a, b) = (blocks(&[100.0, 120.0, 90.0]), blocks(&[95.0, 99.0, 101.0]));
        let (there, back) = (ratio(&a, &b), ratio(&b, &a));
        assert!((there.value.unwrap() * back.value.unwrap() - 1.0).abs() < 1e-12);
        assert!((there.ci95.unwrap()[0] * back.ci95.unwrap()[1] - 1.0).abs() < 1e-12);
        assert_eq!(there.minimum_detectable(3), back.minimum_detectable(3));
        assert!(there.minimum_detectable(3).unwrap() > there.minimum_detectable(1).unwrap());
    }

    #[test]
    fn equivalence_by_hand() {
        // Log ratios -0.01, 0, 0.01: mean 0, error 0.01 / √3. Margin 3%: t = ln 1.03 √3 / 0.01 =
        // 5.1198 on 2 degrees of freedom, one-sided p = (1 - t / √(t² + 2)) / 2 = 0.01805.
        let e = f64::exp;
        let r = ratio(&blocks(&[e(-0.01), 1.0, e(0.01)]), &blocks(&[1.0; 3]));
        assert!(
            (r.equivalence_p(0.03).unwrap() - 0.018_05).abs() < 1e-5,
            "{:?}",
            r.equivalence_p(0.03)
        );
        assert!(r.equivalence_p(0.001).unwrap() > 0.05);
        for no_margin in [0.0, -0.1, f64::NAN, f64::INFINITY] {
            assert_eq!(r.equivalence_p(no_margin), None);
        }
    }

    #[test]
    fn blocks_of_other_runs_are_not_paired() {
        // Paired, these differ by ln 2 each time and without any spread; unpaired, by a shared
        // spread of s = ln 2.
        let (a, b) = (blocks(&[2.0, 4.0, 8.0]), blocks(&[1.0, 2.0, 4.0]));
        assert!(ratio(&a, &b).ci95.is_none());
        let r = unpaired_ratio(1.0, &a, &b);
        assert_eq!(r.method, Some(Method::Welch));
        // error ln 2 √(2/3), freedom 4, t = 2.776445.
        let half = (r.ci95.unwrap()[1].ln() - 2f64.ln()) / 2f64.ln();
        assert!((half - 2.776_445 * (2.0 / 3.0f64).sqrt()).abs() < 1e-5, "{half}");
        // One-sided p of a t of √(3/2) = 1.224745 on 4 degrees of freedom: 0.143936.
        assert!((r.above_p(1.0).unwrap() - 0.143_936).abs() < 1e-5, "{:?}", r.above_p(1.0));
        assert!((r.above_p(1.0).unwrap() + r.below_p(1.0).unwrap() - 1.0).abs() < 1e-9);
        for no_bound in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!((r.above_p(no_bound), r.below_p(no_bound)), (None, None));
        }
    }

    #[test]
    fn a_ratio_that_cannot_be_known_is_a_reason_and_not_a_number() {
        let some = blocks(&[100.0, 110.0]);
        for (a, b, value, reason) in [
            (vec![], some.clone(), false, NoInterval::OneSideEmpty),
            (blocks(&[0.0, 100.0]), some.clone(), false, NoInterval::NoTransaction),
            (blocks(&[f64::NAN]), some, false, NoInterval::NoTransaction),
            (blocks(&[50.0]), blocks(&[100.0]), true, NoInterval::OneRepeat),
            (blocks(&[50.0, 50.0]), blocks(&[100.0, 100.0]), true, NoInterval::AllEqual),
            (blocks(&[1e300, 1e-300]), blocks(&[1e-300, 1e300]), true, NoInterval::TooWide),
        ] {
            let r = ratio(&a, &b);
            assert_eq!(
                (r.value.is_some(), r.ci95, r.minimum_detectable(1)),
                (value, None, None),
                "{a:?} {b:?} {r:?}"
            );
            assert_eq!(r.equivalence_p(0.1), None);
            assert_eq!(r.why, Some(reason), "{a:?} {b:?}");
        }
    }

    #[test]
    fn nineteen_of_twenty_intervals_hold_the_ratio() {
        for (repeats, shared) in [(3, 0.3), (5, 0.0)] {
            let share = coverage(4000, |normal| {
                let drift: Vec<f64> = (0..repeats).map(|_| shared * normal.draw()).collect();
                let mut draw = |level: f64| {
                    let values: Vec<f64> =
                        drift.iter().map(|d| (level + d + 0.05 * normal.draw()).exp()).collect();
                    blocks(&values)
                };
                let (a, b) = (draw(7.0), draw(6.5));
                let [lo, hi] = ratio(&a, &b).ci95.unwrap();
                (lo..=hi).contains(&0.5f64.exp())
            });
            assert!((93.0..=97.0).contains(&share), "{repeats} blocks: {share}%");
        }
        let welch = coverage(4000, |normal| {
            let a: Vec<_> = (0..5).map(|i| (i, (7.0 + 0.05 * normal.draw()).exp())).collect();
            let b: Vec<_> = (10..14).map(|i| (i, (6.5 + 0.15 * normal.draw()).exp())).collect();
            let [lo, hi] = ratio(&a, &b).ci95.unwrap();
            (lo..=hi).contains(&0.5f64.exp())
        });
        assert!((93.0..=97.0).contains(&welch), "{welch}%");
    }
}
