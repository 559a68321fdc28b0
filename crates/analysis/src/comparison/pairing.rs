//! Pairing: how trials of two treatments come to a ratio.

use pgdyno_model::{NoisePrior, Plan};
use pgdyno_stats::{self as stats, InterimAnalyses, Ratio, RunDesign, Variance};

/// Returns the interim analyses of a run that may end by itself, or that was extended.
pub(crate) fn interim_analyses(plan: &Plan) -> Option<InterimAnalyses> {
    let extended = || {
        let looks = plan.extended_after.iter().copied().chain([plan.repeats()]).collect();
        (!plan.extended_after.is_empty()).then(|| InterimAnalyses::at_repeats(looks))
    };
    plan.stopping.as_ref().map(|s| InterimAnalyses::between(s.floor, s.ceiling)).or_else(extended)
}

/// Returns the design by which trials of a run of `plan` are judged: blocks, interim analyses, and
/// the noise known beforehand.
pub(crate) fn design<'a>(
    plan: &Plan,
    looks: Option<&'a InterimAnalyses>,
    prior: Option<NoisePrior>,
) -> RunDesign<'a> {
    let prior = prior.map(|known| Variance { value: known.variance, freedom: known.freedom });
    RunDesign { has_blocks: !plan.is_sequential(), looks, prior }
}

/// Method by which trials of two treatments, as (block, value), are compared.
pub(crate) enum Pairing {
    /// Within blocks, for a fixed number of repeats.
    Blocks,
    /// Within blocks, for a run with interim analyses.
    InterimAnalyses(InterimAnalyses),
    /// Across two runs, with the interim analyses of each.
    Unpaired(Option<InterimAnalyses>, Option<InterimAnalyses>),
}

impl Pairing {
    /// Returns the method for treatments of one run.
    pub(crate) fn within(plan: &Plan) -> Self {
        interim_analyses(plan).map_or(Self::Blocks, Self::InterimAnalyses)
    }

    /// Returns the method for treatments of two runs.
    pub(crate) fn across(this: &Plan, that: &Plan) -> Self {
        Self::Unpaired(interim_analyses(this), interim_analyses(that))
    }

    /// Computes the ratio `a` ÷ `b`.
    pub(crate) fn ratio(&self, a: &[(u32, f64)], b: &[(u32, f64)]) -> Ratio {
        match self {
            Self::Blocks => stats::ratio(a, b),
            Self::InterimAnalyses(looks) => stats::ratio_over(looks, a, b),
            Self::Unpaired(..) => stats::unpaired_ratio(self.share(a, b), a, b),
        }
    }

    pub(crate) fn is_paired(&self) -> bool {
        !matches!(self, Self::Unpaired(..))
    }

    /// Returns the share of the 5% error chance that an interval from these trials may spend.
    pub(crate) fn share(&self, a: &[(u32, f64)], b: &[(u32, f64)]) -> f64 {
        let of = |looks: &Option<InterimAnalyses>, trials: &[(u32, f64)]| {
            looks.as_ref().map_or(1.0, |looks| looks.alpha_share(count(trials.len())))
        };
        match self {
            Self::Blocks => 1.0,
            Self::InterimAnalyses(looks) => looks.alpha_share(count(a.len().min(b.len()))),
            Self::Unpaired(this, that) => of(this, a).min(of(that, b)),
        }
    }
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
