//! The largest |t| of several contrasts that one noise judges together.
//!
//! T. Hothorn, F. Bretz and P. Westfall, *Simultaneous inference in general parametric models*,
//! Biometrical Journal 50 (2008), with the multivariate normal simulated from a fixed seed. Of
//! 10,000 draws, a chance of 5% has a standard error of 0.2 points.

use std::collections::BTreeMap;
use std::f64::consts::SQRT_2;
use std::sync::{Mutex, PoisonError};

use crate::additive::{Additive, Weight};
use crate::random::Normal;
use crate::studentized_range::{Differences, LargestT, tabulated};

const DRAWS: u32 = 10_000;

/// Returns the distribution of the largest |t| of `contrasts`; none if one of them has no variance.
pub(crate) fn largest_t(model: &Additive, contrasts: &[Vec<Weight>]) -> Option<LargestT> {
    let rows = standardised(model, contrasts)?;
    LargestT::from_chances(maxima(&rows), model.rest().freedom)
}

/// Returns the contrasts as sums of independent standard deviates, each of variance 1.
fn standardised(model: &Additive, contrasts: &[Vec<Weight>]) -> Option<Vec<Vec<f64>>> {
    // Gram and Schmidt on the contrasts: the deviates of those that earlier ones do not make up.
    let mut bases: Vec<(usize, Vec<f64>, f64)> = Vec::new();
    let mut rows = Vec::with_capacity(contrasts.len());
    for (index, contrast) in contrasts.iter().enumerate() {
        let variance = model.covariance(contrast, contrast);
        if variance <= 0.0 {
            return None;
        }
        let mut row = Vec::with_capacity(bases.len() + 1);
        for (base, of_base, own) in &bases {
            let both = model.covariance(contrast, &contrasts[*base]);
            let known: f64 = row.iter().zip(of_base).map(|(a, b): (&f64, &f64)| a * b).sum();
            row.push((both - known) / own);
        }
        let left = variance - row.iter().map(|part| part * part).sum::<f64>();
        if left > variance * 1e-9 {
            let own = left.sqrt();
            bases.push((index, row.clone(), own));
            row.push(own);
        }
        let size = variance.sqrt();
        row.iter_mut().for_each(|part| *part /= size);
        rows.push(row);
    }
    Some(rows)
}

/// Returns P(the largest |row · z| × √2 > node) at the nodes of a table of differences; simulated
/// once in a process.
fn maxima(rows: &[Vec<f64>]) -> Differences {
    static KNOWN: Mutex<BTreeMap<Vec<i64>, Differences>> = Mutex::new(BTreeMap::new());
    /// Most designs that are kept.
    const KEPT: usize = 64;
    let rounded = |part: &f64| (part * 1e6).round() as i64;
    let key: Vec<i64> =
        rows.iter().flat_map(|row| row.iter().map(rounded).chain([i64::MAX])).collect();
    if let Some(found) = KNOWN.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
        return Differences::clone(found);
    }
    let mut normal = Normal(0x9E37_79B9_7F4A_7C15);
    let deviates = rows.iter().map(Vec::len).max().unwrap_or(0);
    let mut z = vec![0.0; deviates];
    let drawn: Vec<f64> = (0..DRAWS)
        .map(|_| {
            z.fill_with(|| normal.draw());
            let of = |row: &Vec<f64>| row.iter().zip(&z).map(|(a, b)| a * b).sum::<f64>().abs();
            rows.iter().map(of).fold(0.0, f64::max) * SQRT_2
        })
        .collect();
    let found = tabulated(drawn);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if known.len() < KEPT {
        known.insert(key, Differences::clone(&found));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studentized_range::Compared;

    /// Returns a model of so many treatments, each with three repeats.
    fn model(treatments: usize) -> Additive {
        let of =
            |t: usize| (0..3).map(|block| (block, [0.1, -0.2, 0.1][(t + block) % 3])).collect();
        Additive::fit(&(0..treatments).map(of).collect::<Vec<_>>(), true).unwrap()
    }

    fn against_the_first(treatments: usize) -> Vec<Vec<Weight>> {
        (1..treatments).map(|t| vec![(t, 1.0), (0, -1.0)]).collect()
    }

    #[test]
    fn all_pairs_are_the_studentized_range() {
        for treatments in [3, 6] {
            let model = model(treatments);
            let pairs: Vec<Vec<Weight>> = (0..treatments)
                .flat_map(|i| (i + 1..treatments).map(move |j| vec![(i, 1.0), (j, -1.0)]))
                .collect();
            let simulated = largest_t(&model, &pairs).unwrap().critical(0.05).unwrap();
            let exact =
                LargestT::new(Compared::AllPairs, treatments, model.rest().freedom).unwrap();
            let exact = exact.critical(0.05).unwrap();
            // The standard error of 0.2 points is 1.5% of the critical value.
            assert!((simulated / exact - 1.0).abs() < 0.02, "{treatments}: {simulated}, {exact}");
        }
    }

    #[test]
    fn comparisons_with_one_treatment_are_dunnetts() {
        // Two-sided 5% points for so many treatments against a control, as the printed tables have
        // them.
        for (others, freedom, t) in [(3, 6.0, 3.10), (5, 10.0, 2.99)] {
            let model = model(others + 1);
            assert!((model.rest().freedom - freedom).abs() < 1e-9);
            let found = largest_t(&model, &against_the_first(others + 1)).unwrap();
            let found = found.critical(0.05).unwrap();
            assert!((found / t - 1.0).abs() < 0.02, "{others}: {found} is not {t}");
        }
    }

    #[test]
    fn a_contrast_twice_is_one_and_one_of_nothing_is_none() {
        let model = model(4);
        let once = largest_t(&model, &against_the_first(2)).unwrap();
        let twice = largest_t(&model, &[vec![(1, 1.0), (0, -1.0)], vec![(0, 2.0), (1, -2.0)]]);
        assert!((once.p(2.0).unwrap() - twice.unwrap().p(2.0).unwrap()).abs() < 1e-9);
        assert!(largest_t(&model, &[vec![(1, 1.0), (1, -1.0)]]).is_none());
    }
}
