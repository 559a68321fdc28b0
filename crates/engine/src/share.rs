//! A share of a load, where several processes offer one load together.
//!
//! The load is described whole: seeds, rates and numbers of clients are those that one process
//! would have. A [`Share`] says which of its event loops run here, when they begin, and who takes
//! each second.

use std::ops::Range;
use std::time::Instant;

use pgdyno_model::Measurement;

use crate::recorder::Interval;
use crate::schedule::{Moment, Schedule};
use crate::spec::LoadSpec;
use crate::tally::Tally;

/// Part of a load that one process offers.
pub struct Share<'a> {
    /// Event loops that run here, of those of the whole load.
    pub threads: Range<u32>,
    /// Called once all clients are connected; waits until the load is to begin and returns that
    /// instant. None ends the load.
    pub start: &'a dyn Fn() -> Option<Instant>,
    /// Takes each second with what it adds to the counts of the whole load
    /// ([`Interval::tally`]), from the calling thread.
    pub on_interval: &'a dyn Fn(&Schedule, &Interval),
}

/// Outcome of a share.
pub struct ShareOutcome {
    /// The share's own measurement.
    pub measurement: Measurement,
    /// Sum of what the seconds carried.
    pub tally: Tally,
    /// Schedule that the load had.
    pub schedule: Schedule,
    /// End of the last event loop.
    pub ended: Moment,
    /// First second of the window in which the thread that [`Measurement::busiest_thread`] tells of
    /// had hardly any time left; none if it always had some.
    pub pinned_since: Option<u32>,
}

/// Returns how many clients the event loops `threads` of the load `spec` have.
pub fn clients_of(spec: &LoadSpec, threads: &Range<u32>) -> u32 {
    let dealt = spec.deal();
    let loops = dealt.get(threads.start as usize..threads.end as usize).unwrap_or_default();
    loops.iter().flatten().map(|clients| clients.end - clients.start).sum()
}
