//! A state of a disk, as a choice among the writes of a log.

use serde::{Deserialize, Serialize};

/// Unit of a write's atomicity (bytes): a disk writes a sector whole or not at all.
pub const SECTOR: u64 = 512;

/// A state: which writes of a log lie over the image that the log began with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// The newest write that is there in whole or in part, by its number. No later one is there.
    pub newest: u64,
    /// Earlier writes that are not there, by their numbers, in order.
    pub omitted: Vec<u64>,
    /// The write of which only the first part is there.
    pub torn: Option<Tear>,
}

/// A write of which only the first part is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tear {
    /// Number of the write.
    pub write: u64,
    /// Length of the part that is there (bytes).
    pub kept: u64,
}

impl State {
    /// Returns how much of the write `number` of `length` bytes is there (bytes).
    pub fn kept(&self, number: u64, length: u64) -> u64 {
        match self.torn {
            _ if number > self.newest || self.omitted.binary_search(&number).is_ok() => 0,
            Some(tear) if tear.write == number => tear.kept.min(length),
            _ => length,
        }
    }
}

/// The cuts that leave a state: those after one event and before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The newest event that the state shows something of. What was asked for afterwards is not in
    /// it.
    pub from: u64,
    /// The first event after which a cut leaves the state no more. What was acknowledged before is
    /// in it. `u64::MAX` if there is none.
    pub until: u64,
}

impl Window {
    /// Whether a judgement for this window is at least as strict as one for `other`.
    pub(super) fn covers(&self, other: &Self) -> bool {
        self.from <= other.from && self.until >= other.until
    }
}
