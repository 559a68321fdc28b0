//! The noise that all treatments of a run share.

use crate::additive::{Additive, Weight, blocks, is_usable, logarithms, rest};
use crate::even_spread::spread_is_even;
use crate::prior::{is_enough, moderated};
use crate::run_design::RunDesign;
use crate::variance::Variance;

/// Trials of one treatment as (block, value).
pub(crate) type Trials<'a> = &'a [(u32, f64)];

/// Fitted model of a run whose treatments spread alike.
pub(crate) struct CommonNoise {
    /// Treatments whose trials have logarithms; the model knows them by their places here.
    pub(crate) usable: Vec<usize>,
    pub(crate) model: Additive,
}

impl CommonNoise {
    /// Fits a run's `trials`; none where its treatments do not spread alike, or where their noise
    /// cannot be estimated. Two treatments share theirs only with what was known before.
    pub(crate) fn new(trials: &[Trials], design: RunDesign) -> Option<Self> {
        let RunDesign { has_blocks, prior, .. } = design;
        let usable: Vec<usize> = (0..trials.len()).filter(|t| is_usable(trials[*t])).collect();
        let used: Vec<Trials> = usable.iter().map(|t| trials[*t]).collect();
        let logs = logarithms(&used);
        let is_even = || spread_is_even(&complete(&logs, blocks(&used).len()), has_blocks);
        let is_alike = match usable.len() {
            0 | 1 => false,
            2 => prior.is_some(),
            _ => is_even(),
        };
        let own = is_alike.then(|| Additive::fit(&logs, has_blocks))??;
        let with_prior = prior.and_then(|prior| moderated(own.rest(), prior));
        let model = match with_prior {
            Some(rest) => own.with_rest(rest),
            None if usable.len() == 2 => return None,
            None => own,
        };
        Some(Self { model, usable })
    }

    /// Returns the share of the 5% that judgements by this noise are given.
    pub(crate) fn level(&self) -> f64 {
        level(self.usable.len())
    }

    /// Returns the place of a treatment in the model; none if it is not usable.
    pub(crate) fn place(&self, treatment: usize) -> Option<usize> {
        self.usable.binary_search(&treatment).ok()
    }

    /// Returns a contrast of treatments as one of the model's; none if one of them is not usable.
    pub(crate) fn in_model(&self, contrast: &[Weight]) -> Option<Vec<Weight>> {
        contrast.iter().map(|(t, weight)| Some((self.place(*t)?, *weight))).collect()
    }
}

/// Whether what was known of the noise before a run counts beside its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PriorUse {
    /// It counts.
    Counts,
    /// It does not: the run's own noise is wider or narrower than chance would have it.
    Apart,
    /// It does not: the run's treatments do not spread alike.
    Uneven,
    /// It does not: the run has too few repeats to show whether the two differ.
    TooFewRepeats,
}

/// Returns whether the prior of `design` counts for a run with these `trials`, and the run's own
/// noise; none without either.
pub fn prior_use(trials: &[Trials], design: RunDesign) -> Option<(PriorUse, Variance)> {
    design.prior?;
    let own = rest(trials, design.has_blocks)?;
    let used = match CommonNoise::new(trials, design) {
        Some(common) if common.model.rest().freedom > own.freedom => PriorUse::Counts,
        _ if !is_enough(own.freedom) => PriorUse::TooFewRepeats,
        None if trials.iter().filter(|t| is_usable(t)).count() > 2 => PriorUse::Uneven,
        _ => PriorUse::Apart,
    };
    Some((used, own))
}

/// Returns the share of the 5% that judgements by the common noise of `treatments` are given.
///
/// The rest pays for tables whose spreads differ and look even. Simulated with the rule
/// ([`spread_is_even`]): any false difference of equal means in 3 to 6% with one spread, and in at
/// most 6% with a tenfold one and four repeats.
pub(crate) fn level(treatments: usize) -> f64 {
    match treatments {
        2 => 0.8,
        3 => 0.4,
        _ => 0.6,
    }
}

/// Returns the values of the blocks that all treatments have.
fn complete(logs: &[Vec<(usize, f64)>], blocks: usize) -> Vec<Vec<f64>> {
    let has = |trials: &Vec<(usize, f64)>, block: usize| {
        trials.iter().find(|(number, _)| *number == block).map(|(_, value)| *value)
    };
    let whole: Vec<usize> =
        (0..blocks).filter(|block| logs.iter().all(|t| has(t, *block).is_some())).collect();
    logs.iter().map(|t| whole.iter().filter_map(|block| has(t, *block)).collect()).collect()
}
