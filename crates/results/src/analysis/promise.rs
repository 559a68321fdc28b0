//! Which treatments may be ranked: those that are not known to break what they promise.
//!
//! A server that acknowledges commits and loses them is fast for a reason that nobody wants. Its
//! figures stay in the table; the best is looked for among the others.

use super::treatment::TreatmentSamples;
use super::view::{NotRanked, RunView, TreatmentCrash, TreatmentView};

/// Fills in why treatments are not ranked. Call it after crash tests are known and before the best
/// is chosen.
pub(super) fn judge(view: &mut RunView, sums: &[TreatmentSamples]) {
    // Where no treatment flushes, speed without flushes is what is asked.
    let is_flushed = |t: &TreatmentView| t.trials > 0 && !sums[t.index].fsync_off;
    let any_flushed = view.treatments.iter().any(is_flushed);
    for t in &mut view.treatments {
        let lost = t.crash.as_ref().and_then(lost);
        let is_off = any_flushed && t.trials > 0 && sums[t.index].fsync_off;
        t.not_ranked = lost.or(is_off.then_some(NotRanked::FsyncOff));
    }
}

/// What crash tests found broken.
fn lost(crash: &TreatmentCrash) -> Option<NotRanked> {
    let broken = crash.broken()?;
    Some(match broken.lost {
        0 => NotRanked::CrashTestsFailed(crash.reason.clone()),
        lost => {
            let (acknowledged, fault) = (broken.acknowledged, broken.fault.to_string());
            NotRanked::Lost { lost, acknowledged, fault }
        }
    })
}
