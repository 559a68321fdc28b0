//! Sentences on the host's noise floor.

use pgdyno_text::format;

use pgdyno_analysis::NoiseFloor;

/// Warns of an interval of equal treatments that leaves 1 out.
pub(crate) fn doubt([lo, hi]: [f64; 2]) -> Option<&'static str> {
    (lo > 1.0 || hi < 1.0).then_some(
        "The difference is significant, though there is none: one such run in 20 says so by \
         chance. If it happens again, intervals of this host promise too much.",
    )
}

/// Says how large the host's noise floor is and where it comes from, or how to measure it.
pub(crate) fn noise_floor(floor: Option<&NoiseFloor>) -> String {
    let Some(f) = floor else {
        return "This host's noise floor is not known: `pgdyno run noise-floor` measures how far \
                the same treatment differs from itself."
            .to_owned();
    };
    let [lo, hi] = f.ci95;
    let doubt = doubt(f.ci95).map_or_else(String::new, |doubt| format!(" {doubt}"));
    format!(
        "Noise floor of this host: the same treatment under two names had {}× its own tps (95% CI \
         {}–{}, {} blocks, {}). A difference below {}% may be none.{doubt}",
        format::times(f.ratio),
        format::times(lo),
        format::times(hi),
        f.blocks,
        f.run,
        format::percent(f.floor)
    )
}
