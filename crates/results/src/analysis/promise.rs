//! Which treatments may be ranked: those that are not known to break what they promise.
//!
//! A server that acknowledges commits and loses them is fast for a reason that nobody wants. Its
//! figures stay in the table; the best is looked for among the others.

use pgdyno_model::format;

use super::treatment::TreatmentSamples;
use super::view::{RunView, TreatmentCrash, TreatmentView};

/// Fills in why treatments are not ranked. Call it after crash tests are known and before the best
/// is chosen.
pub(super) fn judge(view: &mut RunView, sums: &[TreatmentSamples]) {
    // Where no treatment flushes, speed without flushes is what is asked.
    let is_flushed = |t: &TreatmentView| t.trials > 0 && !sums[t.index].fsync_off;
    let any_flushed = view.treatments.iter().any(is_flushed);
    for t in &mut view.treatments {
        let lost = t.crash.as_ref().and_then(lost);
        let unflushed = (any_flushed && t.trials > 0 && sums[t.index].fsync_off).then(|| {
            "fsync is off: its commits are acknowledged before they are on any disk".to_owned()
        });
        t.not_ranked = lost.or(unflushed);
    }
}

/// What crash tests found broken, for a sentence about the treatment.
fn lost(crash: &TreatmentCrash) -> Option<String> {
    let broken = crash.broken()?;
    Some(match broken.lost {
        0 => format!("its crash tests failed: {}", crash.reason),
        lost => format!(
            "it lost {} of {} acknowledged commits to the fault {}",
            format::count(lost),
            format::count(broken.acknowledged),
            broken.fault
        ),
    })
}
