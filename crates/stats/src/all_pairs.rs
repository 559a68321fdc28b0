//! All pairs of a run's treatments, judged together.
//!
//! Where the treatments' repeats spread alike ([`CommonNoise`]), all trials together estimate one
//! noise, and the largest of all differences is judged by the studentized range. Otherwise each
//! treatment has its own ([`OwnNoise`]), or each pair where treatments are few, and Holm's rule
//! judges them together.

use std::collections::{BTreeMap, BTreeSet};

use crate::additive::{Additive, blocks};
use crate::common_noise::{CommonNoise, Trials, level};
use crate::holm::holm;
use crate::max_t::largest_t;
use crate::own_noise::OwnNoise;
use crate::ratio::{LogDifference, Method, Noise, Ratio, paired_ratio, unpaired_ratio};
use crate::run_design::RunDesign;
use crate::student::{CONFIDENCE, t_two_sided};
use crate::studentized_range::{Compared, LargestT};

/// Chance of any false verdict.
const ALPHA: f64 = 1.0 - CONFIDENCE;

/// Ratio of two treatments that was judged together with all other pairs of their run.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// The ratio, with this pair's own p-value. Its interval is simultaneous: all pairs' intervals
    /// hold their truths in 95% of runs.
    pub ratio: Ratio,
    /// p-value beside all other pairs: significant at 5% or less.
    pub p: Option<f64>,
    /// Share of the 5% at which this pair alone would be judged as strictly.
    pub share: f64,
}

/// Part of the 5% of those pairs that the run's question asks for. All others share the rest.
const OF_ASKED: f64 = 0.6;

/// Judges all pairs of treatments; the key is (a, b) with a < b, for the ratio `a` ÷ `b`.
///
/// A pair without trials on a side is left out. `asked` are the pairs that the run's question is
/// about: if they are at most a third of all, they get the larger part of the 5%, and so narrower
/// intervals. Otherwise every pair is judged alike.
///
/// ```
/// let quick = [(1, 131.0), (2, 128.0), (3, 130.0)];
/// let slow = [(1, 100.0), (2, 102.0), (3, 101.0)];
/// let other = [(1, 101.0), (2, 99.0), (3, 102.0)];
/// let judged = pgdyno_stats::all_pairs(
///     &[&quick, &slow, &other],
///     &[].into(),
///     pgdyno_stats::RunDesign::new(true),
/// );
/// assert!(judged[&(0, 1)].p.is_some_and(|p| p < 0.05));
/// assert!(judged[&(1, 2)].p.is_some_and(|p| p > 0.05));
/// ```
pub fn all_pairs(
    trials: &[Trials],
    asked: &BTreeSet<(usize, usize)>,
    design: RunDesign,
) -> BTreeMap<(usize, usize), Pair> {
    let Some(looks) = design.looks else { return at_one_look(trials, asked, design, 1.0) };
    let blocks = blocks(trials);
    let mut judged: BTreeMap<(usize, usize), Pair> = BTreeMap::new();
    for (last, alpha_share) in looks.at_blocks(&blocks) {
        let until: Vec<Vec<(u32, f64)>> = trials
            .iter()
            .map(|t| t.iter().filter(|(block, _)| *block <= last).copied().collect())
            .collect();
        let until: Vec<Trials> = until.iter().map(Vec::as_slice).collect();
        for (pair, found) in at_one_look(&until, asked, design, alpha_share) {
            let found = match judged.remove(&pair) {
                Some(earlier) => found.after(earlier),
                None => found,
            };
            judged.insert(pair, found);
        }
    }
    if judged.is_empty() {
        let n = u32::try_from(blocks.len()).unwrap_or(u32::MAX);
        return at_one_look(trials, asked, design, looks.alpha_share(n));
    }
    judged
}

impl Pair {
    /// Combines this look with `earlier` ones.
    fn after(self, earlier: Self) -> Self {
        let p = match (self.p, earlier.p) {
            (Some(now), Some(then)) => Some(now.min(then)),
            (now, _) => now,
        };
        Self { ratio: self.ratio.after(earlier.ratio), p, ..self }
    }
}

/// Judges all pairs with `alpha_share` of the 5%.
fn at_one_look(
    trials: &[Trials],
    asked: &BTreeSet<(usize, usize)>,
    design: RunDesign,
    alpha_share: f64,
) -> BTreeMap<(usize, usize), Pair> {
    let measured: Vec<usize> = (0..trials.len()).filter(|t| !trials[*t].is_empty()).collect();
    let from = |i: usize| measured[i + 1..].iter().map(move |b| (i, *b));
    let all = (0..measured.len()).flat_map(from).map(|(i, b)| (measured[i], b));
    let (asked, others): (Vec<_>, Vec<_>) = all.partition(|pair| asked.contains(pair));
    let common = CommonNoise::new(trials, design);
    let own = if common.is_none() { OwnNoise::new(trials, design.has_blocks) } else { None };
    let by_pair = if design.has_blocks { paired_ratio } else { unpaired_ratio };
    let ratio = |a: usize, b: usize| {
        let moderated = own.as_ref().and_then(|own| own.ratio(alpha_share, a, b));
        moderated.unwrap_or_else(|| by_pair(alpha_share, trials[a], trials[b]))
    };
    let judged = |pairs: &[(usize, usize)], part: f64, is_alone: bool| {
        let judgement = Judgement { alpha_share, part, is_alone };
        let by_common = common.as_ref().and_then(|it| judgement.by_common_noise(it, pairs));
        let mut judged = by_common.unwrap_or_default();
        let left = pairs.iter().filter(|pair| !judged.contains_key(*pair));
        judged.extend(judgement.by_own_noise(left.copied(), ratio));
        judged
    };
    if !are_few(asked.len(), asked.len() + others.len()) {
        return judged(&[asked, others].concat(), 1.0, false);
    }
    let mut all = judged(&asked, OF_ASKED, true);
    all.extend(judged(&others, 1.0 - OF_ASKED, false));
    all
}

/// Returns whether so many pairs that were asked for gain by a part of their own: they are at most
/// a third of all.
fn are_few(asked: usize, all: usize) -> bool {
    asked > 0 && 3 * asked <= all
}

/// Judgement of pairs that are judged together.
#[derive(Clone, Copy)]
struct Judgement {
    /// Share of the 5% that this look may spend.
    alpha_share: f64,
    /// Part of it that these pairs may spend.
    part: f64,
    /// Whether the largest difference of these pairs judges them, or that of all pairs.
    is_alone: bool,
}

impl Judgement {
    /// Judges each pair by its own `ratio`, all of them together by Holm's rule.
    fn by_own_noise(
        self,
        pairs: impl Iterator<Item = (usize, usize)>,
        ratio: impl Fn(usize, usize) -> Ratio,
    ) -> BTreeMap<(usize, usize), Pair> {
        let ratios: Vec<((usize, usize), Ratio)> =
            pairs.map(|(a, b)| ((a, b), ratio(a, b))).collect();
        let alone: Vec<f64> = ratios.iter().filter_map(|(_, ratio)| ratio.p).collect();
        let share = self.part / alone.len().max(1) as f64;
        let mut together = holm(&alone).into_iter();
        let judged = |(pair, ratio): ((usize, usize), Ratio)| {
            let p = ratio.p.and_then(|_| together.next()).map(|p| (p / self.part).min(1.0));
            let mut ratio = ratio.with_interval_at(share);
            if p.is_some_and(|p| p <= ALPHA) {
                ratio.ci95 =
                    ratio.ci95.zip(ratio.value).map(|(ci95, value)| on_one_side(ci95, value));
            }
            let p = p.filter(|_| ratio.ci95.is_some());
            (pair, Pair { ratio, p, share })
        };
        ratios.into_iter().map(judged).collect()
    }

    /// Judges those of `pairs` whose treatments share the `common` noise, by the largest
    /// difference.
    fn by_common_noise(
        self,
        common: &CommonNoise,
        pairs: &[(usize, usize)],
    ) -> Option<BTreeMap<(usize, usize), Pair>> {
        let CommonNoise { usable, model } = common;
        let place =
            |(a, b): &(usize, usize)| Some(((*a, *b), (common.place(*a)?, common.place(*b)?)));
        let pairs: Vec<_> = pairs.iter().filter_map(place).collect();
        let largest = if self.is_alone {
            largest_difference(model, pairs.iter().map(|(_, places)| *places))?
        } else {
            LargestT::new(Compared::AllPairs, usable.len(), model.rest().freedom)?
        };
        let level = self.alpha_share * self.part * common.level();
        let share = alike_share(&largest, level, model.rest().freedom)? / self.alpha_share;
        let noise = Noise::Shared { treatments: usable.len() };
        let judged = |(pair, (i, j)): &((usize, usize), (usize, usize))| {
            let log = model.difference(*i, *j);
            let LogDifference { difference, error, .. } = log;
            let ratio = Ratio::from_log(Method::Pooled, log, self.alpha_share, noise)
                .with_interval_at(share);
            let p = largest.p((difference / error).abs()).filter(|_| ratio.ci95.is_some());
            (*pair, Pair { ratio, p: p.map(|p| (p / level).min(1.0)), share })
        };
        Some(pairs.iter().map(judged).collect())
    }
}

/// Ends an interval at 1, on the side where the `value` is not.
///
/// Holm's rule may reject what Bonferroni's interval, which is wider, still holds. This is the
/// bound of O. Guilbaud, *Simultaneous confidence regions corresponding to Holm's step-down
/// procedure*, Biometrical Journal 50 (2008).
fn on_one_side([low, high]: [f64; 2], value: f64) -> [f64; 2] {
    if value > 1.0 { [low.max(1.0), high] } else { [low, high.min(1.0)] }
}

/// Returns the distribution of the largest |t| of `pairs` of the model's treatments.
fn largest_difference(
    model: &Additive,
    pairs: impl Iterator<Item = (usize, usize)>,
) -> Option<LargestT> {
    largest_t(model, &pairs.map(|(a, b)| vec![(a, 1.0), (b, -1.0)]).collect::<Vec<_>>())
}

/// Returns the share of the 5% at which one pair alone would be judged as strictly as the `largest`
/// of all at `level`.
fn alike_share(largest: &LargestT, level: f64, freedom: f64) -> Option<f64> {
    Some(t_two_sided(largest.critical(ALPHA * level)?, freedom)? / ALPHA)
}

/// Returns that share for an `asked` pair of `treatments` (at least 2) whose spreads are alike; for
/// any pair where all are judged alike. Two treatments share their noise only with a prior.
pub(crate) fn share_of_pairs(
    treatments: usize,
    asked: &BTreeSet<(usize, usize)>,
    freedom: f64,
    has_prior: bool,
) -> Option<f64> {
    if treatments == 2 {
        return Some(if has_prior { level(2) } else { 1.0 });
    }
    let all = treatments * (treatments - 1) / 2;
    if !are_few(asked.len(), all) {
        let largest = LargestT::new(Compared::AllPairs, treatments, freedom)?;
        return alike_share(&largest, level(treatments), freedom);
    }
    let model = Additive::complete(treatments, freedom);
    let largest = largest_difference(&model, asked.iter().copied())?;
    alike_share(&largest, OF_ASKED * level(treatments), freedom)
}
