//! Whether the effect of one factor depends on the level of another.

use statrs::distribution::{ContinuousCDF, FisherSnedecor};

use crate::additive::{Weight, inverted};
use crate::common_noise::CommonNoise;
use crate::contrast::RunTrials;
use crate::ratio::LogDifference;
use crate::student::{CONFIDENCE, ROUNDING, t_quantile, t_two_sided};

/// Interaction of two factors: how the ratio of two rows differs between two columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Interaction {
    /// p-value of independent effects, adjusted for all interactions that were asked for.
    pub p: f64,
    /// Rows of the clearest difference: its ratio is that of the first to the second.
    pub rows: [usize; 2],
    /// Columns of the clearest difference: `ratio` is that of the rows in the first column ÷ that
    /// in the second, 1 or more.
    pub columns: [usize; 2],
    /// Ratio of the ratios.
    pub ratio: f64,
    /// The 95% confidence interval of `ratio`; it holds for all rows and columns together.
    pub ci95: [f64; 2],
}

/// Table of two factors: for each row and column the indexes of the treatments with these levels.
/// With further factors a cell has several treatments, whose other levels are those of every cell.
pub type Cells = Vec<Vec<Vec<usize>>>;

/// Returns the interaction in each of `tables`. In 95% of runs, no interaction is found where there
/// is none.
///
/// Where the treatments share one noise, all differences of differences are judged by the F test,
/// with intervals by H. Scheffé, *A method for judging all contrasts in the analysis of variance*,
/// Biometrika 40 (1953). Otherwise each difference of differences with the first row and column has
/// its own noise, and Bonferroni's inequality judges them together. None where a treatment is
/// missing, or nothing is left to estimate the noise from.
///
/// ```
/// let of = |tps: f64| [(1, tps), (2, 1.01 * tps), (3, 0.99 * tps)];
/// // off is 1.2 times as fast as on with one client, and twice as fast with eight.
/// let (one, eight) = ([of(100.0), of(120.0)], [of(300.0), of(606.0)]);
/// let trials: [&[(u32, f64)]; 4] = [&one[0], &one[1], &eight[0], &eight[1]];
/// let table = vec![vec![vec![0], vec![2]], vec![vec![1], vec![3]]];
/// let run = pgdyno_stats::RunTrials::new(&trials, pgdyno_stats::RunDesign::new(false));
/// let found = pgdyno_stats::interactions(&run, &[table]).remove(0).unwrap();
/// assert!(found.p < 0.05 && (found.ratio - 2.02 / 1.2).abs() < 1e-6);
/// assert_eq!((found.rows, found.columns), ([1, 0], [1, 0]));
/// ```
pub fn interactions(run: &RunTrials, tables: &[Cells]) -> Vec<Option<Interaction>> {
    let share = run.last_share() / tables.len().max(1) as f64;
    let of = |cells: &Cells| {
        let is_known = |cell: &Vec<usize>| {
            !cell.is_empty() && cell.iter().all(|treatment| run.is_known(*treatment))
        };
        if !cells.iter().flatten().all(is_known) {
            return None;
        }
        match &run.common {
            Some(common) => by_common_noise(common, cells, share),
            None => by_own_noise(run, cells, share),
        }
    };
    tables.iter().map(of).collect()
}

/// Returns the weights of (row ÷ other row in one column) ÷ (row ÷ other row in another column).
fn contrast(cells: &Cells, rows: [usize; 2], columns: [usize; 2]) -> Vec<Weight> {
    let corners = [
        (rows[0], columns[0], 1.0),
        (rows[1], columns[0], -1.0),
        (rows[0], columns[1], -1.0),
        (rows[1], columns[1], 1.0),
    ];
    let mean = |(row, column, sign): (usize, usize, f64)| {
        let cell = &cells[row][column];
        cell.iter().map(move |t| (*t, sign / cell.len() as f64))
    };
    corners.into_iter().flat_map(mean).collect()
}

/// Two rows and two columns.
type Corners = ([usize; 2], [usize; 2]);

/// Returns all ([row, earlier row], [column, earlier column]).
fn corners(cells: &Cells) -> Vec<Corners> {
    let pairs =
        |n: usize| (1..n).flat_map(|this| (0..this).map(move |that| [this, that])).collect();
    let (rows, columns): (Vec<_>, Vec<_>) =
        (pairs(cells.len()), pairs(cells.first().map_or(0, Vec::len)));
    rows.iter().flat_map(|rows| columns.iter().map(|columns| (*rows, *columns))).collect()
}

/// Whether both earlier ones are the first: these make up all others.
fn is_from_first((rows, columns): &Corners) -> bool {
    rows[1] == 0 && columns[1] == 0
}

fn by_common_noise(common: &CommonNoise, cells: &Cells, share: f64) -> Option<Interaction> {
    let model = &common.model;
    let corners = corners(cells);
    let all: Vec<Vec<Weight>> = corners
        .iter()
        .map(|(rows, columns)| common.in_model(&contrast(cells, *rows, *columns)))
        .collect::<Option<_>>()?;
    let basis: Vec<&Vec<Weight>> = corners
        .iter()
        .zip(&all)
        .filter(|(corner, _)| is_from_first(corner))
        .map(|(_, contrast)| contrast)
        .collect();
    let covariance = basis.iter().map(|a| basis.iter().map(|b| model.covariance(a, b)).collect());
    let inverse = inverted(covariance.collect())?;
    let values: Vec<f64> = basis.iter().map(|c| model.contrast(c).difference).collect();
    let form: f64 = inverse
        .iter()
        .zip(&values)
        .map(|(row, a)| a * row.iter().zip(&values).map(|(entry, b)| entry * b).sum::<f64>())
        .sum();
    let count = basis.len() as f64;
    let f = FisherSnedecor::new(count, model.rest().freedom).ok()?;
    let level = common.level() * share;
    let p = (f.sf(form / count / model.rest().value) / level).min(1.0);
    let critical = (count * f.inverse_cdf(1.0 - (1.0 - CONFIDENCE) * level)).sqrt();
    let each = corners.into_iter().zip(all.iter().map(|c| model.contrast(c)));
    clearest(each, p, |_| Some(critical))
}

fn by_own_noise(run: &RunTrials, cells: &Cells, share: f64) -> Option<Interaction> {
    let from_first: Vec<_> = corners(cells)
        .into_iter()
        .filter(is_from_first)
        .map(|(rows, columns)| {
            let log = run.by_own_trials(&contrast(cells, rows, columns));
            Some(((rows, columns), log.filter(|log| log.error > ROUNDING)?))
        })
        .collect::<Option<_>>()?;
    let share = share / from_first.len() as f64;
    let alone =
        |(_, log): &(_, LogDifference)| t_two_sided(log.difference / log.error, log.freedom);
    let p = from_first.iter().filter_map(alone).fold(1.0, f64::min);
    clearest(from_first.into_iter(), (p / share).min(1.0), |log| {
        t_quantile(1.0 - (1.0 - CONFIDENCE) * share / 2.0, log.freedom)
    })
}

/// Returns the interaction with the largest |t|, turned so that its ratio is not below 1.
fn clearest(
    each: impl Iterator<Item = (Corners, LogDifference)>,
    p: f64,
    critical: impl Fn(&LogDifference) -> Option<f64>,
) -> Option<Interaction> {
    let t = |log: &LogDifference| (log.difference / log.error).abs();
    let ((rows, [this, that]), log) =
        each.filter(|(_, log)| log.error > ROUNDING).max_by(|a, b| t(&a.1).total_cmp(&t(&b.1)))?;
    let half = critical(&log)? * log.error;
    let columns = if log.difference < 0.0 { [that, this] } else { [this, that] };
    let difference = log.difference.abs();
    let ci95 = [(difference - half).exp(), (difference + half).exp()];
    let is_known = p.is_finite() && ci95.iter().all(|end| *end > 0.0 && end.is_finite());
    is_known.then_some(Interaction { p, rows, columns, ratio: difference.exp(), ci95 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common_noise::Trials;
    use crate::run_design::RunDesign;

    fn repeats(values: &[f64]) -> Vec<(u32, f64)> {
        (1..).zip(values.iter().map(|log| log.exp())).collect()
    }

    fn judged(trials: &[Vec<(u32, f64)>], has_blocks: bool) -> Option<Interaction> {
        let trials: Vec<Trials> = trials.iter().map(Vec::as_slice).collect();
        let table = vec![vec![vec![0], vec![1]], vec![vec![2], vec![3]]];
        interactions(&RunTrials::new(&trials, RunDesign::new(has_blocks)), &[table]).remove(0)
    }

    #[test]
    fn two_rows_and_columns_computed_by_hand() {
        // Effects 0, 1, 2 and 5: row 1 adds 2 in column 0 and 4 in column 1. The rest is ±0.1 in a
        // direction of its own for each treatment: squares 8 × 0.01, on 4 (3 − 1) degrees of
        // freedom.
        let rest = [-0.1, 0.0, 0.1];
        let trials = [0.0, 1.0, 2.0, 5.0].map(|effect| repeats(&rest.map(|r| r + effect)));
        let found = judged(&trials, false).unwrap();
        assert_eq!((found.rows, found.columns), ([1, 0], [1, 0]));
        assert!((found.ratio - 2f64.exp()).abs() < 1e-9);
        // t = 2 / √(0.01 × 4 / 3) = 17.32 on 8 degrees of freedom, at 60% of 5%: 2.634.
        let half = 2.634 * (0.04f64 / 3.0).sqrt();
        assert!((found.ci95[0].ln() - (2.0 - half)).abs() < 1e-3, "{found:?}");
        assert!(found.p < 1e-5);
        // The same numbers in blocks leave nothing that varies.
        assert_eq!(judged(&trials, true), None);
    }

    #[test]
    fn one_wild_treatment_leaves_each_its_own_noise() {
        let wild = [0.0, 1.0, 2.0, 3.0].map(|effect| {
            let by = if effect > 2.5 { 1.0 } else { 0.001 };
            repeats(&[-1.0, 0.3, 0.1, 0.6].map(|r| by * r * (1.0 + effect) + effect))
        });
        let in_blocks = judged(&wild, true).unwrap();
        assert!(in_blocks.p > 0.05 && in_blocks.ci95[0] < 1.0, "{in_blocks:?}");
        let by_means = judged(&wild, false).unwrap();
        assert!((by_means.ratio - in_blocks.ratio).abs() < 1e-9);
    }

    #[test]
    fn what_cannot_be_judged_has_no_interaction() {
        let trials = [0.0, 1.0, 2.0, 5.0].map(|effect| repeats(&[effect, effect + 0.1]));
        let mut missing = trials.clone();
        missing[3].clear();
        assert_eq!(judged(&missing, false), None);
        missing[3] = vec![(1, 0.0), (2, 1.0)];
        assert_eq!(judged(&missing, false), None);
        let once = trials.map(|t| t[..1].to_vec());
        assert_eq!(judged(&once, false), None);
        assert_eq!(judged(&[0.0, 1.0, 2.0, 5.0].map(|effect| repeats(&[effect; 3])), false), None);
    }
}
