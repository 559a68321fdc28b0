//! Where the mean of a series changes.

use crate::mean::mean;

/// The shortest stretch between two changes (elements).
const SHORTEST: usize = 3;
/// Below this many elements nothing is looked for.
const FEWEST: usize = 20;
/// Longer series are judged by means of equal stretches, so that the time it takes stays bounded
/// (it grows with the square).
const MOST: usize = 1000;
/// The penalty for a change, in innovation variances times ln n: 3 of the modified BIC (N. R. Zhang
/// and D. O. Siegmund, *A modified Bayes information criterion with applications to the analysis of
/// comparative genomic hybridization data*, Biometrics 63, 2007), and one more for what the choice
/// of a coefficient can make of chance, by simulation.
const PENALTY: f64 = 4.0;
/// Coefficients that are tried: how much of its deviation an element hands on to the next.
const COEFFICIENTS: [f64; 12] = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98];
/// The mean of the smaller nine tenths of X² for a standard normal X: 1 - 2 c φ(c) / 0.9 with c =
/// 1.644854.
const TRIMMED: f64 = 0.623_015;

/// The indices at which another mean begins; none where the series is too short (20 elements) or
/// not all numbers.
///
/// Neighbouring seconds resemble each other, which must not pass for changes. So series of both
/// kinds are fitted at once: a first-order autoregression around a mean that changes, of all
/// coefficients and changes the most likely ones (penalised likelihood, as S. Chakar, E. Lebarbier,
/// C. Lévy-Leduc and S. Robin, *A robust approach for estimating change-points in the mean of an
/// AR(1) process*, Bernoulli 23, 2017). For one coefficient the best changes are found by dynamic
/// programming over all: B. Jackson and others, *An algorithm for optimal partitioning of data on
/// an interval*, IEEE Signal Processing Letters 12 (2005).
pub fn changes(series: &[f64]) -> Option<Vec<usize>> {
    if series.len() < FEWEST || series.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let stretch = series.len().div_ceil(MOST);
    // Deviations from the mean, so that squares stay small beside what they are to tell.
    let means: Vec<f64> = series.chunks_exact(stretch).map(mean).collect();
    let centre = mean(&means);
    let means: Vec<f64> = means.into_iter().map(|value| value - centre).collect();
    let fits = COEFFICIENTS.iter().filter_map(|coefficient| fit(&means, *coefficient));
    let Some((_, at)) = fits.min_by(|a, b| a.0.total_cmp(&b.0)) else {
        // It does not vary.
        return Some(Vec::new());
    };
    let at: Vec<usize> = at.into_iter().map(|i| i * stretch).collect();
    Some(if stretch > 1 { sharpen(series, &at, stretch) } else { at })
}

/// Moves each change that was found by stretches to the element nearby that leaves the least
/// squares on its two sides.
fn sharpen(series: &[f64], at: &[usize], stretch: usize) -> Vec<usize> {
    let bounds: Vec<usize> =
        [0].into_iter().chain(at.iter().copied()).chain([series.len()]).collect();
    let sharpened = bounds.windows(3).map(|bounds| {
        let [before, at, after] = *bounds else { return bounds[1] };
        let whole: f64 = series[before..after].iter().sum();
        let n = (after - before) as f64;
        // The least squares are the largest distance of the sides' means from their common one.
        let nearby = (at - stretch).max(before + 1)..=(at + stretch).min(after - 1);
        let mut left: f64 = series[before..*nearby.start()].iter().sum();
        let distances = nearby.map(|split| {
            let elements = (split - before) as f64;
            let distance = (left - whole * elements / n).powi(2) / (elements * (n - elements));
            left += series[split];
            (split, distance)
        });
        distances.max_by(|a, b| a.1.total_cmp(&b.1)).map_or(at, |(split, _)| split)
    });
    sharpened.collect()
}

/// The best changes for one coefficient, with how unlikely they make the series; none where it does
/// not vary.
fn fit(series: &[f64], coefficient: f64) -> Option<(f64, Vec<usize>)> {
    /// A sum of squares below this share of all is rounding.
    const EXACT: f64 = 1e-12;
    let n = series.len() as f64;
    let variance = innovation_variance(series, coefficient)?;
    // Each stretch begins anew, with the variance of the whole autoregression instead of an
    // innovation's.
    let beginning = -(1.0 - coefficient * coefficient).ln();
    let penalty = PENALTY * n.ln();
    let partition = Costs::new(series, coefficient).partition(variance * (penalty + beginning));
    let squares = partition.squares.max(EXACT * series.iter().map(|v| v * v).sum::<f64>());
    let changes = partition.at.len() as f64;
    Some((n * (squares / n).ln() + beginning * (changes + 1.0) + penalty * changes, partition.at))
}

/// The variance of what is new in each element, from differences, of which the largest tenth may be
/// changes of mean and is left out.
fn innovation_variance(series: &[f64], coefficient: f64) -> Option<f64> {
    let new: Vec<f64> = series.windows(2).map(|pair| pair[1] - coefficient * pair[0]).collect();
    let mut squares: Vec<f64> = new.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).collect();
    squares.sort_by(f64::total_cmp);
    let trimmed = mean(&squares[..squares.len() * 9 / 10]) / TRIMMED;
    // Where most elements are equal, what little differs is the only measure of noise.
    let variance = if trimmed > 0.0 { trimmed } else { mean(&squares) };
    Some(variance / 2.0).filter(|v| *v > 0.0)
}

/// Sums over a series' beginnings, from which the squares that any stretch leaves are had at once.
struct Costs<'a> {
    series: &'a [f64],
    /// Weight of a stretch's first element, which has no neighbour before it: 1 - r².
    first: f64,
    /// 1 - r: how much of the mean is left in what is new.
    rest: f64,
    /// Of what is new in the elements before each index: their sum, and that of their squares.
    sums: Vec<(f64, f64)>,
    /// By the length of a stretch: 1 over the weight of its mean.
    weights: Vec<f64>,
}

/// Where the mean changes, and the squares that are left.
struct Partition {
    at: Vec<usize>,
    squares: f64,
}

impl<'a> Costs<'a> {
    fn new(series: &'a [f64], coefficient: f64) -> Self {
        let (first, rest) = (1.0 - coefficient * coefficient, 1.0 - coefficient);
        let mut sums = vec![(0.0, 0.0); 2];
        for pair in series.windows(2) {
            let (sum, squares) = sums[sums.len() - 1];
            let new = pair[1] - coefficient * pair[0];
            sums.push((sum + new, squares + new * new));
        }
        let weights =
            (0..=series.len()).map(|n| 1.0 / (first + (n as f64 - 1.0) * rest * rest)).collect();
        Self { series, first, rest, sums, weights }
    }

    /// Squares left in the elements from `from` to before `to` by the mean that leaves least.
    fn squares(&self, from: usize, to: usize) -> f64 {
        let first = self.first * self.series[from];
        let (sum, squares) =
            (self.sums[to].0 - self.sums[from + 1].0, self.sums[to].1 - self.sums[from + 1].1);
        let product = first + self.rest * sum;
        first * self.series[from] + squares - product * product * self.weights[to - from]
    }

    /// The changes with the least squares and penalties.
    fn partition(&self, penalty: f64) -> Partition {
        let n = self.series.len();
        // The least cost of what lies before each index, and the last change in it.
        let mut best = vec![(f64::INFINITY, 0); n + 1];
        best[0].0 = 0.0;
        for end in SHORTEST..=n {
            for from in 0..=end - SHORTEST {
                let total =
                    best[from].0 + self.squares(from, end) + if from > 0 { penalty } else { 0.0 };
                if total < best[end].0 {
                    best[end] = (total, from);
                }
            }
        }
        let mut at = Vec::new();
        let mut last = best[n].1;
        while last > 0 {
            at.push(last);
            last = best[last].1;
        }
        at.reverse();
        let bounds: Vec<usize> = [0].into_iter().chain(at.iter().copied()).chain([n]).collect();
        let squares = bounds.windows(2).map(|pair| self.squares(pair[0], pair[1])).sum();
        Partition { at, squares }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Normal, autoregression};

    #[test]
    fn a_step_is_found_where_it_is_and_a_series_with_none_has_none() {
        let mut series: Vec<f64> =
            autoregression(&mut Normal(5), 60, 0.0).iter().map(|v| 1000.0 + 20.0 * v).collect();
        assert_eq!(changes(&series).unwrap(), [0; 0]);
        series[30..40].iter_mut().for_each(|v| *v -= 300.0);
        assert_eq!(changes(&series).unwrap(), [30, 40]);
        assert_eq!(changes(&series[..19]), None);
        series[3] = f64::NAN;
        assert_eq!(changes(&series), None);
        assert_eq!(changes(&[7.0; 60]).unwrap(), [0; 0]);
        let mut step = [7.0; 60];
        step[20..].fill(9.0);
        assert_eq!(changes(&step).unwrap(), [20], "though most differences are 0");
    }

    #[test]
    fn for_independent_elements_the_squares_are_those_around_the_means() {
        let series: Vec<f64> = autoregression(&mut Normal(11), 50, 0.0);
        let part = &series[7..21];
        let counted = part.iter().map(|v| (v - mean(part)).powi(2)).sum::<f64>();
        assert!((Costs::new(&series, 0.0).squares(7, 21) - counted).abs() < 1e-9);
    }

    #[test]
    fn for_alike_elements_the_squares_are_the_least_of_any_mean() {
        let series: Vec<f64> = autoregression(&mut Normal(12), 50, 0.8);
        let part = &series[7..21];
        let squares = |mean: f64| {
            let first = (1.0 - 0.64) * (part[0] - mean).powi(2);
            let new = part.windows(2).map(|pair| (pair[1] - mean - 0.8 * (pair[0] - mean)).powi(2));
            first + new.sum::<f64>()
        };
        let least =
            (-4000..4000).map(|i| squares(f64::from(i) / 1000.0)).fold(f64::INFINITY, f64::min);
        let found = Costs::new(&series, 0.8).squares(7, 21);
        assert!(found <= least + 1e-9 && least - found < 1e-5, "{found} {least}");
    }

    #[test]
    fn a_partition_leaves_the_squares_of_its_parts_and_no_less_can_be_had() {
        let mut series = autoregression(&mut Normal(13), 18, 0.0);
        series[9..].iter_mut().for_each(|v| *v += 4.0);
        let costs = Costs::new(&series, 0.0);
        let found = costs.partition(9.0);
        // Every choice of changes, as the bits of a number.
        let least = (0..1_u32 << 17)
            .filter_map(|bits| {
                let at = (1..18).filter(|i| bits >> (i - 1) & 1 == 1);
                let bounds: Vec<usize> = [0].into_iter().chain(at).chain([18]).collect();
                let parts = bounds.windows(2);
                let long = parts.clone().all(|pair| pair[1] - pair[0] >= SHORTEST);
                long.then(|| {
                    parts.map(|pair| costs.squares(pair[0], pair[1]) + 9.0).sum::<f64>() - 9.0
                })
            })
            .fold(f64::INFINITY, f64::min);
        assert!((found.squares + 9.0 * found.at.len() as f64 - least).abs() < 1e-9);
        assert_eq!(found.at, [9]);
    }

    #[test]
    fn a_fall_of_a_quarter_is_found_however_alike_neighbours_are() {
        let mut random = Normal(14);
        for r in [0.0, 0.5, 0.8, 0.95] {
            let found = (0..50)
                .filter(|_| {
                    let mut series: Vec<f64> = autoregression(&mut random, 120, r)
                        .iter()
                        .map(|v| 1000.0 + 50.0 * v)
                        .collect();
                    series[40..].iter_mut().for_each(|v| *v -= 250.0);
                    changes(&series).unwrap().iter().any(|at| (39..=41).contains(at))
                })
                .count();
            assert!(found >= 48, "autocorrelation {r}: {found} of 50");
        }
    }

    #[test]
    fn steady_series_rarely_show_a_change_however_alike_their_neighbours_are() {
        let mut random = Normal(3);
        for (n, r, most) in [
            (60, 0.0, 4.0),
            (60, 0.5, 5.0),
            (60, 0.95, 8.0),
            (120, 0.9, 5.0),
            (300, 0.0, 2.0),
            (300, 0.8, 4.0),
        ] {
            let found = (0..200)
                .filter(|_| !changes(&autoregression(&mut random, n, r)).unwrap().is_empty())
                .count();
            let share = found as f64 / 2.0;
            eprintln!("falsely changed, {n} seconds, autocorrelation {r}: {share}%");
            assert!(share <= most, "n={n} r={r}: {share}%");
        }
    }

    #[test]
    fn hours_of_seconds_are_judged_by_stretches_and_changes_found_to_the_second() {
        let mut series: Vec<f64> = autoregression(&mut Normal(9), 20_000, 0.3);
        series[10_000..].iter_mut().for_each(|v| *v += 3.0);
        let found = changes(&series).unwrap();
        assert!(found.len() == 1 && found[0].abs_diff(10_000) <= 2, "{found:?}");
    }
}
