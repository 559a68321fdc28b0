//! One value a second: where it becomes steady, and how many independent values it is worth.

use super::{moments, t_quantile};

/// Elements in a batch.
const BATCH: usize = 5;
/// Below this many batches nothing is looked for.
const FEWEST_BATCHES: usize = 8;
/// A beginning counts as unlike the rest only beyond this level: it was chosen for being unlike.
const LEVEL: f64 = 0.001;

/// Whether a series begins with a warm-up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WarmUp {
    /// It is steady from its beginning, as far as can be told.
    None,
    /// Its first `elements` are unlike the rest; without them the mean is `gain` higher (a share, negative for lower).
    Until {
        /// How many.
        elements: usize,
        /// The rest's mean over that of all, less 1.
        gain: f64,
    },
    /// The best cut is in its middle or later: it does not become steady.
    NotSteady,
}

/// Where `series` becomes steady; none for fewer than 40 elements, one that is not finite, or a mean of 0.
///
/// MSER-5: the cut that makes the standard error of the rest's mean least, on means of batches of five. K. P. White, *An
/// effective truncation heuristic for bias reduction in simulation output*, Simulation 69 (1997); K. P. White, M. J. Cobb and
/// S. C. Spratt, *A comparison of five steady-state truncation heuristics for simulation*, Proc. Winter Simulation
/// Conference (2000). It always cuts somewhere, on noise too; a cut counts only if what it takes away is unlike the rest
/// by a t test at 0.1%.
#[must_use]
#[allow(clippy::cast_precision_loss)]
pub fn warm_up(series: &[f64]) -> Option<WarmUp> {
    let batches: Vec<f64> =
        series.chunks_exact(BATCH).map(|batch| batch.iter().sum::<f64>() / BATCH as f64).collect();
    let (all, _) = moments(&batches).filter(|(mean, _)| *mean > 0.0)?;
    if batches.len() < FEWEST_BATCHES {
        return None;
    }
    let statistic = |cut: usize| {
        let (_, sd) = moments(&batches[cut..])?;
        let n = (batches.len() - cut) as f64;
        Some((cut, sd * sd * (n - 1.0) / (n * n)))
    };
    // A few batches alone look steady by chance: no cut beyond the middle is considered, and one there means that it had
    // better be later.
    let last = batches.len() / 2;
    let cuts = (0..=last).filter_map(statistic);
    let (cut, _) = cuts.min_by(|a, b| a.1.total_cmp(&b.1))?;
    if cut == 0 {
        return Some(WarmUp::None);
    }
    let (rest, sd) = moments(&batches[cut..])?;
    let n = (batches.len() - cut) as f64;
    let taken = batches[..cut].iter().sum::<f64>() / cut as f64;
    let error = sd * (1.0 / cut as f64 + 1.0 / n).sqrt();
    if (taken - rest).abs() <= t_quantile(1.0 - LEVEL / 2.0, n - 1.0)? * error {
        return Some(WarmUp::None);
    }
    if cut == last {
        return Some(WarmUp::NotSteady);
    }
    Some(WarmUp::Until { elements: cut * BATCH, gain: rest / all - 1.0 })
}

/// How a series' neighbours resemble each other.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Autocorrelation {
    /// The correlation of neighbours (-1 to 1).
    pub first: f64,
    /// Independent values whose mean would be as sure as this series' (count, at most the series' length).
    pub effective: f64,
}

/// The autocorrelation of `series`; none for fewer than 10 elements, one that is not finite, or one that does not vary.
///
/// The autocorrelation time is summed up to where pairs of neighbouring autocorrelations are no longer positive: the
/// initial positive sequence of C. J. Geyer, *Practical Markov chain Monte Carlo*, Statistical Science 7 (1992).
#[must_use]
#[allow(clippy::cast_precision_loss)]
pub fn autocorrelation(series: &[f64]) -> Option<Autocorrelation> {
    let n = series.len();
    let (mean, sd) = moments(series).filter(|(mean, sd)| n >= 10 && *sd > super::ROUNDING * mean.abs())?;
    let variance = sd * sd * (n as f64 - 1.0);
    let at = |lag: usize| {
        series.iter().zip(&series[lag..]).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>() / variance
    };
    let pairs = (0..n / 4).map(|pair| at(2 * pair) + at(2 * pair + 1)).take_while(|sum| *sum > 0.0);
    let time = (2.0 * pairs.sum::<f64>() - 1.0).max(1.0);
    Some(Autocorrelation { first: at(1), effective: (n as f64 / time).max(1.0) })
}

#[cfg(test)]
mod tests {
    use super::super::random::Normal;
    use super::*;

    fn series(random: &mut Normal, n: usize, r: f64, mean: impl Fn(usize) -> f64) -> Vec<f64> {
        let mut last = random.draw();
        (0..n)
            .map(|i| {
                last = r * last + (1.0 - r * r).sqrt() * random.draw();
                mean(i) * (1.0 + 0.05 * last)
            })
            .collect()
    }

    #[test]
    fn a_warm_up_is_found_about_where_it_ends() {
        let mut random = Normal(21);
        let found = (0..50)
            .filter(|_| {
                let mean = |i: usize| if i < 30 { 700.0 + 10.0 * i as f64 } else { 1000.0 };
                match warm_up(&series(&mut random, 120, 0.3, mean)) {
                    Some(WarmUp::Until { elements, gain }) => {
                        (15..=45).contains(&elements) && (0.01..0.08).contains(&gain)
                    }
                    _ => false,
                }
            })
            .count();
        assert!(found >= 40, "{found} of 50");
    }

    #[test]
    fn steady_series_rarely_show_a_warm_up() {
        let mut random = Normal(22);
        for (n, r) in [(60, 0.0), (60, 0.4), (300, 0.4)] {
            let wrong = (0..1000)
                .filter(|_| warm_up(&series(&mut random, n, r, |_| 1000.0)) != Some(WarmUp::None))
                .count();
            eprintln!("warm-up n={n} r={r}: {wrong} of 1000");
            assert!(wrong <= 50, "n={n} r={r}: {wrong} of 1000");
        }
    }

    #[test]
    fn what_keeps_falling_is_not_steady_and_what_is_short_is_not_judged() {
        let mut random = Normal(23);
        let falling =
            series(&mut random, 100, 0.0, |i| if i < 70 { 4000.0 - 40.0 * i as f64 } else { 1000.0 });
        assert_eq!(warm_up(&falling), Some(WarmUp::NotSteady));
        assert_eq!(warm_up(&[1.0; 39]), None);
        assert_eq!(warm_up(&[0.0; 60]), None);
        assert_eq!(warm_up(&[5.0; 60]), Some(WarmUp::None));
        assert_eq!(warm_up(&[f64::NAN; 60]), None);
    }

    #[test]
    fn alike_neighbours_are_worth_less_and_independent_values_all() {
        let mut random = Normal(24);
        let mut mean = |r: f64| {
            let of = |s: Vec<f64>| autocorrelation(&s).unwrap().effective;
            (0..200).map(|_| of(series(&mut random, 400, r, |_| 1000.0))).sum::<f64>() / 200.0
        };
        // n (1 - r) / (1 + r): 400, 133, 44.
        assert!((330.0..=400.0).contains(&mean(0.0)));
        assert!((110.0..=160.0).contains(&mean(0.5)));
        assert!((36.0..=60.0).contains(&mean(0.8)));
        assert_eq!(autocorrelation(&[1.0; 50]), None);
        assert_eq!(autocorrelation(&[1.0, 2.0]), None);
        assert_eq!(autocorrelation(&[f64::NAN; 50]), None);
    }
}
