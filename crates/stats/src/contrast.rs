//! Weighted sums of several treatments' logarithms: one figure of many trials.

use crate::additive::{Weight, blocks, is_usable};
use crate::common_noise::{CommonNoise, Trials};
use crate::ratio::{LogDifference, Method, Noise, Ratio};
use crate::run_design::RunDesign;
use crate::student::{ROUNDING, moments};
use crate::variance::Variance;

/// Trials of one run, with the noise that its treatments share: what whole factors are judged by.
pub struct RunTrials<'a> {
    pub(crate) trials: &'a [Trials<'a>],
    pub(crate) design: RunDesign<'a>,
    /// None where the treatments do not spread alike, or not at all.
    pub(crate) common: Option<CommonNoise>,
}

impl<'a> RunTrials<'a> {
    /// Creates them from each treatment's (block, value).
    pub fn new(trials: &'a [Trials<'a>], design: RunDesign<'a>) -> Self {
        let varies = |common: &CommonNoise| common.model.rest().value.sqrt() > ROUNDING;
        let common = CommonNoise::new(trials, design).filter(varies);
        Self { trials, design, common }
    }

    /// Returns the share of the 5% that the last look may spend.
    pub(crate) fn last_share(&self) -> f64 {
        let blocks = blocks(self.trials).len();
        let blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
        self.design.looks.map_or(1.0, |looks| looks.alpha_share(blocks))
    }

    /// Returns whether a treatment has trials, all of which have logarithms.
    pub(crate) fn is_known(&self, treatment: usize) -> bool {
        self.trials.get(treatment).is_some_and(|trials| is_usable(trials))
    }

    /// Estimates `contrast` from the trials of its own treatments.
    pub(crate) fn by_own_trials(&self, contrast: &[Weight]) -> Option<LogDifference> {
        match self.design.has_blocks {
            true => within_blocks(self.trials, contrast),
            false => of_means(self.trials, contrast),
        }
    }
}

/// Returns the geometric mean of the ratios `a` ÷ `b` of `pairs` (a, b) of a run's treatments.
///
/// It is judged by itself, with the noise that all treatments share, or else with that of its own
/// trials. None without a pair, or where a treatment has no trial or one without a logarithm.
///
/// ```
/// use pgdyno_stats::{RunDesign, RunTrials, average_ratio};
///
/// let of = |tps: f64| [(1, tps), (2, 1.01 * tps), (3, 0.99 * tps)];
/// let all = [of(100.0), of(120.0), of(300.0), of(432.0)];
/// let trials: Vec<&[(u32, f64)]> = all.iter().map(|t| &t[..]).collect();
/// // 1.2 and 1.44 times.
/// let run = RunTrials::new(&trials, RunDesign::new(false));
/// let found = average_ratio(&run, &[(1, 0), (3, 2)]).unwrap();
/// assert!(found.value.is_some_and(|value| (value - 1.2f64.powf(1.5)).abs() < 1e-9));
/// ```
pub fn average_ratio(run: &RunTrials, pairs: &[(usize, usize)]) -> Option<Ratio> {
    if pairs.is_empty() || !pairs.iter().all(|(a, b)| run.is_known(*a) && run.is_known(*b)) {
        return None;
    }
    let weight = 1.0 / pairs.len() as f64;
    let contrast: Vec<Weight> =
        pairs.iter().flat_map(|(a, b)| [(*a, weight), (*b, -weight)]).collect();
    let share = run.last_share();
    if let Some(common) = &run.common {
        let noise = Noise::Shared { treatments: common.usable.len() };
        let log = common.model.contrast(&common.in_model(&contrast)?);
        return Some(Ratio::from_log(Method::Pooled, log, share * common.level(), noise));
    }
    let method = if run.design.has_blocks { Method::Paired } else { Method::Welch };
    Some(Ratio::from_log(method, run.by_own_trials(&contrast)?, share, Noise::Own))
}

/// Estimates `contrast` from its values within the blocks that have all of its treatments.
fn within_blocks(trials: &[Trials], contrast: &[Weight]) -> Option<LogDifference> {
    let at = |block: u32| -> Option<f64> {
        let log = |t: usize| {
            trials[t].iter().find(|(number, _)| *number == block).map(|(_, value)| value.ln())
        };
        contrast.iter().map(|(t, weight)| Some(weight * log(*t)?)).sum()
    };
    let values: Vec<f64> = blocks(trials).into_iter().filter_map(at).collect();
    let (difference, sd) = moments(&values)?;
    let n = values.len() as f64;
    Some(LogDifference { difference, error: sd / n.sqrt(), freedom: n - 1.0 })
}

/// Estimates `contrast` from its treatments' means.
fn of_means(trials: &[Trials], contrast: &[Weight]) -> Option<LogDifference> {
    let mut difference = 0.0;
    let mut terms = Vec::with_capacity(contrast.len());
    for (t, weight) in contrast {
        let logs: Vec<f64> = trials[*t].iter().map(|(_, value)| value.ln()).collect();
        let (mean, sd) = moments(&logs)?;
        let n = logs.len() as f64;
        difference += weight * mean;
        terms.push(Variance { value: (weight * sd).powi(2) / n, freedom: n - 1.0 });
    }
    let variance = Variance::of_sum(terms);
    variance.freedom.is_finite().then(|| LogDifference::new(difference, variance))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repeats(logs: &[f64]) -> Vec<(u32, f64)> {
        (1..).zip(logs.iter().map(|log| log.exp())).collect()
    }

    #[test]
    fn an_average_is_known_better_than_each_of_its_ratios() {
        // Effects 1 and 2; the rest is ±0.1 or 0: squares 8 × 0.01 on 8 degrees of freedom without
        // blocks.
        let rest = [-0.1, 0.0, 0.1];
        let trials = [0.0, 1.0, 5.0, 7.0].map(|effect| repeats(&rest.map(|r| r + effect)));
        let trials: Vec<Trials> = trials.iter().map(Vec::as_slice).collect();
        let run = RunTrials::new(&trials, RunDesign::new(false));
        let found = average_ratio(&run, &[(1, 0), (3, 2)]).unwrap();
        assert!((found.value.unwrap().ln() - 1.5).abs() < 1e-9);
        // t(0.985; 8) = 2.634 at 60% of 5%; the error is √(0.01 × 4 / (4 × 3)).
        let half = 2.634 * (0.01f64 / 3.0).sqrt();
        assert!((found.ci95.unwrap()[0].ln() - (1.5 - half)).abs() < 1e-3, "{found:?}");
        let alone = average_ratio(&run, &[(1, 0)]).unwrap();
        let width = |ratio: &Ratio| ratio.ci95.map(|[low, high]| (high / low).ln()).unwrap();
        assert!((width(&alone) / width(&found) - 2f64.sqrt()).abs() < 1e-9);
    }

    #[test]
    fn without_a_common_noise_it_is_that_of_the_blocks() {
        // Two treatments share none. Differences 1.1, 0.9, 1.0.
        let (a, b) = (repeats(&[1.1, 1.9, 3.0]), repeats(&[0.0, 1.0, 2.0]));
        let average = |trials: &[Trials], pairs: &[(usize, usize)]| {
            average_ratio(&RunTrials::new(trials, RunDesign::new(true)), pairs)
        };
        let found = average(&[&a, &b], &[(0, 1)]).unwrap();
        assert_eq!(found.method, Some(Method::Paired));
        let half = 4.302_65 * 0.1 / 3f64.sqrt();
        assert!((found.ci95.unwrap()[1].ln() - (1.0 + half)).abs() < 1e-4, "{found:?}");
        assert_eq!(average(&[&a, &b], &[]), None);
        assert_eq!(average(&[&a, &[]], &[(0, 1)]), None);
        assert_eq!(average(&[&a], &[(0, 1)]), None);
    }
}
