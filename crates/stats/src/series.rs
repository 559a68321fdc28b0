//! Steadiness of series with one value a second.

use crate::long_run::{LEAST_EFFECTIVE, LongRun};
use crate::student::{moments, t_quantile};

/// Elements in a batch.
const BATCH: usize = 5;
/// Fewest batches in which a warm-up is looked for.
const FEWEST_BATCHES: usize = 8;
/// Level at which a beginning counts as unlike the rest. It is low because the beginning was chosen
/// for being unlike.
const LEVEL: f64 = 0.001;

/// Warm-up at the beginning of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WarmUp {
    /// No warm-up, as far as can be told.
    None,
    /// A warm-up of `elements`. Without it the mean is `gain` higher (a share, negative for lower).
    Until {
        /// Length of the warm-up (count).
        elements: usize,
        /// Mean of the rest over that of all, less 1.
        gain: f64,
    },
    /// The series does not become steady: the best cut is in its middle or later.
    NotSteady,
    /// Not judged: the elements resemble each other so much that a warm-up looks like chance.
    NotJudged {
        /// Independent elements that the series is worth (count, fewer than [`LEAST_EFFECTIVE`]).
        effective: f64,
    },
}

/// Returns where `series` becomes steady. None for fewer than 40 elements, for an element that is
/// not finite, and for a mean of 0.
///
/// By MSER-5: the cut that makes the standard error of the rest's mean least, on means of batches
/// of five. K. P. White, *An effective truncation heuristic for bias reduction in simulation
/// output*, Simulation 69 (1997); K. P. White, M. J. Cobb and S. C. Spratt, *A comparison of five
/// steady-state truncation heuristics for simulation*, Proc. Winter Simulation Conference (2000).
/// The method always cuts somewhere, on noise too. A cut counts only if the part before it is
/// unlike the rest by a t test at 0.1%, whose error allows for neighbours that resemble each other.
pub fn warm_up(series: &[f64]) -> Option<WarmUp> {
    moments(series)?;
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
    // A few batches alone look steady by chance: no cut beyond the middle is considered, and one
    // there means that it had better be later.
    let last = batches.len() / 2;
    let cuts = (0..=last).filter_map(statistic);
    let (cut, _) = cuts.min_by(|a, b| a.1.total_cmp(&b.1))?;
    let (taken, rest) = series.split_at(cut * BATCH);
    Some(match unlike(taken, rest) {
        // A rest that goes on falling is worth little; its steps still tell a fall from chance.
        Err(_) if cut == last && unlike_by_steps(series, taken, rest) => WarmUp::NotSteady,
        Err(effective) => WarmUp::NotJudged { effective },
        Ok(false) => WarmUp::None,
        Ok(true) if cut == last => WarmUp::NotSteady,
        Ok(true) => {
            let (rest, _) = moments(&batches[cut..])?;
            WarmUp::Until { elements: cut * BATCH, gain: rest / all - 1.0 }
        }
    })
}

/// Whether the mean of `taken` is unlike that of `rest`, whose elements resemble each other as
/// those of the rest do.
///
/// # Errors
/// How many independent elements both are worth, where that is too few to tell.
fn unlike(taken: &[f64], rest: &[f64]) -> Result<bool, f64> {
    let Some(found) = LongRun::measure(rest) else {
        // A rest that does not vary: any difference is one.
        return Ok(taken.iter().any(|v| *v != rest[0]));
    };
    let effective = found.effective_of((taken.len() + rest.len()) as f64);
    if effective < LEAST_EFFECTIVE {
        return Err(effective);
    }
    Ok(differ(taken, rest, found.variance, found.freedom()))
}

/// Whether the mean of `taken` is unlike that of `rest`, judged by steps from element to element: a
/// trend moves their median and makes no correlation. The estimate is rough, so that only large
/// differences are found.
fn unlike_by_steps(series: &[f64], taken: &[f64], rest: &[f64]) -> bool {
    let n = series.len() as f64;
    let (Some(one), Some(two)) = (steps_variance(series, 1), steps_variance(series, 2)) else {
        return false;
    };
    if one <= 0.0 {
        return false;
    }
    // Var(y[i+1] - y[i]) = 2 s² (1 - r) and Var(y[i+2] - y[i]) = 2 s² (1 - r²). The coefficient is
    // taken too high rather than too low: it has a standard error of about 2.5 / √n.
    let r = (two / one - 1.0 + 1.0 / n.sqrt()).clamp(0.0, 0.97);
    let time = (1.0 + r) / (1.0 - r);
    let variance = one / 2.0 * (1.0 + r) / (1.0 - r).powi(2);
    n / time >= LEAST_EFFECTIVE && differ(taken, rest, variance, n / (1.0 + 2.0 * time))
}

/// The variance of steps over `lag` elements, from the nine tenths of them that are nearest to
/// their median.
fn steps_variance(series: &[f64], lag: usize) -> Option<f64> {
    /// The mean of the smaller nine tenths of X² for a standard normal X: 1 - 2 c φ(c) / 0.9 with c
    /// = 1.644854.
    const TRIMMED: f64 = 0.623_015;
    let mut steps: Vec<f64> = series.iter().zip(&series[lag..]).map(|(a, b)| b - a).collect();
    steps.sort_by(f64::total_cmp);
    let median = f64::midpoint(*steps.get(steps.len() / 2)?, steps[(steps.len() - 1) / 2]);
    let mut squares: Vec<f64> = steps.iter().map(|step| (step - median).powi(2)).collect();
    squares.sort_by(f64::total_cmp);
    let kept = &squares[..squares.len() * 9 / 10];
    Some(kept.iter().sum::<f64>() / kept.len() as f64 / TRIMMED)
}

/// A t test at [`LEVEL`]: whether two means differ, where n elements' mean has this variance
/// divided by n.
fn differ(a: &[f64], b: &[f64], variance: f64, freedom: f64) -> bool {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let error = (variance * (1.0 / a.len() as f64 + 1.0 / b.len() as f64)).sqrt();
    // Without elements there is no difference: NaN is beyond nothing.
    t_quantile(1.0 - LEVEL / 2.0, freedom).is_some_and(|t| (mean(a) - mean(b)).abs() > t * error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Normal, autoregression};

    fn series(random: &mut Normal, n: usize, r: f64, mean: impl Fn(usize) -> f64) -> Vec<f64> {
        (0..)
            .zip(autoregression(random, n, r))
            .map(|(i, noise)| mean(i) * (1.0 + 0.05 * noise))
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
        for (n, r) in [(60, 0.0), (60, 0.4), (60, 0.95), (120, 0.9), (300, 0.4), (300, 0.9)] {
            let mut said = || warm_up(&series(&mut random, n, r, |_| 1000.0)).unwrap();
            let wrong = (0..1000)
                .filter(|_| matches!(said(), WarmUp::Until { .. } | WarmUp::NotSteady))
                .count();
            eprintln!("warm-up n={n} r={r}: {wrong} of 1000");
            assert!(wrong <= 30, "n={n} r={r}: {wrong} of 1000");
        }
    }

    #[test]
    fn what_keeps_falling_is_not_steady_and_what_is_short_is_not_judged() {
        let mut random = Normal(23);
        let falling =
            series(
                &mut random,
                100,
                0.0,
                |i| if i < 70 { 4000.0 - 40.0 * i as f64 } else { 1000.0 },
            );
        assert_eq!(warm_up(&falling), Some(WarmUp::NotSteady));
        assert_eq!(warm_up(&[1.0; 39]), None);
        assert_eq!(warm_up(&[0.0; 60]), None);
        assert_eq!(warm_up(&[5.0; 60]), Some(WarmUp::None));
        assert_eq!(warm_up(&[f64::NAN; 60]), None);
        let mut random = Normal(26);
        let alike = series(&mut random, 60, 0.95, |_| 1000.0);
        assert!(
            matches!(warm_up(&alike), Some(WarmUp::NotJudged { effective }) if effective < 20.0)
        );
    }
}
