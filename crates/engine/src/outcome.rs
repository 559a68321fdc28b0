//! What one thread's load came to.

use crate::schedule::Moment;
use crate::tally::Tally;

/// What a thread's load came to.
pub(crate) struct ThreadOutcome {
    /// What was counted.
    pub(crate) tally: Tally,
    /// When the loop ended.
    pub(crate) ended: Moment,
    /// Clients (by index) whose statement was under way when they were told to stop.
    pub(crate) interrupted: Vec<usize>,
    /// What carried its bytes.
    pub(crate) reactor: String,
}
