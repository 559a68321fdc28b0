//! Writes over each other: which part of which is seen.

use std::collections::BTreeMap;
use std::ops::Range;

/// The part of a write that no later write covers.
#[derive(Clone, Debug)]
struct Piece<T> {
    end: u64,
    /// The write that it is a part of.
    of: T,
    /// Bytes of the write before this piece.
    skip: u64,
}

/// The visible parts of writes, by offset. They do not overlap.
#[derive(Clone, Debug)]
pub(super) struct Pieces<T> {
    by_offset: BTreeMap<u64, Piece<T>>,
}

/// A visible part within a range that was asked for.
#[derive(Clone, Debug)]
pub(super) struct Part<'a, T> {
    /// Where it lies, counted from the beginning of that range (bytes).
    pub(super) at: Range<usize>,
    /// The write that it is a part of.
    pub(super) of: &'a T,
    /// Bytes of the write before this part.
    pub(super) skip: u64,
}

impl<T> Default for Pieces<T> {
    fn default() -> Self {
        Self { by_offset: BTreeMap::new() }
    }
}

impl<T: Clone> Pieces<T> {
    /// Puts the write `of` over all earlier ones, in the range from `start` to `end`.
    pub(super) fn put(&mut self, start: u64, end: u64, of: T) {
        self.carve(start, end);
        self.by_offset.insert(start, Piece { end, of, skip: 0 });
    }

    /// Returns the parts that lie between `from` and `to`.
    pub(super) fn within(&self, from: u64, to: u64) -> impl Iterator<Item = Part<'_, T>> {
        let before = self.by_offset.range(..from).next_back().filter(|(_, piece)| piece.end > from);
        let all = before.into_iter().chain(self.by_offset.range(from..to));
        all.map(move |(&start, piece)| {
            let (begin, end) = (start.max(from), piece.end.min(to));
            let skip = piece.skip + (begin - start);
            Part { at: index(begin - from)..index(end - from), of: &piece.of, skip }
        })
    }

    /// Returns all parts with their offsets.
    pub(super) fn all(&self) -> impl Iterator<Item = (u64, Part<'_, T>)> {
        self.by_offset.iter().map(|(&start, piece)| {
            let at = 0..index(piece.end - start);
            (start, Part { at, of: &piece.of, skip: piece.skip })
        })
    }

    /// Removes the parts between `start` and `end` whose write `is_gone`.
    pub(super) fn remove(&mut self, start: u64, end: u64, is_gone: impl Fn(&T) -> bool) {
        let gone = self.by_offset.range(start..end).filter(|(_, piece)| is_gone(&piece.of));
        for at in gone.map(|(&at, _)| at).collect::<Vec<_>>() {
            self.by_offset.remove(&at);
        }
    }

    pub(super) fn clear(&mut self) {
        self.by_offset.clear();
    }

    /// Makes room for a write over `start..end`.
    fn carve(&mut self, start: u64, end: u64) {
        let before =
            self.by_offset.range_mut(..start).next_back().filter(|(_, piece)| piece.end > start);
        if let Some((&at, piece)) = before {
            let rest =
                (piece.end > end).then(|| Piece { skip: piece.skip + (end - at), ..piece.clone() });
            piece.end = start;
            if let Some(rest) = rest {
                self.by_offset.insert(end, rest);
                return;
            }
        }
        let covered: Vec<u64> = self.by_offset.range(start..end).map(|(&at, _)| at).collect();
        for at in covered {
            if let Some(piece) = self.by_offset.remove(&at)
                && piece.end > end
            {
                self.by_offset.insert(end, Piece { skip: piece.skip + (end - at), ..piece });
            }
        }
    }
}

/// Converts an offset into an index. What is converted came through memory, so that it fits.
pub(super) fn index(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
