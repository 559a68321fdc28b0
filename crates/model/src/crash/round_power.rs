//! Power of one round: how much its silence can mean.

use serde::{Deserialize, Serialize};

use super::Fault;

/// Amount of testing that a round did between its baseline and its fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RoundPower {
    /// Checkpoints that completed (count). Recovery replays WAL since the last of them, so that
    /// without one no flush of a data file is under test.
    pub checkpoints: Option<u64>,
    /// Flushes that the storage completed (count); none where nothing counts them.
    pub flushes: Option<u64>,
    /// Acknowledged commits that only the last completed flush made durable (count): a storage that
    /// skipped this flush would have lost them.
    pub last_window: Option<u64>,
    /// Whether the disk's own flushes were under test, as on an emulated disk; else only those of
    /// kernel and filesystem.
    pub disk_flushes: bool,
    /// Share of the disk's cache that the cut took (0 to 1); the rest had reached the medium. It is
    /// the probability with which a write is lost whose flush was skipped. None: all of the cache.
    pub cache_lost: Option<f64>,
}

impl RoundPower {
    /// Whether `fault` could have shown what the storage did not keep, as far as that was counted.
    pub fn counts(&self, fault: Fault) -> bool {
        !self.lacks_checkpoint() && (!fault.hangs_on_the_last_flush() || !self.has_empty_window())
    }

    /// Whether flushes of the disk were under test, and an acknowledged commit hung on the last
    /// one.
    pub(super) fn tests_a_window(&self) -> bool {
        self.disk_flushes && self.last_window.is_some_and(|commits| commits > 0)
    }

    /// Whether no checkpoint completed; not known where nobody counted.
    pub(super) fn lacks_checkpoint(&self) -> bool {
        self.checkpoints == Some(0)
    }

    /// Whether the last flush made no acknowledged commit durable; not known where nobody counted.
    pub(super) fn has_empty_window(&self) -> bool {
        self.last_window == Some(0)
    }
}
