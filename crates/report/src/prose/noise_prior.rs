//! Sentences on the noise that earlier runs on the host predict for a run.

use pgdyno_model::Conditioning;
use pgdyno_stats::PriorUse;
use pgdyno_text::format::{self, counted};

use super::phrases::{capital, degrees_of_freedom, share};
use pgdyno_analysis::NoisePriorView;

/// Says why a trial that is not measured comes first, as a clause.
pub(crate) fn conditioning(why: &Conditioning) -> String {
    format!(
        "a trial that is not measured comes first, since first trials of {} here had {} times the \
         tps that was to be expected",
        counted(why.runs as u64, "earlier run"),
        format::times(1.0 + why.difference)
    )
}

/// Renders [`conditioning`] as a sentence.
pub(super) fn conditioned(why: &Conditioning) -> String {
    capital(&conditioning(why)) + "."
}

/// Says whether what earlier runs told of the noise counts beside a run's own.
pub(super) fn noise_prior(view: &NoisePriorView) -> String {
    let spreads = format!(
        "Trials of {} on this host differ by {}, those of this run by {}",
        counted(view.runs as u64, "earlier run"),
        share(view.spread),
        share(view.own_spread)
    );
    match view.used {
        PriorUse::Counts => format!(
            "{spreads}. Both count: the noise is known by {} in place of {:.0}.",
            degrees_of_freedom(view.freedom + view.own_freedom),
            view.own_freedom
        ),
        PriorUse::Apart => format!("{spreads}. That is too far apart: only its own count."),
        PriorUse::Uneven => {
            format!("{spreads}, where treatments do not spread alike: only its own count.")
        }
        PriorUse::TooFewRepeats => {
            format!(
                "{spreads}, in too few repeats to tell whether both are one: only its own count."
            )
        }
    }
}
