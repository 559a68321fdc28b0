//! Treatments along an ordered factor: where their value rises, falls and is highest.
//!
//! Neighbours share what they tell. Of every stretch of levels the slope is judged, and each mean
//! over up to [`WIDEST`] neighbours beside that of those which follow, all together by the largest
//! |t|: the linear and change-point contrasts of F. Bretz, *An extension of the Williams trend test
//! to general unbalanced linear models*, Computational Statistics & Data Analysis 50 (2006). The
//! same family holds the band: with values that rise to a peak and fall after it, no level left of
//! the peak lies below the mean of those before it.

use std::collections::BTreeSet;

use crate::additive::Weight;
use crate::all_pairs::all_pairs;
use crate::common_noise::{CommonNoise, Trials};
use crate::contrast::RunTrials;
use crate::max_t::largest_t;
use crate::student::CONFIDENCE;

/// Most neighbouring levels whose mean is compared.
const WIDEST: usize = 4;
/// Most levels that are judged by neighbours: the stretches grow with their square.
const MOST_LEVELS: usize = 24;

/// Course of a value over the levels of an ordered factor.
#[derive(Clone, Debug, PartialEq)]
pub struct Course {
    /// Whether it rises somewhere.
    pub rises: bool,
    /// Whether it falls somewhere.
    pub falls: bool,
    /// First and last of the levels that may be the highest, if the value rises up to it and falls
    /// after it; none if it falls and rises again.
    pub peak: Option<[usize; 2]>,
    /// Curve that rises to a peak and falls after it; empty without such a peak, with more than 24
    /// levels, or where the treatments share no noise.
    pub curve: Vec<Fit>,
}

/// Point of a fitted curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// Value ÷ the geometric mean over all levels.
    pub value: f64,
    /// Simultaneous band: it holds the whole true curve in 95% of runs, if that has one peak.
    pub band: [f64; 2],
}

/// Returns the course over each of `sweeps`, which list treatments in the order of their levels.
///
/// In 95% of runs nothing is said of any sweep that is not so. None for a sweep of fewer than three
/// levels, or with a level of which nothing is known.
///
/// ```
/// let of = |tps: f64| [(1, tps), (2, 1.01 * tps), (3, 0.99 * tps)];
/// let trials = [100.0, 150.0, 200.0, 190.0].map(of);
/// let [a, b, c, d] = &trials;
/// let noisy = [(1, 180.0), (2, 182.0), (3, 177.0)];
/// let trials: [&[(u32, f64)]; 5] = [a, b, c, d, &noisy];
/// let run = pgdyno_stats::RunTrials::new(&trials, pgdyno_stats::RunDesign::new(false));
/// let courses = pgdyno_stats::courses(&run, &[vec![0, 1, 2, 3]]);
/// let course = courses[0].as_ref().unwrap();
/// assert!(course.rises && course.falls);
/// assert_eq!(course.peak, Some([2, 2]));
/// ```
pub fn courses(run: &RunTrials, sweeps: &[Vec<usize>]) -> Vec<Option<Course>> {
    let share = 1.0 / sweeps.len().max(1) as f64;
    let last_share = share * run.last_share();
    let of = |sweep: &Vec<usize>| {
        let by_neighbours = (3..=MOST_LEVELS).contains(&sweep.len());
        let common = run.common.as_ref().filter(|_| by_neighbours);
        let shared = common.and_then(|common| by_common_noise(common, sweep, last_share));
        shared.or_else(|| by_pairs(run, sweep, share))
    };
    sweeps.iter().map(of).collect()
}

/// A stretch of neighbouring levels: the first and the last.
type Stretch = (usize, usize);

/// Returns the stretches of at most [`WIDEST`] of `levels`.
fn stretches(levels: usize) -> Vec<Stretch> {
    let from = |first: usize| (first..levels.min(first + WIDEST)).map(move |last| (first, last));
    (0..levels).flat_map(from).collect()
}

/// Returns the weights of the mean over `stretch`.
fn mean_over(sweep: &[usize], (first, last): Stretch, sign: f64) -> Vec<Weight> {
    let weight = sign / (last - first + 1) as f64;
    sweep[first..=last].iter().map(|place| (*place, weight)).collect()
}

/// Returns the weights of the slope over a stretch, by the levels' order.
fn slope(sweep: &[usize], (first, last): Stretch) -> Vec<Weight> {
    let middle = (first + last) as f64 / 2.0;
    (first..=last).map(|level| (sweep[level], level as f64 - middle)).collect()
}

fn by_common_noise(common: &CommonNoise, sweep: &[usize], alpha_share: f64) -> Option<Course> {
    let model = &common.model;
    let places: Vec<usize> = sweep.iter().map(|t| common.place(*t)).collect::<Option<_>>()?;
    let contrast = |plus: Stretch, minus: Stretch| {
        [mean_over(&places, plus, 1.0), mean_over(&places, minus, -1.0)].concat()
    };
    let all: Stretch = (0, places.len() - 1);
    let stretches = stretches(places.len());
    // A stretch and the one that follows it.
    let steps = stretches.iter().flat_map(|before| {
        let follows = |after: &&Stretch| after.0 == before.1 + 1;
        let after = stretches.iter().filter(follows);
        after.map(|after| ((before.0, after.1), contrast(*after, *before)))
    });
    let slopes = (0..places.len()).flat_map(|first| {
        (first + 2..places.len()).map(move |last| (first, last)).map(|it| (it, slope(&places, it)))
    });
    let (changes, mut contrasts): (Vec<Stretch>, Vec<Vec<Weight>>) = steps.chain(slopes).unzip();
    let levels: Vec<Stretch> = stretches.into_iter().filter(|stretch| *stretch != all).collect();
    contrasts.extend(levels.iter().map(|stretch| contrast(*stretch, all)));
    let alpha = (1.0 - CONFIDENCE) * common.level() * alpha_share;
    let critical = largest_t(model, &contrasts)?.critical(alpha)?;
    let estimates: Vec<(f64, f64)> = contrasts
        .iter()
        .map(|contrast| {
            let log = model.contrast(contrast);
            (log.difference, critical * log.error)
        })
        .collect();
    let (of_changes, of_levels) = estimates.split_at(changes.len());
    let shown = |sign: f64| -> Vec<Stretch> {
        let is_shown = move |(_, (difference, half)): &(_, &(f64, f64))| sign * difference > *half;
        changes.iter().zip(of_changes).filter(is_shown).map(|(stretch, _)| *stretch).collect()
    };
    let (rises, falls) = (shown(1.0), shown(-1.0));
    let bounds: Vec<(Stretch, [f64; 2])> = levels
        .into_iter()
        .zip(of_levels)
        .map(|(stretch, (mean, half))| (stretch, [mean - half, mean + half]))
        .collect();
    let means: Vec<f64> = (0..places.len())
        .map(|level| model.contrast(&contrast((level, level), all)).difference)
        .collect();
    Some(Course::new(&rises, &falls, places.len(), |peak| curve(&means, &bounds, peak)))
}

/// Judges by the pairs of the sweep's treatments, each by its own trials.
fn by_pairs(run: &RunTrials, sweep: &[usize], share: f64) -> Option<Course> {
    let members: Vec<Trials> = sweep.iter().map(|t| run.trials[*t]).collect();
    if members.len() < 3 || members.iter().any(|trials| trials.is_empty()) {
        return None;
    }
    let pairs = all_pairs(&members, &BTreeSet::new(), run.design);
    if pairs.values().all(|pair| pair.p.is_none()) {
        return None;
    }
    let shown = |rises: bool| -> Vec<Stretch> {
        let is_shown = |(_, pair): &(&Stretch, &crate::Pair)| {
            let rise = pair.ratio.value.is_some_and(|before_over_after| before_over_after < 1.0);
            rise == rises && pair.p.is_some_and(|p| p <= (1.0 - CONFIDENCE) * share)
        };
        pairs.iter().filter(is_shown).map(|(levels, _)| *levels).collect()
    };
    Some(Course::new(&shown(true), &shown(false), sweep.len(), |_| Vec::new()))
}

impl Course {
    /// Creates the course of a value that was shown to rise within some stretches, and to fall
    /// within others.
    fn new(
        rises: &[Stretch],
        falls: &[Stretch],
        levels: usize,
        curve: impl Fn([usize; 2]) -> Vec<Fit>,
    ) -> Self {
        // The peak is no later than the end of the first fall, and no earlier than the begin of the
        // last rise: else it falls before its peak, or rises after it.
        let last = falls.iter().map(|(_, end)| end - 1).min().unwrap_or(levels - 1);
        let first = rises.iter().map(|(begin, _)| begin + 1).max().unwrap_or(0);
        let peak = (first <= last).then_some([first, last]);
        let curve = peak.map(curve).unwrap_or_default();
        Self { rises: !rises.is_empty(), falls: !falls.is_empty(), peak, curve }
    }
}

/// Fits the curve with a peak between the levels of `peak` to the `means` of levels, and its band
/// from the `bounds` of stretches (all logarithms).
fn curve(means: &[f64], bounds: &[(Stretch, [f64; 2])], [first, last]: [usize; 2]) -> Vec<Fit> {
    let levels = means.len();
    let squares = |fit: &[f64]| -> f64 {
        fit.iter().zip(means).map(|(fit, mean)| (fit - mean).powi(2)).sum()
    };
    let fits = (first..=last).map(|peak| with_peak(means, peak));
    let Some(fit) = fits.min_by(|a, b| squares(a).total_cmp(&squares(b))) else {
        return Vec::new();
    };
    let band = |level: usize| {
        let with_peak_at = |peak: usize| {
            // A stretch that the level ends on the side of the peak lies below it; one that it
            // begins there, up to the peak, lies above it.
            let is_below =
                |(a, b): Stretch| (level <= peak && b == level) || (level >= peak && a == level);
            let is_above = |(a, b): Stretch| {
                (level <= peak && a == level && b <= peak)
                    || (level >= peak && b == level && a >= peak)
            };
            let ends = |is: &dyn Fn(Stretch) -> bool, end: usize| {
                bounds
                    .iter()
                    .filter(|(stretch, _)| is(*stretch))
                    .map(|(_, ends)| ends[end])
                    .collect::<Vec<f64>>()
            };
            let low = ends(&is_below, 0).into_iter().fold(f64::NEG_INFINITY, f64::max);
            let high = ends(&is_above, 1).into_iter().fold(f64::INFINITY, f64::min);
            [low, high]
        };
        let each = (first..=last).map(with_peak_at).filter(|[low, high]| low <= high);
        each.reduce(|a, b| [a[0].min(b[0]), a[1].max(b[1])])
    };
    (0..levels)
        .map(|level| {
            let [low, high] = band(level)?;
            let value = fit[level].exp();
            Some(Fit { value, band: [low.exp().min(value), high.exp().max(value)] })
        })
        .collect::<Option<Vec<Fit>>>()
        .unwrap_or_default()
}

/// Returns the least-squares fit to `means` that does not fall up to `peak`, and does not rise
/// after it.
fn with_peak(means: &[f64], peak: usize) -> Vec<f64> {
    let rising = not_falling(&means[..peak]);
    let mut falling = not_falling(&means[peak + 1..].iter().rev().copied().collect::<Vec<f64>>());
    falling.reverse();
    // The peak takes in what would lie above it.
    let (mut low, mut high) = (peak, peak);
    let mut top = means[peak];
    loop {
        let left = low.checked_sub(1).filter(|i| rising[*i] > top);
        let right = Some(high + 1).filter(|i| *i < means.len() && falling[*i - peak - 1] > top);
        match (left, right) {
            (None, None) => break,
            (Some(left), _) => low = left,
            (None, Some(right)) => high = right,
        }
        let count = (high - low + 1) as f64;
        top = means[low..=high].iter().sum::<f64>() / count;
    }
    let at = |level: usize| match level {
        _ if (low..=high).contains(&level) => top,
        _ if level < low => rising[level],
        _ => falling[level - peak - 1],
    };
    (0..means.len()).map(at).collect()
}

/// Returns the least-squares fit that does not fall (pool adjacent violators: M. Ayer and others,
/// *An empirical distribution function for sampling with incomplete information*, Annals of
/// Mathematical Statistics 26, 1955).
fn not_falling(values: &[f64]) -> Vec<f64> {
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for value in values {
        pools.push((*value, 1));
        while let [.., (before, n), (after, m)] = pools[..]
            && before > after
        {
            pools.truncate(pools.len() - 2);
            let mean = (before * n as f64 + after * m as f64) / (n + m) as f64;
            pools.push((mean, n + m));
        }
    }
    pools.into_iter().flat_map(|(mean, count)| std::iter::repeat_n(mean, count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_design::RunDesign;

    #[test]
    fn a_fit_rises_to_its_peak_and_falls_after_it() {
        assert_eq!(not_falling(&[1.0, 3.0, 2.0, 4.0, 0.0]), [1.0, 2.25, 2.25, 2.25, 2.25]);
        assert_eq!(with_peak(&[1.0, 3.0, 2.0, 4.0, 0.0], 3), [1.0, 2.5, 2.5, 4.0, 0.0]);
        // The peak takes in neighbours that lie above it.
        assert_eq!(with_peak(&[1.0, 5.0, 3.0, 4.0, 0.0], 2), [1.0, 4.0, 4.0, 4.0, 0.0]);
        assert_eq!(with_peak(&[3.0, 2.0, 1.0], 2), [2.0; 3]);
    }

    #[test]
    fn a_peak_lies_between_what_rises_last_and_what_falls_first() {
        let peak = |rises: &[Stretch], falls: &[Stretch]| {
            Course::new(rises, falls, 6, |_| Vec::new()).peak
        };
        assert_eq!(peak(&[], &[]), Some([0, 5]));
        assert_eq!(peak(&[(0, 1), (1, 3)], &[(2, 5)]), Some([2, 4]));
        assert_eq!(peak(&[(0, 5)], &[]), Some([1, 5]));
        assert_eq!(peak(&[(3, 4)], &[(0, 1)]), None, "it falls, and rises again");
    }

    /// Returns three repeats of `tps`, whose last digits differ.
    fn repeats(tps: f64) -> Vec<(u32, f64)> {
        vec![(1, tps), (2, 1.01 * tps), (3, 0.992 * tps)]
    }

    #[test]
    fn many_levels_are_judged_by_their_pairs() {
        let trials: Vec<Vec<(u32, f64)>> =
            (0..200).map(|level| repeats(if level < 100 { 100.0 } else { 150.0 })).collect();
        let trials: Vec<Trials> = trials.iter().map(Vec::as_slice).collect();
        let run = RunTrials::new(&trials, RunDesign::new(false));
        let found = courses(&run, &[(0..200).collect()]).remove(0).unwrap();
        assert!(found.rises && !found.falls && found.curve.is_empty());
        assert_eq!(found.peak, Some([100, 199]));
    }

    #[test]
    fn a_sweep_that_cannot_be_judged_has_no_course() {
        let trials: Vec<Vec<(u32, f64)>> = [100.0, 150.0, 180.0, 170.0].map(repeats).into();
        let known = |trials: &[Vec<(u32, f64)>], sweep: Vec<usize>| {
            let trials: Vec<Trials> = trials.iter().map(Vec::as_slice).collect();
            courses(&RunTrials::new(&trials, RunDesign::new(false)), &[sweep]).remove(0)
        };
        assert!(known(&trials, vec![0, 1, 2, 3]).is_some_and(|course| course.rises));
        assert_eq!(known(&trials, vec![0, 1]), None, "two levels are a pair");
        let mut missing = trials.clone();
        missing[1].clear();
        assert_eq!(known(&missing, vec![0, 1, 2, 3]), None);
        assert!(known(&missing, vec![0, 2, 3]).is_some_and(|course| course.rises));
        let mut zero = trials.clone();
        zero[1][0].1 = 0.0;
        assert_eq!(known(&zero, vec![0, 1, 2]).and_then(|course| course.peak), Some([1, 2]));
        let once: Vec<Vec<(u32, f64)>> = trials.iter().map(|t| t[..1].to_vec()).collect();
        assert_eq!(known(&once, vec![0, 1, 2, 3]), None);
        let equal = vec![vec![(1, 5.0), (2, 5.0)]; 4];
        assert_eq!(known(&equal, vec![0, 1, 2, 3]), None);
    }
}
