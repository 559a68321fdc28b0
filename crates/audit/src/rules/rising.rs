//! Rows of repeats that rise or fall more steadily than chance.

use pgdyno_stats::{CONFIDENCE, Trend, share_of_orders_with_trend, trend};

/// Events that chance makes no more often than this are told from it.
pub(super) const BY_CHANCE: f64 = 1.0 - CONFIDENCE;

/// Two-sided p-value up to which a row is counted as one that rises or falls: one of twenty orders
/// either way. Four repeats, the fewest that are judged, reach it when all rise or all fall (2 of
/// 24 orders).
const STEADY: f64 = 0.1;

/// Rows together are judged in two ways: how many rise or fall, and how steadily the steadiest
/// does. Each may err in half as many reports.
const EACH_WAY: f64 = BY_CHANCE / 2.0;

/// They are no chance where such rows would be found in less than one of a hundred reports.
pub(super) const TOGETHER: f64 = 0.01;

/// The repeats of one thing.
pub(super) struct Sample {
    pub(super) label: String,
    pub(super) lines: Vec<usize>,
    pub(super) values: Vec<f64>,
}

/// Whether all are the same.
pub(super) fn are_equal<T: PartialEq>(values: &[T]) -> bool {
    values.windows(2).all(|pair| pair[0] == pair[1])
}

/// The rows of a table that rise or fall, and by how little chance.
pub(super) struct Rising<'a> {
    /// Each with a two-sided p-value of at most [`STEADY`].
    pub(super) rows: Vec<(&'a Sample, Trend)>,
    /// Rows of four repeats or more (count).
    pub(super) tested: usize,
    /// The chance of so many such rows.
    pub(super) so_many: f64,
    /// A bound for the chance that the steadiest of the tested rows is so steady (Bonferroni).
    pub(super) so_steadily: f64,
}

impl<'a> Rising<'a> {
    pub(super) fn among(tested: &[&'a Sample]) -> Self {
        let trends: Vec<(&Sample, Trend)> =
            tested.iter().filter_map(|s| Some((*s, trend(&s.values)?))).collect();
        let least = trends.iter().map(|(_, t)| t.chance).fold(1.0, f64::min);
        let rows: Vec<_> = trends.into_iter().filter(|(_, t)| t.chance <= STEADY).collect();
        // A few repeats have few orders, so that a row is counted by chance less often than at the
        // level.
        let chances: Vec<f64> =
            tested.iter().map(|s| share_of_orders_with_trend(&s.values, STEADY)).collect();
        Self {
            so_many: at_least(rows.len(), &chances),
            so_steadily: (least * tested.len().max(1) as f64).min(1.0),
            rows,
            tested: tested.len(),
        }
    }

    pub(super) fn is_significant(&self) -> bool {
        self.so_many.min(self.so_steadily) <= EACH_WAY
    }
}

/// The chance of at least `hits` in independent trials of these chances.
fn at_least(hits: usize, chances: &[f64]) -> f64 {
    // Of 0, 1, 2, … hits.
    let mut exactly = vec![1.0];
    for chance in chances {
        let mut next = vec![0.0; exactly.len() + 1];
        for (i, share) in exactly.iter().enumerate() {
            next[i] += share * (1.0 - chance);
            next[i + 1] += share * chance;
        }
        exactly = next;
    }
    exactly.iter().skip(hits).sum::<f64>().clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rising(rows: &[Sample]) -> (f64, bool) {
        let rows: Vec<&Sample> = rows.iter().collect();
        let found = Rising::among(&rows);
        (found.so_many, found.is_significant())
    }

    fn row(values: Vec<f64>) -> Sample {
        Sample { label: String::new(), lines: vec![1], values }
    }

    #[test]
    fn three_of_five_rows_of_four_repeats_rise_or_fall_in_1_of_197_reports_as_counted() {
        // Each row does in 2 of 24 orders. At least three of five: (10 × 11² + 5 × 11 + 1) / 12⁵.
        let counted = 1266.0 / 248_832.0;
        let still = || row(vec![3.0, 1.0, 4.0, 2.0]);
        let falling = || row(vec![4.0, 3.0, 2.0, 1.0]);
        let rows = [falling(), still(), row(vec![1.0, 2.0, 3.0, 4.0]), still(), falling()];
        let (so_many, significant) = rising(&rows);
        assert!((so_many - counted).abs() < 1e-12 && significant, "{so_many}");

        let mut random = fastrand::Rng::with_seed(31);
        let mut drawn =
            || (0..5).map(|_| row((0..4).map(|_| random.f64()).collect())).collect::<Vec<_>>();
        let times = 100_000;
        let found = (0..times).filter(|_| rising(&drawn()).0 <= counted + 1e-9).count();
        // 509 of 100,000 are expected, with a standard error of 22.
        assert!((440..=580).contains(&found), "{found} of {times}");
    }

    #[test]
    fn of_reports_whose_rows_are_steady_at_most_5_in_100_are_told_otherwise() {
        let mut random = fastrand::Rng::with_seed(32);
        for (rows, repeats) in [(1, 4), (1, 8), (5, 4), (16, 5), (40, 10)] {
            let found = (0..1000)
                .filter(|_| {
                    let drawn = |_| row((0..repeats).map(|_| random.f64()).collect());
                    rising(&(0..rows).map(drawn).collect::<Vec<_>>()).1
                })
                .count();
            eprintln!("falsely rising, {rows} rows of {repeats}: {found} of 1000");
            assert!(found <= 65, "{rows} rows of {repeats}: {found} of 1000");
        }
    }

    #[test]
    fn one_row_that_rises_for_long_is_enough_and_one_of_four_repeats_is_not() {
        assert!(rising(&[row((0..8).map(f64::from).collect())]).1);
        assert!(!rising(&[row((0..4).map(f64::from).collect())]).1);
    }
}
