//! The volatile cache: acknowledged writes that are not durable yet.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use super::medium::Medium;
use super::pieces::{Pieces, index};

/// The overhead of a cached write (bytes), so that many small writes are bounded too.
const OVERHEAD: u64 = 128;

/// The data of a write.
#[derive(Clone, Debug)]
pub(super) enum Data {
    /// These bytes.
    Bytes(Arc<[u8]>),
    /// Zeros, of this length: a discard.
    Zeros(u64),
}

impl Data {
    pub(super) fn length(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Zeros(length) => *length,
        }
    }

    /// Returns the first `length` bytes.
    pub(super) fn first(&self, length: u64) -> Self {
        match self {
            Self::Bytes(bytes) => Self::Bytes(bytes[..index(length)].into()),
            Self::Zeros(_) => Self::Zeros(length),
        }
    }
}

/// A cached write.
#[derive(Clone, Debug)]
pub(super) struct Cached {
    /// Number of the write among the disk's events.
    pub(super) sequence: u64,
    /// The offset on the disk (bytes).
    pub(super) offset: u64,
    /// The data.
    pub(super) data: Data,
}

impl Cached {
    pub(super) fn apply(&self, medium: &mut impl Medium) -> io::Result<()> {
        match &self.data {
            Data::Bytes(bytes) => medium.write_at(self.offset, bytes),
            Data::Zeros(length) => medium.zero_at(self.offset, *length),
        }
    }

    fn cost(&self) -> u64 {
        match &self.data {
            Data::Bytes(bytes) => OVERHEAD + bytes.len() as u64,
            Data::Zeros(_) => OVERHEAD,
        }
    }
}

/// A cached write of which a part is visible: its number and its whole data.
#[derive(Clone, Debug)]
struct Visible {
    sequence: u64,
    data: Data,
}

/// All cached writes in order, and their parts that are visible to reads.
#[derive(Debug, Default)]
pub(super) struct Cache {
    writes: VecDeque<Cached>,
    /// Parts of the disk that the cache holds, each with the newest write to it.
    visible: Pieces<Visible>,
    cost: u64,
}

impl Cache {
    /// Returns the size with the overhead of each write (bytes).
    pub(super) fn cost(&self) -> u64 {
        self.cost
    }

    pub(super) fn len(&self) -> usize {
        self.writes.len()
    }

    pub(super) fn put(&mut self, write: Cached) {
        let (start, end) = (write.offset, write.offset + write.data.length());
        let of = Visible { sequence: write.sequence, data: write.data.clone() };
        self.visible.put(start, end, of);
        self.cost += write.cost();
        self.writes.push_back(write);
    }

    /// Overlays bytes that were read from the medium at `offset` with the cached writes.
    pub(super) fn overlay(&self, offset: u64, buffer: &mut [u8]) {
        for part in self.visible.within(offset, offset + buffer.len() as u64) {
            let into = &mut buffer[part.at];
            match &part.of.data {
                Data::Bytes(bytes) => {
                    let skip = index(part.skip);
                    into.copy_from_slice(&bytes[skip..skip + into.len()]);
                }
                Data::Zeros(_) => into.fill(0),
            }
        }
    }

    /// Moves all writes to the medium.
    pub(super) fn destage_all(&mut self, medium: &mut impl Medium) -> io::Result<()> {
        for (start, part) in self.visible.all() {
            match &part.of.data {
                Data::Bytes(bytes) => {
                    let skip = index(part.skip);
                    medium.write_at(start, &bytes[skip..skip + part.at.len()])?;
                }
                Data::Zeros(_) => medium.zero_at(start, part.at.len() as u64)?,
            }
        }
        self.clear();
        Ok(())
    }

    /// Moves the oldest write to the medium. Returns false if there is none.
    pub(super) fn destage_oldest(&mut self, medium: &mut impl Medium) -> io::Result<bool> {
        let Some(oldest) = self.writes.front() else { return Ok(false) };
        oldest.apply(medium)?;
        let Some(oldest) = self.writes.pop_front() else { return Ok(false) };
        self.cost -= oldest.cost();
        let (start, end) = (oldest.offset, oldest.offset + oldest.data.length());
        self.visible.remove(start, end, |of| of.sequence == oldest.sequence);
        Ok(true)
    }

    /// Takes out all writes, in order.
    pub(super) fn take(&mut self) -> VecDeque<Cached> {
        let writes = std::mem::take(&mut self.writes);
        self.clear();
        writes
    }

    fn clear(&mut self) {
        self.writes.clear();
        self.visible.clear();
        self.cost = 0;
    }
}
