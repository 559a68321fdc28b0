//! The outcome of one thread's load.

use crate::reactor::choice::ReactorKind;
use crate::schedule::Moment;
use crate::tally::Tally;

/// Outcome of one thread's load.
pub(crate) struct ThreadOutcome {
    /// Counts.
    pub(crate) tally: Tally,
    /// End of the event loop.
    pub(crate) ended: Moment,
    /// Reactor that carried the bytes; none until the thread's worker adds it.
    pub(crate) reactor: Option<ReactorKind>,
}
