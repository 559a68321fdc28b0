//! Components of the noise: variances of logarithms, each with what it is known by, and what a plan can
//! tell with them.

use std::collections::BTreeSet;

use crate::additive::{Additive, is_usable, logarithms};
use crate::all_pairs::share_of_pairs;
use crate::power::{POWER, minimum_detectable};
use crate::prior::is_enough;
use crate::student::CONFIDENCE;

/// A variance of logarithms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Variance {
    /// The estimate.
    pub value: f64,
    /// Its degrees of freedom.
    pub freedom: f64,
}

impl Variance {
    /// Returns the mean of `variances`, each weighted by its degrees of freedom; none without any.
    pub fn pooled(variances: impl IntoIterator<Item = Self>) -> Option<Self> {
        let add =
            |(sum, freedom): (f64, f64), v: Self| (sum + v.value * v.freedom, freedom + v.freedom);
        let (sum, freedom) = variances.into_iter().fold((0.0, 0.0), add);
        (freedom > 0.0).then(|| Self { value: sum / freedom, freedom })
    }

    /// Returns the relative standard deviation (a share: 0.01 for 1%).
    pub fn spread(&self) -> f64 {
        self.value.max(0.0).sqrt().exp_m1()
    }
}

/// Returns the variance of a run's trials around their treatments and blocks.
///
/// `trials` are each treatment's as (block, value). `has_blocks` is as in
/// [`all_pairs()`](crate::all_pairs()). None where nothing is left to estimate it from.
pub fn rest(trials: &[&[(u32, f64)]], has_blocks: bool) -> Option<Variance> {
    let usable: Vec<&[(u32, f64)]> = trials.iter().copied().filter(|t| is_usable(t)).collect();
    // The blocks of a single treatment are its repeats.
    let model = Additive::fit(&logarithms(&usable), has_blocks && usable.len() > 1)?;
    Some(model.rest())
}

/// Parts of the variance between equal runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Days {
    /// That of runs of one day.
    pub within: Variance,
    /// That of days, beyond what their runs differ by; it may be estimated as less than 0.
    pub between: Variance,
}

/// Splits the variance of runs in `groups` of equal ones, each (day, mean logarithm).
///
/// Groups are the treatments of the same runs, so that both are known by the degrees of freedom of the
/// largest group.
///
/// A nested analysis of variance with unequal numbers (S. R. Searle, *Linear Models*, 1971). None
/// unless a group has two runs of one day, and one has runs of two days.
pub fn days(groups: &[Vec<(u64, f64)>]) -> Option<Days> {
    let (mut within, mut within_freedom) = (0.0, 0.0);
    let (mut between, mut between_freedom, mut runs_a_day) = (0.0, 0.0, 0.0);
    let (mut most_within, mut most_between) = (0.0_f64, 0.0_f64);
    for group in groups.iter().filter(|group| !group.is_empty()) {
        let mut days: Vec<u64> = group.iter().map(|(day, _)| *day).collect();
        days.sort_unstable();
        days.dedup();
        let all = mean(group.iter().map(|(_, value)| *value));
        let mut squared_sizes = 0.0;
        for day in &days {
            let of_day = || group.iter().filter(|(other, _)| other == day).map(|(_, value)| *value);
            let (size, level) = (count(of_day().count()), mean(of_day()));
            within += of_day().map(|value| (value - level).powi(2)).sum::<f64>();
            between += size * (level - all).powi(2);
            squared_sizes += size * size;
        }
        within_freedom += count(group.len() - days.len());
        between_freedom += count(days.len() - 1);
        most_within = most_within.max(count(group.len() - days.len()));
        most_between = most_between.max(count(days.len() - 1));
        runs_a_day += count(group.len()) - squared_sizes / count(group.len());
    }
    (within_freedom > 0.0 && between_freedom > 0.0).then(|| {
        let within = Variance { value: within / within_freedom, freedom: most_within };
        let excess = between / between_freedom - within.value;
        let value = excess / (runs_a_day / between_freedom);
        Days { within, between: Variance { value, freedom: most_between } }
    })
}

/// Returns the smallest true difference that a run finds in 80% of cases (a share: 0.1 for 10% more).
///
/// The run has `treatments` with `repeats` each, its pairs are judged together by [`all_pairs()`], and
/// its trials vary by `noise`, of which its degrees of freedom count before the run ([`RunDesign::prior`]).
/// The difference is one of those that were `asked` for. None with fewer than two treatments or repeats.
///
/// [`all_pairs()`]: crate::all_pairs()
/// [`RunDesign::prior`]: crate::RunDesign::prior
pub fn detectable(
    treatments: usize,
    asked: &BTreeSet<(usize, usize)>,
    repeats: u32,
    has_blocks: bool,
    noise: Variance,
) -> Option<f64> {
    let left = f64::from(repeats.checked_sub(1).filter(|left| *left > 0)?);
    let others = count(treatments.checked_sub(1).filter(|others| *others > 0)?);
    let own = left * if has_blocks { others } else { others + 1.0 };
    let before = if is_enough(own) { noise.freedom } else { 0.0 };
    let freedom = own + before;
    let alpha = (1.0 - CONFIDENCE) * share_of_pairs(treatments, asked, freedom, before > 0.0)?;
    let error = (2.0 * noise.value / f64::from(repeats)).sqrt();
    let share = (minimum_detectable(freedom, alpha, POWER)? * error).exp_m1();
    share.is_finite().then_some(share)
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = values.fold((0.0, 0), |(sum, n), value| (sum + value, n + 1));
    sum / count(n)
}

#[allow(clippy::cast_precision_loss)]
fn count(n: usize) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::all_pairs::all_pairs;
    use crate::random::coverage;
    use crate::run_design::RunDesign;

    impl Variance {
        /// Draws an estimate with about as many degrees of freedom.
        fn drawn(self, normal: &mut crate::random::Normal) -> Self {
            let (mut squares, count) = (0.0, 4_u8);
            (0..count).for_each(|_| squares += normal.draw().powi(2));
            Self { value: self.value * squares / f64::from(count), ..self }
        }
    }

    #[test]
    fn variances_are_pooled_by_their_degrees_of_freedom() {
        let of = |value, freedom| Variance { value, freedom };
        assert_eq!(Variance::pooled([of(1.0, 1.0), of(4.0, 2.0)]), Some(of(3.0, 3.0)));
        assert_eq!(Variance::pooled([]), None);
    }

    #[test]
    fn treatments_and_blocks_are_no_rest() {
        // Effects 0, 1, 3 and blocks 0, 10, 20; ±0.1 in four cells: 0.04 on 4 degrees of freedom.
        let rest_of = [[0.1, -0.1, 0.0], [-0.1, 0.1, 0.0], [0.0, 0.0, 0.0]];
        let trials: Vec<Vec<(u32, f64)>> = [0.0, 1.0, 3.0]
            .iter()
            .zip(rest_of)
            .map(|(effect, rest)| {
                let of = |(block, rest): (u32, f64)| {
                    (block, (effect + 10.0 * f64::from(block) + rest).exp())
                };
                (0..).zip(rest).map(of).collect()
            })
            .collect();
        let trials: Vec<&[(u32, f64)]> = trials.iter().map(Vec::as_slice).collect();
        let found = rest(&trials, true).unwrap();
        assert!((found.value - 0.01).abs() < 1e-9 && (found.freedom - 4.0).abs() < 1e-9);
        // Of one treatment alone the blocks are its repeats: 0.1, 9.9, 20.
        let alone = rest(&trials[..1], true).unwrap();
        assert!((alone.value - 99.01).abs() < 0.01 && (alone.freedom - 2.0).abs() < 1e-9);
        assert_eq!(rest(&[&[(1, 0.0), (2, 1.0)]], true), None);
    }

    #[test]
    fn days_are_told_from_their_runs_by_hand() {
        // Days with means 1 and 4 of two runs each, ±1: within 4 on 2 degrees of freedom, so 2.
        // Between 2 × (1.5² + 1.5²) = 9 on one; (9 − 2) ÷ 2 runs a day = 3.5.
        let found = days(&[vec![(1, 0.0), (1, 2.0), (2, 3.0), (2, 5.0)]]).unwrap();
        assert_eq!(found.within, Variance { value: 2.0, freedom: 2.0 });
        assert_eq!(found.between, Variance { value: 3.5, freedom: 1.0 });
        assert_eq!(days(&[vec![(1, 0.0), (1, 2.0)]]), None);
        assert_eq!(days(&[vec![(1, 0.0), (2, 2.0)]]), None);
    }

    #[test]
    fn a_plan_finds_what_it_was_said_to_find_in_four_of_five_runs() {
        let none = BTreeSet::new();
        let two = BTreeSet::from([(0, 1), (2, 3)]);
        let with_first = (1..8).map(|other| (0, other)).collect();
        for (treatments, asked, repeats, known_by) in [
            (2, &none, 5, 0.0),
            (2, &none, 3, 3.9),
            (4, &none, 3, 0.0),
            (4, &none, 3, 3.9),
            (4, &two, 3, 0.0),
            (4, &none, 6, 0.0),
            (8, &none, 3, 0.0),
            (8, &with_first, 3, 0.0),
        ] {
            let noise = Variance { value: 0.01_f64.powi(2), freedom: known_by };
            let effect = detectable(treatments, asked, repeats, true, noise).unwrap();
            let found = coverage(2000, |normal| {
                let blocks: Vec<f64> = (0..repeats).map(|_| 0.05 * normal.draw()).collect();
                let trials: Vec<Vec<(u32, f64)>> = (0..treatments)
                    .map(|t| {
                        let level = if t == 0 { effect.ln_1p() } else { 0.0 };
                        (0..)
                            .zip(&blocks)
                            .map(|(b, of)| (b, (level + of + 0.01 * normal.draw()).exp()))
                            .collect()
                    })
                    .collect();
                let trials: Vec<&[(u32, f64)]> = trials.iter().map(Vec::as_slice).collect();
                let prior = (known_by > 0.0).then(|| noise.drawn(normal));
                let design = RunDesign { prior, ..RunDesign::new(true) };
                all_pairs(&trials, asked, design)[&(0, 1)].p.is_some_and(|p| p <= 0.05)
            });
            eprintln!(
                "{treatments} × {repeats}, {} asked, {known_by} known: +{:.2}% found in {found}%",
                asked.len(),
                effect * 100.0
            );
            assert!((76.0..=84.0).contains(&found), "{treatments} × {repeats}: {found}%");
        }
        let noise = Variance { value: 0.1, freedom: 0.0 };
        let of = |treatments, repeats| detectable(treatments, &none, repeats, true, noise);
        assert_eq!((of(1, 5), of(3, 1)), (None, None));
    }
}
