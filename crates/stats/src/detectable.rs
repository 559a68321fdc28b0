//! Minimum detectable difference of a plan.

use std::collections::BTreeSet;

use crate::all_pairs::share_of_pairs;
use crate::mean::count;
use crate::power::{POWER, minimum_detectable};
use crate::prior::is_enough;
use crate::student::CONFIDENCE;
use crate::variance::Variance;

/// Returns the smallest true difference that a run finds in 80% of cases (a share: 0.1 for 10%
/// more).
///
/// The run has `treatments` with `repeats` each. [`all_pairs()`] judges its pairs together; the
/// difference is that of a pair in `asked`, where any is. Trials vary by `noise`, whose degrees of
/// freedom are those of a prior ([`RunDesign::prior`]), 0 without one. None with fewer than two
/// treatments or repeats.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::all_pairs::all_pairs;
    use crate::random::{Normal, coverage};
    use crate::run_design::RunDesign;

    impl Variance {
        /// Draws an estimate of the variance from four squares.
        fn drawn(self, normal: &mut Normal) -> Self {
            let (mut squares, count) = (0.0, 4_u8);
            (0..count).for_each(|_| squares += normal.draw().powi(2));
            Self { value: self.value * squares / f64::from(count), ..self }
        }
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
