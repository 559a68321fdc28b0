//! Finds the treatments that must not be ranked: those known to break what they promise.
//!
//! A server that acknowledges commits and loses them is fast for a reason that nobody wants. Its
//! figures stay in the table; the best is looked for among the others.

use super::treatment::TreatmentSamples;
use super::view::{NotRanked, TreatmentView};

/// Returns for each treatment why it is not ranked; none if it is.
pub(super) fn judge(
    treatments: &[TreatmentView],
    sums: &[TreatmentSamples],
) -> Vec<Option<NotRanked>> {
    // Where no treatment flushes, speed without flushes is what is asked.
    let is_flushed = |t: &TreatmentView| t.trials > 0 && !sums[t.index].fsync_off;
    let any_flushed = treatments.iter().any(is_flushed);
    let judge = |t: &TreatmentView| {
        let crash = t.crash.clone().filter(|crash| crash.broken().is_some());
        let is_off = any_flushed && t.trials > 0 && sums[t.index].fsync_off;
        crash.map(NotRanked::CrashTests).or(is_off.then_some(NotRanked::FsyncOff))
    };
    treatments.iter().map(judge).collect()
}
