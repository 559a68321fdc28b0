//! The volatile cache: acknowledged writes that are not durable yet.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;

use super::medium::Medium;

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
    /// Its number.
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

/// The part of a write that no later write covers.
#[derive(Clone, Debug)]
struct Piece {
    end: u64,
    sequence: u64,
    data: Data,
    /// Bytes of `data` before this piece.
    skip: u64,
}

/// All cached writes in order, and their parts that are visible to reads.
#[derive(Debug, Default)]
pub(super) struct Cache {
    writes: VecDeque<Cached>,
    /// The visible parts by offset. They do not overlap.
    visible: BTreeMap<u64, Piece>,
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
        self.carve(start, end);
        let piece = Piece { end, sequence: write.sequence, data: write.data.clone(), skip: 0 };
        self.visible.insert(start, piece);
        self.cost += write.cost();
        self.writes.push_back(write);
    }

    /// Overlays bytes that were read from the medium at `offset` with the cached writes.
    pub(super) fn overlay(&self, offset: u64, buffer: &mut [u8]) {
        let end = offset + buffer.len() as u64;
        let before =
            self.visible.range(..offset).next_back().filter(|(_, piece)| piece.end > offset);
        for (&start, piece) in before.into_iter().chain(self.visible.range(offset..end)) {
            let (from, to) = (start.max(offset), piece.end.min(end));
            let into = &mut buffer[index(from - offset)..index(to - offset)];
            match &piece.data {
                Data::Bytes(bytes) => {
                    let skip = index(piece.skip + (from - start));
                    into.copy_from_slice(&bytes[skip..skip + into.len()]);
                }
                Data::Zeros(_) => into.fill(0),
            }
        }
    }

    /// Moves all writes to the medium.
    pub(super) fn destage_all(&mut self, medium: &mut impl Medium) -> io::Result<()> {
        for (&start, piece) in &self.visible {
            match &piece.data {
                Data::Bytes(bytes) => {
                    let skip = index(piece.skip);
                    medium.write_at(start, &bytes[skip..skip + index(piece.end - start)])?;
                }
                Data::Zeros(_) => medium.zero_at(start, piece.end - start)?,
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
        let gone: Vec<u64> = self
            .visible
            .range(start..end)
            .filter(|(_, piece)| piece.sequence == oldest.sequence)
            .map(|(&at, _)| at)
            .collect();
        for at in gone {
            self.visible.remove(&at);
        }
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

    /// Makes room in `visible` for a write over `start..end`.
    fn carve(&mut self, start: u64, end: u64) {
        let before =
            self.visible.range_mut(..start).next_back().filter(|(_, piece)| piece.end > start);
        if let Some((&at, piece)) = before {
            let rest =
                (piece.end > end).then(|| Piece { skip: piece.skip + (end - at), ..piece.clone() });
            piece.end = start;
            if let Some(rest) = rest {
                self.visible.insert(end, rest);
                return;
            }
        }
        let covered: Vec<u64> = self.visible.range(start..end).map(|(&at, _)| at).collect();
        for at in covered {
            if let Some(piece) = self.visible.remove(&at)
                && piece.end > end
            {
                self.visible.insert(end, Piece { skip: piece.skip + (end - at), ..piece });
            }
        }
    }
}

/// Converts an offset into an index. Cached data came through memory, so that it fits.
pub(super) fn index(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
