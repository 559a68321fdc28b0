use crate::interim::InterimAnalyses;
use crate::variance::Variance;

/// How the trials of a run were ordered and looked at, and what was known of their noise.
#[derive(Clone, Copy, Debug)]
pub struct RunDesign<'a> {
    /// Whether trials of one block ran side by side; otherwise a block is just a repeat.
    pub has_blocks: bool,
    /// Interim analyses of a run that may end early; they share the 5%.
    pub looks: Option<&'a InterimAnalyses>,
    /// Variance of the logarithms of trials that was known before the run, with the degrees of
    /// freedom that it is worth ([`noise_prior`](crate::noise_prior)).
    pub prior: Option<Variance>,
}

impl RunDesign<'_> {
    /// Creates the design of a run that is looked at once, and of whose noise nothing was known.
    pub fn new(has_blocks: bool) -> Self {
        Self { has_blocks, looks: None, prior: None }
    }
}
