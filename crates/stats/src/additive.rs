//! The additive model of a run: log value = treatment + block + rest, by least squares.

use std::collections::{BTreeMap, BTreeSet};

use crate::ratio::LogDifference;
use crate::variance::Variance;

/// A treatment and its weight in a contrast, a sum whose weights come to 0.
pub(crate) type Weight = (usize, f64);

/// A fitted model: the treatments' effects and the variance of the rest.
pub(crate) struct Additive {
    effects: Vec<f64>,
    /// Covariances of the effects ÷ the variance of the rest. The first treatment is the origin.
    covariance: Vec<Vec<f64>>,
    rest: Variance,
}

impl Additive {
    /// Fits `trials`: for each treatment its (block, logarithm), blocks numbered from 0.
    ///
    /// Without `has_blocks` all trials count as one block. None where treatments and blocks cannot
    /// be told apart, or nothing is left to estimate the rest from.
    pub(crate) fn fit(trials: &[Vec<(usize, f64)>], has_blocks: bool) -> Option<Self> {
        let block = |number: usize| if has_blocks { number } else { 0 };
        let blocks = trials.iter().flatten().map(|(number, _)| block(*number) + 1).max()?;
        let mut sizes = vec![0.0; blocks];
        let mut totals = vec![0.0; blocks];
        let mut incidence = vec![vec![0.0; blocks]; trials.len()];
        for (row, trials) in incidence.iter_mut().zip(trials) {
            for (number, value) in trials {
                let block = block(*number);
                sizes[block] += 1.0;
                totals[block] += value;
                row[block] += 1.0;
            }
        }
        let used = sizes.iter().filter(|size| **size > 0.0).count();
        let (information, adjusted) = normal_equations(trials, &incidence, &sizes, &totals);
        // The first treatment's effect is 0.
        let inverse = inverted(information.iter().skip(1).map(|row| row[1..].to_vec()).collect())?;
        let mut effects = vec![0.0];
        effects.extend(inverse.iter().map(|row| dot(row, &adjusted[1..])));
        let of_block = |block: usize| {
            let expected: f64 = incidence.iter().zip(&effects).map(|(n, e)| n[block] * e).sum();
            (totals[block] - expected) / sizes[block].max(1.0)
        };
        let of_blocks: Vec<f64> = (0..blocks).map(of_block).collect();
        let rest = |(effect, trials): (&f64, &Vec<(usize, f64)>)| -> f64 {
            let of = |(number, value): &(usize, f64)| {
                (value - effect - of_blocks[block(*number)]).powi(2)
            };
            trials.iter().map(of).sum()
        };
        let squares: f64 = effects.iter().zip(trials).map(rest).sum();
        let count = trials.iter().map(Vec::len).sum::<usize>();
        let left = (count + 1).checked_sub(trials.len() + used).filter(|left| *left > 0)?;
        let freedom = left as f64;
        let mut covariance = vec![vec![0.0; trials.len()]];
        covariance.extend(inverse.into_iter().map(|row| std::iter::once(0.0).chain(row).collect()));
        let rest = Variance { value: squares / freedom, freedom };
        Some(Self { effects, covariance, rest })
    }

    /// Creates the model of a complete table whose effects are 0 and whose rest has the variance 1,
    /// as if each treatment had one repeat.
    pub(crate) fn complete(treatments: usize, freedom: f64) -> Self {
        // The first treatment's own error is in every difference from it.
        let entry = |a: usize, b: usize| match (a, b) {
            (0, _) | (_, 0) => 0.0,
            _ if a == b => 2.0,
            _ => 1.0,
        };
        let row = |a: usize| (0..treatments).map(|b| entry(a, b)).collect();
        let covariance = (0..treatments).map(row).collect();
        Self { effects: vec![0.0; treatments], covariance, rest: Variance { value: 1.0, freedom } }
    }

    /// Returns the difference of the effects of treatments `a` and `b`.
    pub(crate) fn difference(&self, a: usize, b: usize) -> LogDifference {
        self.contrast(&[(a, 1.0), (b, -1.0)])
    }

    /// Returns the effects' weighted sum.
    pub(crate) fn contrast(&self, contrast: &[Weight]) -> LogDifference {
        let difference = contrast.iter().map(|(t, weight)| weight * self.effects[*t]).sum();
        LogDifference::new(difference, self.rest.scaled(self.covariance(contrast, contrast)))
    }

    /// Returns the covariance of two weighted sums of effects ÷ the variance of the rest.
    pub(crate) fn covariance(&self, a: &[Weight], b: &[Weight]) -> f64 {
        let with_b = |t: usize| -> f64 {
            b.iter().map(|(other, weight)| weight * self.covariance[t][*other]).sum()
        };
        a.iter().map(|(t, weight)| weight * with_b(*t)).sum()
    }

    /// Returns the variance of the rest.
    pub(crate) fn rest(&self) -> Variance {
        self.rest
    }

    /// Returns the model with another variance of the rest: one that more was known of.
    pub(crate) fn with_rest(self, rest: Variance) -> Self {
        Self { rest, ..self }
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

/// Returns whether `trials`, as (block, value), can be fitted: there are some, and all have
/// logarithms.
pub(crate) fn is_usable(trials: &[(u32, f64)]) -> bool {
    !trials.is_empty() && trials.iter().all(|(_, value)| value.is_finite() && *value > 0.0)
}

/// Returns the blocks of `trials`, ascending.
pub(crate) fn blocks(trials: &[&[(u32, f64)]]) -> Vec<u32> {
    let all: BTreeSet<u32> =
        trials.iter().flat_map(|t| t.iter().map(|(block, _)| *block)).collect();
    all.into_iter().collect()
}

/// Returns `trials`, as (block, value), as (number of the block from 0, logarithm).
pub(crate) fn logarithms(trials: &[&[(u32, f64)]]) -> Vec<Vec<(usize, f64)>> {
    let numbers: BTreeMap<u32, usize> = blocks(trials).into_iter().zip(0..).collect();
    let logs = |t: &&[(u32, f64)]| t.iter().map(|(b, value)| (numbers[b], value.ln())).collect();
    trials.iter().map(logs).collect()
}

/// Returns the treatments' information matrix with the blocks eliminated, and the treatments'
/// totals adjusted for them.
fn normal_equations(
    trials: &[Vec<(usize, f64)>],
    incidence: &[Vec<f64>],
    sizes: &[f64],
    totals: &[f64],
) -> (Vec<Vec<f64>>, Vec<f64>) {
    let by_size = |row: &[f64], other: &[f64]| -> f64 {
        let terms = row.iter().zip(other).zip(sizes).filter(|(_, size)| **size > 0.0);
        terms.map(|((a, b), size)| a * b / size).sum()
    };
    let information = (0..trials.len()).map(|a| {
        let entry = |b: usize| {
            let own: f64 = if a == b { incidence[a].iter().sum() } else { 0.0 };
            own - by_size(&incidence[a], &incidence[b])
        };
        (0..trials.len()).map(entry).collect()
    });
    let adjusted = trials.iter().zip(incidence).map(|(trials, row)| {
        trials.iter().map(|(_, value)| value).sum::<f64>() - by_size(row, totals)
    });
    (information.collect(), adjusted.collect())
}

/// Inverts a symmetric, positive definite matrix by Gauss and Jordan; none if it is singular.
pub(crate) fn inverted(mut matrix: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    let n = matrix.len();
    for (i, row) in matrix.iter_mut().enumerate() {
        row.extend((0..n).map(|j| if i == j { 1.0 } else { 0.0 }));
    }
    for i in 0..n {
        let pivot = matrix[i][i];
        if pivot < 1e-9 {
            return None;
        }
        matrix[i].iter_mut().for_each(|value| *value /= pivot);
        let row = matrix[i].clone();
        for (_, other) in matrix.iter_mut().enumerate().filter(|(j, _)| *j != i) {
            let factor = other[i];
            other.iter_mut().zip(&row).for_each(|(value, of_row)| *value -= factor * of_row);
        }
    }
    Some(matrix.into_iter().map(|row| row[n..].to_vec()).collect())
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Effects 0, 1, 3 and blocks 0, 10, 20; the rest is ±0.1 in four cells: squares 0.04, on
    /// (3 − 1)(3 − 1) degrees of freedom, in directions that effects and blocks do not share.
    fn by_hand() -> [Vec<(usize, f64)>; 3] {
        let rest = [[0.1, -0.1, 0.0], [-0.1, 0.1, 0.0], [0.0, 0.0, 0.0]];
        [0, 1, 2].map(|t| {
            let at = |(block, rest): (usize, f64)| {
                (block, [0.0, 1.0, 3.0][t] + [0.0, 10.0, 20.0][block] + rest)
            };
            rest[t].into_iter().enumerate().map(at).collect()
        })
    }

    #[test]
    fn a_complete_table_computed_by_hand() {
        let trials = by_hand();
        let found = Additive::fit(&trials, true).unwrap();
        let LogDifference { difference, error, freedom } = found.difference(2, 1);
        assert!((difference - 2.0).abs() < 1e-9);
        assert!((error - (0.01 * 2.0 / 3.0_f64).sqrt()).abs() < 1e-9);
        assert!((freedom - 4.0).abs() < 1e-9);
        // Without blocks their 10 and 20 are part of the rest.
        let found = Additive::fit(&trials, false).unwrap().difference(2, 1);
        assert!(found.error > 5.0 && (found.freedom - 6.0).abs() < 1e-9);
    }

    #[test]
    fn a_missing_trial_is_no_shift_of_its_treatment() {
        // Blocks differ by 10; the second treatment lacks the last one. Its mean alone would be 5
        // too low.
        let trials = vec![
            vec![(0, 0.0), (1, 10.0), (2, 20.01)],
            vec![(0, 1.0), (1, 11.01)],
            vec![(0, 2.01), (1, 12.0), (2, 22.0)],
        ];
        let found = Additive::fit(&trials, true).unwrap().difference(1, 0);
        assert!((found.difference - 1.0).abs() < 0.02 && (found.freedom - 3.0).abs() < 1e-9);
        assert!(
            Additive::fit(&[vec![(0, 1.0)], vec![(1, 2.0)]], true).is_none(),
            "no common block"
        );
        assert!(
            Additive::fit(&[vec![(0, 1.0)], vec![(0, 2.0)]], true).is_none(),
            "nothing is left"
        );
    }

    #[test]
    fn treatments_and_blocks_are_no_rest() {
        let value = |(block, log): &(usize, f64)| (u32::try_from(*block).unwrap(), log.exp());
        let trials = by_hand().map(|t| t.iter().map(value).collect::<Vec<_>>());
        let trials: Vec<&[(u32, f64)]> = trials.iter().map(Vec::as_slice).collect();
        let found = rest(&trials, true).unwrap();
        assert!((found.value - 0.01).abs() < 1e-9 && (found.freedom - 4.0).abs() < 1e-9);
        // Of one treatment alone the blocks are its repeats: 0.1, 9.9, 20.
        let alone = rest(&trials[..1], true).unwrap();
        assert!((alone.value - 99.01).abs() < 0.01 && (alone.freedom - 2.0).abs() < 1e-9);
        assert_eq!(rest(&[&[(1, 0.0), (2, 1.0)]], true), None);
    }
}
