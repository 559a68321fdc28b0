//! Which treatments may be ranked: those that are not known to break what they promise.
//!
//! A server that acknowledges commits and loses them is fast for a reason that nobody wants. Its
//! figures stay in the table; the best is looked for among the others.

use super::treatment::TreatmentSamples;
use super::view::{NotRanked, RunView, TreatmentView};

/// Fills in why treatments are not ranked. Call it after crash tests are known and before the best
/// is chosen.
pub(super) fn judge(view: &mut RunView, sums: &[TreatmentSamples]) {
    // Where no treatment flushes, speed without flushes is what is asked.
    let is_flushed = |t: &TreatmentView| t.trials > 0 && !sums[t.index].fsync_off;
    let any_flushed = view.treatments.iter().any(is_flushed);
    for t in &mut view.treatments {
        let crash = t.crash.clone().filter(|crash| crash.broken().is_some());
        let is_off = any_flushed && t.trials > 0 && sums[t.index].fsync_off;
        t.not_ranked = crash.map(NotRanked::CrashTests).or(is_off.then_some(NotRanked::FsyncOff));
    }
}
