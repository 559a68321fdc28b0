//! Whether the first trials of runs differ from those after them.

use std::f64::consts::SQRT_2;

use statrs::distribution::{ContinuousCDF, Normal};
use statrs::function::erf::erfc;

use crate::additive::{blocks, is_usable};
use crate::common_noise::Trials;
use crate::mean::{count, mean};
use crate::student::{CONFIDENCE, t_one_sided};

/// Fewest runs that are judged together.
const FEWEST: usize = 3;
/// Largest deviate of one run, in standard deviations.
const MOST_Z: f64 = 6.0;

/// Deviation of a run's first trial from the value that its treatment and block let expect.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FirstTrial {
    /// Logarithm of the trial's value ÷ the expected one.
    pub log: f64,
    /// Standard normal deviate, if the trial is like all others.
    pub z: f64,
}

/// Returns the deviation of the trial `first` (treatment, block) from the others of its run.
///
/// The residual of the trial is compared with those of all others (externally studentised: R. D.
/// Cook and S. Weisberg, *Residuals and Influence in Regression*, 1982). `trials` has each
/// treatment's (block, value). `has_blocks` is as in [`RunDesign`](crate::RunDesign). None if the
/// table of the run is not complete, or has too few trials.
pub fn first_trial(trials: &[Trials], has_blocks: bool, first: (usize, u32)) -> Option<FirstTrial> {
    let all = blocks(trials);
    let is_whole = |t: &&Trials| is_usable(t) && t.len() == all.len();
    if !trials.iter().all(|t| is_whole(&t)) || all.len() < 2 {
        return None;
    }
    let row = |t: &Trials| -> Option<Vec<f64>> {
        let at = |block: &u32| t.iter().find(|(b, _)| b == block).map(|(_, value)| value.ln());
        all.iter().map(at).collect()
    };
    let mut rows: Vec<Vec<f64>> = trials.iter().map(row).collect::<Option<_>>()?;
    for row in &mut rows {
        let of_treatment = mean(row.iter());
        row.iter_mut().for_each(|value| *value -= of_treatment);
    }
    let with_blocks = has_blocks && rows.len() > 1;
    for block in 0..if with_blocks { all.len() } else { 0 } {
        let of_block = mean(rows.iter().map(|row| row[block]));
        rows.iter_mut().for_each(|row| row[block] -= of_block);
    }
    let (treatments, repeats) = (count(rows.len()), count(all.len()));
    let treatments_left = if with_blocks { treatments - 1.0 } else { treatments };
    let freedom = treatments_left * (repeats - 1.0);
    // Part of a trial's own deviation that is left in its residual.
    let left = freedom / (treatments * repeats);
    let place = all.iter().position(|block| *block == first.1)?;
    let log = rows.get(first.0)?[place] / left;
    let squares: f64 = rows.iter().flatten().map(|rest| rest * rest).sum();
    let of_others = (squares - log * log * left) / (freedom - 1.0);
    let t = log * (left / of_others).sqrt();
    let beyond = t_one_sided(t.abs(), freedom - 1.0).filter(|p| *p > 0.0)?;
    let z = Normal::standard().inverse_cdf(1.0 - beyond).abs().min(MOST_Z);
    Some(FirstTrial { log, z: z.copysign(t) })
}

/// Returns the mean difference of runs' first trials (a share: −0.1 for 10% less). None if it may
/// be due to chance, or with fewer than three runs.
///
/// The deviates are added up (S. A. Stouffer and others, *The American Soldier* I, 1949), at the 5%
/// level.
pub fn first_trials_differ(firsts: &[FirstTrial]) -> Option<f64> {
    if firsts.len() < FEWEST {
        return None;
    }
    let n = count(firsts.len());
    let z = firsts.iter().map(|first| first.z).sum::<f64>() / n.sqrt();
    let p = erfc(z.abs() / SQRT_2);
    let log = firsts.iter().map(|first| first.log).sum::<f64>() / n;
    (p <= 1.0 - CONFIDENCE).then(|| log.exp_m1())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Normal as Draw, coverage};

    /// Draws first trials of `runs`, each with four treatments of three repeats. The first trial
    /// has `slower` times its tps.
    fn firsts(normal: &mut Draw, runs: usize, has_blocks: bool, slower: f64) -> Vec<FirstTrial> {
        let run = |_| {
            let mut trials: Vec<Vec<(u32, f64)>> = (0..4)
                .map(|t| {
                    let mut value =
                        |b: u32| f64::from(t + 1) * (f64::from(b) + 0.05 * normal.draw()).exp();
                    (1..=3).map(|b| (b, value(if has_blocks { b } else { 0 }))).collect()
                })
                .collect();
            trials[2][0].1 *= slower;
            let trials: Vec<Trials> = trials.iter().map(Vec::as_slice).collect();
            first_trial(&trials, has_blocks, (2, 1)).unwrap()
        };
        (0..runs).map(run).collect()
    }

    #[test]
    fn a_first_trial_by_hand() {
        // Deviations −0.2, 0.1, 0.1 of the first and 0.1, 0, −0.1 of the second, without blocks: of
        // four degrees of freedom the first trial's residual keeps 2 ÷ 3 of its own deviation,
        // −0.3. Squares are 0.08, less 0.09 × 2 ÷ 3 = 0.02 on three: t = −0.3 √(2 ÷ 3 ÷ 0.00667) =
        // −3.
        let of = |logs: [f64; 3]| (1..).zip(logs.map(f64::exp)).collect::<Vec<(u32, f64)>>();
        let (a, b) = (of([0.8, 1.1, 1.1]), of([2.1, 2.0, 1.9]));
        let found = first_trial(&[&a, &b], false, (0, 1)).unwrap();
        assert!((found.log + 0.3).abs() < 1e-9, "{found:?}");
        // t(3) beyond 3: 0.02883, a deviate of 1.899.
        assert!((found.z + 1.899).abs() < 1e-3, "{found:?}");
        assert_eq!(first_trial(&[&a, &b[..2]], false, (0, 1)), None);
        assert_eq!(first_trial(&[&a[..1], &b[..1]], true, (0, 1)), None);
        assert_eq!(first_trial(&[&a], true, (3, 1)), None);
    }

    #[test]
    fn first_trials_that_are_like_others_seldom_differ_and_slow_ones_are_found() {
        for has_blocks in [true, false] {
            for runs in [3, 12] {
                let said = |slower: f64| {
                    coverage(2000, |normal| {
                        first_trials_differ(&firsts(normal, runs, has_blocks, slower)).is_some()
                    })
                };
                let (alike, slow) = (said(1.0), said(0.87));
                eprintln!("{runs} runs: {alike}% alike, {slow}% slow");
                assert!((3.5..=6.5).contains(&alike) && slow > 70.0, "{runs}: {alike}%, {slow}%");
            }
        }
        let mut normal = Draw(1);
        let found = first_trials_differ(&firsts(&mut normal, 24, true, 0.87)).unwrap();
        assert!((found + 0.13).abs() < 0.04, "{found}");
        assert_eq!(first_trials_differ(&firsts(&mut normal, 2, true, 0.1)), None);
    }
}
