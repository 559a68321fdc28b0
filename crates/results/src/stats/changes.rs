//! Where the mean of a series changes.

/// The shortest stretch between two changes (elements).
const SHORTEST: usize = 3;
/// Below this many elements nothing is looked for.
const FEWEST: usize = 20;
/// Longer series are judged by means of equal stretches, so that the time it takes stays bounded.
const MOST: usize = 5000;
/// The penalty for a change, in long-run variances times ln n: the leading term of the modified BIC (N. R. Zhang and D. O.
/// Siegmund, *A modified Bayes information criterion with applications to the analysis of comparative genomic
/// hybridization data*, Biometrics 63, 2007).
const PENALTY: f64 = 3.0;
/// The mean of the smaller nine tenths of X² for a standard normal X: 1 - 2 c φ(c) / 0.9 with c = 1.644854.
const TRIMMED: f64 = 0.623_015;

/// The indices at which another mean begins; none where the series is too short (20 elements) or not all numbers.
///
/// PELT with squared error: R. Killick, P. Fearnhead and I. A. Eckley, *Optimal detection of changepoints with a linear
/// computational cost*, JASA 107 (2012). Neighbouring seconds resemble each other, which must not pass for changes: the
/// penalty is in long-run variances of a first-order autoregression, whose coefficient and variance are estimated from
/// differences, where a change of mean is but an outlier: S. Chakar, E. Lebarbier, C. Lévy-Leduc and S. Robin, *A robust
/// approach for estimating change-points in the mean of an AR(1) process*, Bernoulli 23 (2017).
#[must_use]
pub fn changes(series: &[f64]) -> Option<Vec<usize>> {
    if series.len() < FEWEST || series.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let stretch = series.len().div_ceil(MOST);
    let means: Vec<f64> = series.chunks_exact(stretch).map(mean).collect();
    let Some(variance) = long_run_variance(&means) else { return Some(Vec::new()) };
    #[allow(clippy::cast_precision_loss)]
    let penalty = PENALTY * variance * (means.len() as f64).ln();
    Some(pelt(&means, penalty).into_iter().map(|i| i * stretch).collect())
}

#[allow(clippy::cast_precision_loss)]
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Variance times the autocorrelation time of a first-order autoregression; none for a series that does not vary.
fn long_run_variance(series: &[f64]) -> Option<f64> {
    let squares = |lag: usize| -> Vec<f64> {
        let mut squares: Vec<f64> = series.iter().zip(&series[lag..]).map(|(a, b)| (b - a).powi(2)).collect();
        squares.sort_by(f64::total_cmp);
        squares
    };
    // Of differences, the largest tenth may be changes of mean and is left out.
    let variance = |squares: &[f64]| mean(&squares[..squares.len() * 9 / 10]) / TRIMMED;
    let (one, two) = (squares(1), squares(2));
    if variance(&one) <= 0.0 {
        // Most elements are equal: what little differs is the only measure of noise.
        return Some(mean(&one) / 2.0).filter(|v| *v > 0.0);
    }
    // Var(y[i+1] - y[i]) = 2 s² (1 - r) and Var(y[i+2] - y[i]) = 2 s² (1 - r²). Negative correlation only makes the mean
    // steadier; near 1 there is nothing left to tell.
    let r = (variance(&two) / variance(&one) - 1.0).clamp(0.0, 0.9);
    Some(variance(&one) / 2.0 * (1.0 + r) / (1.0 - r).powi(2))
}

fn pelt(series: &[f64], penalty: f64) -> Vec<usize> {
    // Sums of deviations from the mean, so that squares stay small beside what they are to tell.
    let centre = mean(series);
    let mut sums = vec![(0.0, 0.0)];
    for value in series {
        let (sum, squares) = sums[sums.len() - 1];
        let value = value - centre;
        sums.push((sum + value, squares + value * value));
    }
    #[allow(clippy::cast_precision_loss)]
    let cost = |from: usize, to: usize| {
        let (sum, squares) = (sums[to].0 - sums[from].0, sums[to].1 - sums[from].1);
        squares - sum * sum / (to - from) as f64
    };
    let n = series.len();
    // The least cost of what lies before each index, and the last change in it.
    let mut best = vec![(f64::INFINITY, 0); n + 1];
    best[0].0 = -penalty;
    // Possible last changes, and from when on they no longer are.
    let mut candidates: Vec<(usize, usize)> = Vec::new();
    for end in SHORTEST..=n {
        candidates.push((end - SHORTEST, usize::MAX));
        for (from, _) in &candidates {
            let total = best[*from].0 + cost(*from, end) + penalty;
            if total < best[end].0 {
                best[end] = (total, *from);
            }
        }
        for (from, until) in &mut candidates {
            // A change here would have been better than at `from`, and still will be once it may be followed by another.
            if *until == usize::MAX && best[*from].0 + cost(*from, end) > best[end].0 {
                *until = end + SHORTEST;
            }
        }
        candidates.retain(|(_, until)| end + 1 < *until);
    }
    let mut found = Vec::new();
    let mut at = best[n].1;
    while at > 0 {
        found.push(at);
        at = best[at].1;
    }
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use super::super::random::Normal;
    use super::*;

    /// A first-order autoregression of standard deviation 1.
    fn noise(random: &mut Normal, n: usize, r: f64) -> Vec<f64> {
        let mut last = random.draw();
        (0..n)
            .map(|_| {
                last = r * last + (1.0 - r * r).sqrt() * random.draw();
                last
            })
            .collect()
    }

    #[test]
    fn a_step_is_found_where_it_is_and_a_series_with_none_has_none() {
        let mut series: Vec<f64> = noise(&mut Normal(5), 60, 0.0).iter().map(|v| 1000.0 + 20.0 * v).collect();
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
    fn pruning_finds_what_trying_all_finds() {
        let mut random = Normal(11);
        for _ in 0..20 {
            let mut series = noise(&mut random, 50, 0.0);
            for (i, v) in series.iter_mut().enumerate() {
                *v += [0.0, 4.0, 1.0, 5.0][i / 13];
            }
            let all = |from: usize, to: usize| {
                let part = &series[from..to];
                part.iter().map(|v| (v - mean(part)).powi(2)).sum::<f64>()
            };
            let mut best = vec![f64::INFINITY; 51];
            best[0] = -9.0;
            for end in SHORTEST..=50 {
                best[end] =
                    (0..=end - SHORTEST).map(|s| best[s] + all(s, end) + 9.0).fold(f64::INFINITY, f64::min);
            }
            let found = pelt(&series, 9.0);
            let ends: Vec<usize> = [0].into_iter().chain(found).chain([50]).collect();
            let total: f64 = ends.windows(2).map(|w| all(w[0], w[1]) + 9.0).sum::<f64>() - 9.0;
            assert!((total - best[50]).abs() < 1e-9, "{total} {}", best[50]);
        }
    }

    #[test]
    fn steady_series_rarely_show_a_change_however_alike_their_neighbours_are() {
        let mut random = Normal(3);
        for (n, r, most) in
            [(60, 0.0, 5.0), (60, 0.5, 10.0), (300, 0.0, 5.0), (300, 0.5, 5.0), (300, 0.8, 12.0)]
        {
            let found = (0..200).filter(|_| !changes(&noise(&mut random, n, r)).unwrap().is_empty()).count();
            let share = found as f64 / 2.0;
            eprintln!("falsely changed, {n} seconds, autocorrelation {r}: {share}%");
            assert!(share <= most, "n={n} r={r}: {share}%");
        }
    }

    #[test]
    fn days_of_seconds_are_judged_by_stretches() {
        let mut series: Vec<f64> = noise(&mut Normal(9), 20_000, 0.3);
        series[10_000..].iter_mut().for_each(|v| *v += 3.0);
        let found = changes(&series).unwrap();
        assert!(found.len() == 1 && found[0].abs_diff(10_000) <= 8, "{found:?}");
    }
}
