//! One point of a disk's curves.

use std::time::Duration;

use pgdyno_model::probe::{DiskPoint, Pattern, Transfers};
use pgdyno_model::units::Bytes;

/// One point that is to be measured.
pub(super) struct Planned {
    pub(super) pattern: Pattern,
    pub(super) block_bytes: u32,
    pub(super) queue_depth: u32,
    pub(super) offset: u64,
    pub(super) length: u64,
    /// None means once over the whole file.
    pub(super) for_: Option<Duration>,
}

impl Planned {
    /// Returns the point with what was measured in so many seconds.
    pub(super) fn measured(
        &self,
        seconds: f64,
        read: Option<Transfers>,
        write: Option<Transfers>,
    ) -> DiskPoint {
        let Self { pattern, block_bytes, queue_depth, .. } = *self;
        let (offset, length) = (Bytes(self.offset), Bytes(self.length));
        DiskPoint { pattern, block_bytes, queue_depth, offset, length, seconds, read, write }
    }

    pub(super) fn label(&self) -> String {
        match self.pattern {
            Pattern::Read | Pattern::Write => {
                format!("{} at {}", self.pattern.name(), Bytes(self.offset))
            }
            _ => format!("{}, queue depth {}", self.pattern.name(), self.queue_depth),
        }
    }
}
