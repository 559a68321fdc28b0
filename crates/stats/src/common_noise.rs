//! The noise that all treatments of a run share.

use crate::additive::{Additive, Weight, blocks, is_usable, logarithms};
use crate::even_spread::spread_is_even;

/// Trials of one treatment as (block, value).
pub(crate) type Trials<'a> = &'a [(u32, f64)];

/// Fitted model of a run whose treatments spread alike.
pub(crate) struct CommonNoise {
    /// Treatments whose trials have logarithms; the model knows them by their places here.
    pub(crate) usable: Vec<usize>,
    pub(crate) model: Additive,
}

impl CommonNoise {
    /// Fits a run's `trials`; none where its treatments do not spread alike, or where their noise cannot
    /// be estimated.
    pub(crate) fn new(trials: &[Trials], has_blocks: bool) -> Option<Self> {
        let usable: Vec<usize> = (0..trials.len()).filter(|t| is_usable(trials[*t])).collect();
        let used: Vec<Trials> = usable.iter().map(|t| trials[*t]).collect();
        let logs = logarithms(&used);
        if !spread_is_even(&complete(&logs, blocks(&used).len()), has_blocks) {
            return None;
        }
        Some(Self { model: Additive::fit(&logs, has_blocks)?, usable })
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

/// Returns the share of the 5% that judgements by the common noise of `treatments` are given.
///
/// The rest pays for tables whose spreads differ and look even. Simulated with the rule
/// ([`spread_is_even`]): any false difference of equal means in 3 to 6% with one spread, and in at most
/// 6% with a tenfold one and four repeats.
pub(crate) fn level(treatments: usize) -> f64 {
    if treatments == 3 { 0.4 } else { 0.6 }
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
