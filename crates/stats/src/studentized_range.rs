//! Several means of equal error: how far apart they lie by chance.
//!
//! With k means and one estimate of their error with ν degrees of freedom:
//!
//! - The largest |t| of all pairs is the studentized range ÷ √2 (J. W. Tukey, *The problem of
//!   multiple comparisons*, 1953). Where errors differ, the same critical value holds or is too
//!   large (A. J. Hayter, *A proof of the conjecture that the Tukey–Kramer multiple comparisons
//!   procedure is conservative*, Annals of Statistics 12, 1984).
//! - The largest t of all others against one of them is Dunnett's one-sided statistic (C. W.
//!   Dunnett, *A multiple comparison procedure for comparing several treatments with a control*,
//!   Journal of the American Statistical Association 50, 1955).

use std::collections::BTreeMap;
use std::f64::consts::{SQRT_2, TAU};
use std::sync::{Arc, Mutex, PoisonError};

use statrs::distribution::{ContinuousCDF, Normal};

use crate::scale::{Scale, least};

/// Distance of two nodes, in z and in the range.
const STEP: f64 = 0.05;
/// Nodes of z lie from −`HALF` to `HALF` steps: 9 standard deviations.
const HALF: usize = 180;
/// Nodes of the range: beyond 14 nothing is left.
const RANGES: usize = 280;

/// P(the largest difference of k normal deviates > i × [`STEP`]), for each i.
pub(crate) type Differences = Arc<[f64]>;

/// Differences of means that are compared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Compared {
    /// Each with each other, in both directions.
    AllPairs,
    /// How far the others lie above one of them.
    LeadsOverOne,
}

/// Largest t of the compared differences.
pub(crate) struct LargestT {
    beyond: Differences,
    scale: Scale,
}

impl LargestT {
    /// Creates the distribution for `means` (at least 2) and the error's degrees of `freedom`; none
    /// outside the domain.
    pub(crate) fn new(compared: Compared, means: usize, freedom: f64) -> Option<Self> {
        Self::from_chances(differences(compared, means)?, freedom)
    }

    /// Creates the distribution of the largest difference with the chances `beyond` ÷ an error's
    /// estimate.
    pub(crate) fn from_chances(beyond: Differences, freedom: f64) -> Option<Self> {
        Some(Self { beyond, scale: Scale::new(freedom)? })
    }

    /// Returns the p-value of `t`, not negative: the chance that the largest is at least as large.
    pub(crate) fn p(&self, t: f64) -> Option<f64> {
        self.scale.mean(|s| self.difference_beyond(t * SQRT_2 * s)).map(|p| p.clamp(0.0, 1.0))
    }

    /// Returns the t that the largest exceeds with chance `alpha`; none outside the domain.
    pub(crate) fn critical(&self, alpha: f64) -> Option<f64> {
        least(|t| Some(alpha - self.p(t)?))
    }

    /// Returns the chance of a difference beyond `difference`, by the cubic through the four
    /// nearest nodes.
    fn difference_beyond(&self, difference: f64) -> f64 {
        let steps = difference / STEP;
        if steps >= (RANGES - 2) as f64 {
            return 0.0;
        }
        let first = (steps as usize).saturating_sub(1);
        let x = steps - first as f64;
        let [a, b, c, d] = [0, 1, 2, 3].map(|i| self.beyond[first + i]);
        let cubic = a * (x - 1.0) * (x - 2.0) * (x - 3.0) / -6.0
            + b * x * (x - 2.0) * (x - 3.0) / 2.0
            - c * x * (x - 1.0) * (x - 3.0) / 2.0
            + d * x * (x - 1.0) * (x - 2.0) / 6.0;
        cubic.clamp(0.0, 1.0)
    }
}

/// Returns the distribution of the largest difference that was `drawn`.
pub(crate) fn tabulated(mut drawn: Vec<f64>) -> Differences {
    drawn.sort_by(f64::total_cmp);
    let beyond = |node: usize| {
        let within = drawn.partition_point(|difference| *difference <= node as f64 * STEP);
        (drawn.len() - within) as f64 / drawn.len().max(1) as f64
    };
    (0..RANGES).map(beyond).collect()
}

/// Returns the distribution of the largest difference of `means` deviates; computed once in a
/// process. None for fewer than 2.
fn differences(compared: Compared, means: usize) -> Option<Differences> {
    static KNOWN: Mutex<BTreeMap<(Compared, usize), Differences>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = known.get(&(compared, means)) {
        return Some(Arc::clone(found));
    }
    let normal = Normal::new(0.0, 1.0).ok().filter(|_| means >= 2)?;
    let others = i32::try_from(means - 1).ok()?;
    let z = |node: usize| (node as f64 - HALF as f64) * STEP;
    let below: Vec<f64> = (0..=2 * HALF).map(|node| normal.cdf(z(node))).collect();
    let all_means = means as f64;
    let density: Vec<f64> = (0..=2 * HALF).map(|node| (-z(node).powi(2) / 2.0).exp()).collect();
    // The chance that all others lie within `steps` of the deviate at `node`.
    let others_within = |node: usize, steps: usize| match compared {
        // It is the highest of all.
        Compared::AllPairs => {
            let low = node.checked_sub(steps).map_or(0.0, |low| below[low]);
            all_means * (below[node] - low).powi(others)
        }
        Compared::LeadsOverOne => below.get(node + steps).map_or(1.0, |high| high.powi(others)),
    };
    let within = |steps: usize| -> f64 {
        let at = |node: usize| density[node] * others_within(node, steps);
        (0..=2 * HALF).map(at).sum::<f64>() * STEP / TAU.sqrt()
    };
    let found: Differences = (0..RANGES).map(|i| (1.0 - within(i)).clamp(0.0, 1.0)).collect();
    known.insert((compared, means), Arc::clone(&found));
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::student::t_two_sided;

    #[test]
    fn critical_values_are_those_of_the_printed_tables() {
        // The upper 5% points of the studentized range, as any textbook has them (÷ √2 here).
        for (means, freedom, q) in [
            (2, 10.0, 3.151),
            (3, 4.0, 5.040),
            (4, 6.0, 4.896),
            (10, 20.0, 5.008),
            (20, 60.0, 5.241),
        ] {
            let found =
                LargestT::new(Compared::AllPairs, means, freedom).unwrap().critical(0.05).unwrap()
                    * SQRT_2;
            assert!((found - q).abs() < 1.5e-3, "k={means} ν={freedom}: {found} is not {q}");
        }
    }

    #[test]
    fn leads_over_one_are_dunnetts() {
        // One-sided 5% points for so many treatments against a control: the first two as Dunnett's
        // table has them, the others of two million simulated experiments.
        for (others, freedom, t) in
            [(1, 10.0, 1.81), (2, 10.0, 2.15), (3, 6.0, 2.558), (5, 20.0, 2.387), (9, 60.0, 2.475)]
        {
            let leads = LargestT::new(Compared::LeadsOverOne, others + 1, freedom).unwrap();
            let found = leads.critical(0.05).unwrap();
            assert!((found - t).abs() < 6e-3, "k={others} ν={freedom}: {found} is not {t}");
        }
    }

    #[test]
    fn the_largest_of_one_pair_is_students() {
        for freedom in [1.0, 2.0, 5.0, 40.0] {
            let pair = LargestT::new(Compared::AllPairs, 2, freedom).unwrap();
            for t in [0.0, 0.5, 2.0, 6.0] {
                let (found, wanted) = (pair.p(t).unwrap(), t_two_sided(t, freedom).unwrap());
                assert!((found - wanted).abs() < 2e-4, "ν={freedom} t={t}: {found}, {wanted}");
            }
        }
        assert!(LargestT::new(Compared::AllPairs, 1, 5.0).is_none());
    }
}
