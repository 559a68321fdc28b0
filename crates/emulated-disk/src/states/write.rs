//! Writes and flushes of a log, as far as states depend on them.

/// The contents of a sector, as the first half of their SHA-256.
pub type Content = u128;

/// A write or a discard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StretchWrite {
    /// Number among the disk's events.
    pub number: u64,
    /// The first sector that the write touches.
    pub sector: u64,
    /// The contents of each sector.
    pub contents: Vec<Content>,
    /// Whether it is a discard, which is never torn.
    pub is_discard: bool,
}

impl StretchWrite {
    /// Returns its sectors with their contents.
    pub(super) fn sectors(&self) -> impl Iterator<Item = (u64, Content)> {
        (self.sector..).zip(self.contents.iter().copied())
    }
}

/// A flush that was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StretchFlush {
    /// Number among the disk's events.
    pub number: u64,
    /// All writes up to this number are covered.
    pub covers: u64,
}
