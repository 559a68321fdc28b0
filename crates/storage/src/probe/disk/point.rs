//! One point of a disk's curves.

use std::time::Duration;

use pgdyno_model::probe::Pattern;
use pgdyno_model::units::{Bytes, Span};

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
    pub(super) fn label(&self) -> String {
        match self.pattern {
            Pattern::Read | Pattern::Write => {
                format!("{} at {}", self.pattern.name(), Bytes(self.offset))
            }
            _ => format!("{}, queue depth {}", self.pattern.name(), self.queue_depth),
        }
    }
}

/// Returns a time as fio and people read it.
pub(super) fn time(for_: Duration) -> String {
    Span(for_).to_string()
}
