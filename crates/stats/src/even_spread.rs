//! Whether the repeats of several treatments spread alike, so that one estimate serves all.
//!
//! Two statistics judge it, since each sees what the other misses. *Largest share*: the largest
//! residual sum of squares ÷ all of them (W. G. Cochran, *The distribution of the largest of a set
//! of estimated variances as a fraction of their total*, Annals of Eugenics 11, 1941). *Best
//! split*: treatments are sorted by their residuals; of all splits into quiet and wild ones, the
//! largest likelihood ratio of two variances to one (M. S. Bartlett, *Properties of sufficiency and
//! statistical tests*, Proceedings of the Royal Society A 160, 1937).
//!
//! Their critical values are simulated with a fixed seed: sorting and residuals leave no known
//! distribution.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::mean::{count, mean};
use crate::random::Normal;
use crate::student::ROUNDING;

/// Design of a complete table of repeats.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Design {
    treatments: usize,
    repeats: usize,
    /// Whether a repeat's number is a block, whose effect all treatments share.
    has_blocks: bool,
}

/// Statistics of one table, or their critical values.
#[derive(Clone, Copy)]
struct Spreads {
    best_split: f64,
    largest_share: f64,
}

/// Returns whether nothing speaks against one spread of all treatments.
///
/// `values[t][r]` is repeat r of treatment t, in logarithms; complete, with two repeats or more.
/// Of tables with one spread, 3% are called uneven; 10% for three treatments, where judging pair by
/// pair costs little. Fewer than three treatments are called uneven: their pair is judged alone.
pub(crate) fn spread_is_even(values: &[Vec<f64>], has_blocks: bool) -> bool {
    let repeats = values.first().map_or(0, Vec::len);
    let design = Design { treatments: values.len(), repeats, has_blocks };
    if design.treatments < 3 || design.repeats < 2 {
        return false;
    }
    let (found, critical) = (spreads(values, has_blocks), critical(design));
    // In a table without any spread both are not a number.
    let is_beyond =
        found.best_split > critical.best_split || found.largest_share > critical.largest_share;
    !is_beyond
}

fn spreads(values: &[Vec<f64>], has_blocks: bool) -> Spreads {
    let repeats = values[0].len();
    let mut rows: Vec<Vec<f64>> = values.iter().map(|row| centred(row)).collect();
    let block_means: Vec<f64> = (0..repeats)
        .map(|r| if has_blocks { mean(rows.iter().map(|row| row[r])) } else { 0.0 })
        .collect();
    let residual = |row: &[f64]| -> f64 {
        row.iter().zip(&block_means).map(|(value, mean)| (value - mean).powi(2)).sum()
    };
    rows.sort_by(|a, b| residual(a).total_cmp(&residual(b)));
    let largest = rows.last().map_or(0.0, |row| residual(row));
    let all: f64 = rows.iter().map(|row| residual(row)).sum();
    Spreads { best_split: best_split(&rows, has_blocks), largest_share: largest / all }
}

/// Returns the largest likelihood ratio of `rows`, centred and sorted by their spread.
fn best_split(rows: &[Vec<f64>], has_blocks: bool) -> f64 {
    let repeats = rows[0].len();
    let (mut sums, mut squares) = (vec![0.0; repeats], 0.0);
    // The residual sum of squares of the first rows, with its degrees of freedom.
    let mut first = Vec::with_capacity(rows.len());
    for (index, row) in rows.iter().enumerate() {
        squares += row.iter().map(|value| value * value).sum::<f64>();
        sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        let of_blocks: f64 = sums.iter().map(|sum| sum * sum).sum::<f64>() / count(index + 1);
        let own = if has_blocks { squares - of_blocks } else { squares };
        let rows = if has_blocks { index } else { index + 1 };
        first.push((own, count(rows) * count(repeats - 1)));
    }
    let Some((all, freedom)) = first.pop() else { return 0.0 };
    let ratio = |(quiet, quiet_freedom): (f64, f64)| {
        let wild_freedom = freedom - quiet_freedom;
        let (quiet, wild) = (quiet / quiet_freedom, (all - quiet) / wild_freedom);
        // Rows that are equal but for rounding tell of the figures' resolution, not of a spread.
        if wild <= quiet || quiet <= ROUNDING.powi(2) {
            return 0.0;
        }
        let ratio =
            freedom * (all / freedom).ln() - quiet_freedom * quiet.ln() - wild_freedom * wild.ln();
        ratio / (1.0 + (quiet_freedom.recip() + wild_freedom.recip() - freedom.recip()) / 3.0)
    };
    first.into_iter().filter(|(_, freedom)| *freedom > 0.0).map(ratio).fold(0.0, f64::max)
}

/// Returns the critical values of `design`; simulated once in a process.
fn critical(design: Design) -> Spreads {
    static KNOWN: Mutex<BTreeMap<Design, Spreads>> = Mutex::new(BTreeMap::new());
    let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner).get(&design).copied();
    known.unwrap_or_else(|| {
        let found = simulate(design);
        KNOWN.lock().unwrap_or_else(PoisonError::into_inner).insert(design, found);
        found
    })
}

fn simulate(design: Design) -> Spreads {
    /// Deviates that are drawn, within the limits of tables.
    const DEVIATES: usize = 500_000;
    let Design { treatments, repeats, has_blocks } = design;
    let tables = (DEVIATES / (treatments * repeats)).clamp(2_000, 10_000);
    let mut normal = Normal(0x9E37_79B9_7F4A_7C15);
    let (mut splits, mut shares): (Vec<f64>, Vec<f64>) = (0..tables)
        .map(|_| {
            let mut row = || (0..repeats).map(|_| normal.draw()).collect();
            let table: Vec<Vec<f64>> = (0..treatments).map(|_| row()).collect();
            let found = spreads(&table, has_blocks);
            (found.best_split, found.largest_share)
        })
        .unzip();
    // With three treatments and blocks both say the same.
    let (of_splits, of_shares) = match (treatments, has_blocks) {
        (3, true) => (0.1, 0.0),
        (3, false) => (0.05, 0.05),
        _ => (0.015, 0.015),
    };
    Spreads {
        best_split: exceeded_by(of_splits, &mut splits),
        largest_share: exceeded_by(of_shares, &mut shares),
    }
}

/// Returns the value that `part` of `values` exceed.
fn exceeded_by(part: f64, values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let beyond = (part * count(values.len())).round() as usize;
    values.get(values.len().saturating_sub(beyond + 1)).copied().unwrap_or(f64::INFINITY)
}

fn centred(row: &[f64]) -> Vec<f64> {
    let centre = mean(row);
    row.iter().map(|value| value - centre).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(normal: &mut Normal, spreads: &[f64], repeats: usize) -> Vec<Vec<f64>> {
        spreads.iter().map(|s| (0..repeats).map(|_| s * normal.draw()).collect()).collect()
    }

    /// Returns how many of 1,000 tables are called uneven (percent).
    fn uneven(spreads: &[f64], repeats: usize, has_blocks: bool) -> f64 {
        let mut normal = Normal(77);
        let is_uneven =
            |_: &u32| !spread_is_even(&table(&mut normal, spreads, repeats), has_blocks);
        f64::from(u32::try_from((0..1000).filter(is_uneven).count()).unwrap()) / 10.0
    }

    #[test]
    fn an_even_spread_is_seldom_doubted_and_a_tenfold_one_is_found() {
        for has_blocks in [false, true] {
            for (treatments, least, most) in [(3, 5.0, 14.0), (4, 1.0, 6.0), (16, 1.0, 6.0)] {
                let found = uneven(&vec![1.0; treatments], 4, has_blocks);
                assert!((least..=most).contains(&found), "{treatments}: {found}%");
            }
            for spreads in
                [&[1.0, 1.0, 1.0, 1.0, 1.0, 10.0][..], &[1.0, 1.0, 1.0, 10.0, 10.0, 10.0]]
            {
                let found = uneven(spreads, 4, has_blocks);
                assert!(found > 84.0, "{spreads:?}: {found}%");
            }
        }
    }

    #[test]
    fn equal_rows_are_no_quiet_treatments_and_one_that_varies_beside_constants_is_wild() {
        let rows = [[1.0, 3.0, 2.0], [1.0, 3.0, 2.0], [3.0, 2.0, 1.0], [2.0, 1.0, 3.0]];
        let rows: Vec<Vec<f64>> = rows.iter().map(|row| row.to_vec()).collect();
        assert!(spread_is_even(&rows, true));
        let mut constant = vec![vec![5.0; 4]; 4];
        assert!(spread_is_even(&constant, true));
        constant[2] = vec![4.0, 5.0, 6.0, 5.0];
        assert!(!spread_is_even(&constant, true) && !spread_is_even(&constant, false));
    }

    #[test]
    fn what_shifts_a_whole_block_is_no_spread_of_its_treatments() {
        let mut normal = Normal(3);
        let mut table = table(&mut normal, &[1.0; 8], 5);
        let before = spreads(&table, true);
        table
            .iter_mut()
            .for_each(|row| row.iter_mut().zip(1..).for_each(|(v, b)| *v += f64::from(b) * 50.0));
        let after = spreads(&table, true);
        assert!((before.best_split - after.best_split).abs() < 1e-6);
        assert!((before.largest_share - after.largest_share).abs() < 1e-9);
    }
}
