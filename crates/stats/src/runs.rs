//! Comparison of two runs by the spread of equal runs, which the trials of either cannot tell.
//!
//! Some things are drawn once a run (initdb, places of files, the hour) and are the same in all its
//! trials. So the run is the unit, and earlier runs show how much two runs differ without any
//! cause.

use crate::host_noise::HostNoise;
use crate::mean::{count, mean};
use crate::ratio::{Method, Ratio, unpaired_ratio};
use crate::run_spread::{RunSpread, is_enough};
use crate::student::moments;

/// Logarithms of trials in earlier runs, by groups of runs that should be equal.
#[derive(Clone, Debug, Default)]
pub struct EarlierRuns {
    groups: Vec<Vec<Vec<f64>>>,
}

impl EarlierRuns {
    /// Adds `runs` that should be equal to each other: (block, value) of each run's trials. Runs
    /// without a positive value are left out.
    pub fn add_group<'a>(&mut self, runs: impl IntoIterator<Item = &'a [(u32, f64)]>) {
        let logs =
            |run: &[(u32, f64)]| run.iter().map(|(_, value)| value.ln()).collect::<Vec<f64>>();
        let sound = |logs: &Vec<f64>| !logs.is_empty() && logs.iter().all(|log| log.is_finite());
        self.groups.push(runs.into_iter().map(logs).filter(sound).collect());
    }

    /// Returns the spread of runs, pooled over groups that have no run in common.
    pub(crate) fn spread(&self) -> Option<RunSpread> {
        self.pooled(count(self.groups.iter().map(|group| group.len().saturating_sub(1)).sum()))
    }

    /// Returns the spread of the runs of one experiment, pooled over its treatments: each is a
    /// group of the same runs. None without two runs.
    ///
    /// A run's own draw is the same in all its treatments, so that several treatments tell no more
    /// of the runs than one. The degrees of freedom are therefore those of the largest group.
    pub fn spread_of_experiment(&self) -> Option<RunSpread> {
        self.pooled(count(self.groups.iter().map(|g| g.len().saturating_sub(1)).max()?))
    }

    /// Returns the spread over all groups, with `freedom` degrees of freedom.
    fn pooled(&self, freedom: f64) -> Option<RunSpread> {
        let (mut squares, mut weight) = (0.0, 0.0);
        let mut within = Vec::new();
        for group in &self.groups {
            let means: Vec<f64> = group.iter().map(mean).collect();
            if let Some((_, sd)) = moments(&means) {
                squares += sd * sd * count(means.len() - 1);
                weight += count(means.len() - 1);
            }
            within.extend(group.iter().filter_map(|logs| own(logs)));
        }
        let of_trials = if within.is_empty() { 0.0 } else { mean(&within) };
        (weight > 0.0).then(|| RunSpread { of_runs: squares / weight, of_trials, freedom })
    }
}

/// Returns the ratio `a` ÷ `b` of two runs, as sure as `earlier` runs and those of other
/// experiments on the `host` let it be. None if these are too few, or have no spread.
///
/// The error of the difference of mean logarithms is √(2 S²), S² the variance of earlier runs'
/// means, on their degrees of freedom. If the two runs' own trials spread more than those of
/// earlier runs (fewer repeats, a noisier day), the excess is added. If the interval by the trials
/// alone (Welch's) is still wider, that interval holds. `share` is as in [`unpaired_ratio`].
pub fn ratio_across(
    share: f64,
    a: &[(u32, f64)],
    b: &[(u32, f64)],
    earlier: &EarlierRuns,
    host: Option<&HostNoise>,
) -> Option<Ratio> {
    let own_spread = earlier.spread();
    let RunSpread { of_runs, of_trials, freedom } = match host {
        Some(host) => host.with(own_spread)?,
        None => own_spread?,
    };
    if !is_enough(freedom) || a.is_empty() || b.is_empty() {
        return None;
    }
    let alone = unpaired_ratio(share, a, b);
    let logs =
        |trials: &[(u32, f64)]| trials.iter().map(|(_, value)| value.ln()).collect::<Vec<f64>>();
    let (a, b) = (logs(a), logs(b));
    let of_both = own(&a).unwrap_or(of_trials) + own(&b).unwrap_or(of_trials);
    let variance = 2.0 * of_runs + (of_both - 2.0 * of_trials).max(0.0);
    let across = Ratio::from_log_difference(
        Method::Runs,
        mean(&a) - mean(&b),
        variance.sqrt(),
        freedom,
        share,
    );
    let width = |ratio: &Ratio| ratio.ci95.map_or(0.0, |[lo, hi]| hi / lo);
    across.map(|across| if width(&alone) > width(&across) { alone } else { across })
}

/// Returns the variance of a run's mean by its own trials; none for fewer than two.
fn own(logs: &[f64]) -> Option<f64> {
    moments(logs).map(|(_, sd)| sd * sd / count(logs.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Normal, coverage};

    fn trials(values: &[f64]) -> Vec<(u32, f64)> {
        (1..).zip(values.iter().copied()).collect()
    }

    #[test]
    fn the_spread_of_runs_by_hand() {
        // Logs of runs' means 0, 0.01, 0.02: S = 0.01. Error √2 × 0.01, t(2) = 4.302653, half =
        // 0.060849.
        let runs: Vec<Vec<(u32, f64)>> =
            [0.0f64, 0.01, 0.02].iter().map(|m| trials(&[m.exp()])).collect();
        let mut earlier = EarlierRuns::default();
        earlier.add_group(runs.iter().map(Vec::as_slice));
        let ratio = ratio_across(1.0, &trials(&[1.1]), &trials(&[1.0]), &earlier, None).unwrap();
        let [lo, hi] = ratio.ci95.unwrap();
        assert!(
            (hi.ln() - 1.1f64.ln() - 0.060_849).abs() < 1e-5
                && (lo.ln() - 1.1f64.ln() + 0.060_849).abs() < 1e-5
        );
        // Two runs tell nothing; nor do three in groups of their own.
        let mut two = EarlierRuns::default();
        two.add_group(runs[..2].iter().map(Vec::as_slice));
        assert_eq!(ratio_across(1.0, &trials(&[1.1]), &trials(&[1.0]), &two, None), None);
        let mut apart = EarlierRuns::default();
        runs.iter().for_each(|run| apart.add_group([run.as_slice()]));
        assert_eq!(ratio_across(1.0, &trials(&[1.1]), &trials(&[1.0]), &apart, None), None);
    }

    #[test]
    fn treatments_of_the_same_runs_are_one_witness() {
        // Means 0, 0.01, 0.02 and 0, 0.02, 0.04 of the same three runs: variances 0.0001 and
        // 0.0004, together 0.00025, by two degrees of freedom and not four.
        let runs = |step: f64| [0.0, 1.0, 2.0].map(|m: f64| trials(&[(m * step).exp()]));
        let mut earlier = EarlierRuns::default();
        for runs in [runs(0.01), runs(0.02)] {
            earlier.add_group(runs.iter().map(Vec::as_slice));
        }
        let RunSpread { of_runs, freedom, .. } = earlier.spread_of_experiment().unwrap();
        assert!((of_runs - 0.00025).abs() < 1e-12 && (freedom - 2.0).abs() < 1e-12);
        assert!((earlier.spread().unwrap().freedom - 4.0).abs() < 1e-12);
    }

    #[test]
    fn equal_runs_differ_as_often_as_promised_whatever_their_spread() {
        for (spread, earlier, repeats) in
            [(0.0, 3, 5), (0.01, 3, 5), (0.02, 3, 10), (0.02, 5, 3), (0.02, 10, 10)]
        {
            let held = coverage(4000, |normal| {
                let run = |normal: &mut Normal| {
                    let effect = spread * normal.draw();
                    let values: Vec<f64> =
                        (0..repeats).map(|_| (7.0 + effect + 0.01 * normal.draw()).exp()).collect();
                    trials(&values)
                };
                let before: Vec<_> = (0..earlier).map(|_| run(normal)).collect();
                let mut known = EarlierRuns::default();
                known.add_group(before.iter().map(Vec::as_slice));
                let [lo, hi] = ratio_across(1.0, &run(normal), &run(normal), &known, None)
                    .unwrap()
                    .ci95
                    .unwrap();
                (lo..=hi).contains(&1.0)
            });
            eprintln!(
                "across runs, spread {spread}, {earlier} earlier, {repeats} repeats: {held}%"
            );
            assert!((93.5..=99.5).contains(&held), "{spread} {earlier} {repeats}: {held}%");
        }
    }

    #[test]
    fn the_trials_of_two_runs_alone_promise_too_much_and_more_of_them_more() {
        let held: Vec<f64> = [3, 5, 10]
            .into_iter()
            .map(|repeats| {
                coverage(4000, |normal| {
                    let run = |normal: &mut Normal| {
                        let effect = 0.01 * normal.draw();
                        let trial = |_| (7.0 + effect + 0.01 * normal.draw()).exp();
                        trials(&(0..repeats).map(trial).collect::<Vec<f64>>())
                    };
                    let [lo, hi] = unpaired_ratio(1.0, &run(normal), &run(normal)).ci95.unwrap();
                    (lo..=hi).contains(&1.0)
                })
            })
            .collect();
        eprintln!("Welch across runs, spread of runs and trials 1%, 3, 5, 10 repeats: {held:?}%");
        assert!(held[0] < 85.0 && held[1] < 70.0 && held[2] < 50.0, "{held:?}");
    }
}
