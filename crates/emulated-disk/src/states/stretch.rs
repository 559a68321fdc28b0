//! A stretch of a disk's log, cut into epochs.

use std::collections::HashMap;
use std::ops::Range;

use super::image::Image;
use super::write::{Content, StretchFlush, StretchWrite};

/// The writes between two flushes, and the image that the first of them left.
#[derive(Clone, Debug)]
pub(super) struct Epoch {
    /// All writes up to this number are durable.
    pub(super) durable: u64,
    /// The number of the flush that ends the epoch; `u64::MAX` after the last one.
    pub(super) until: u64,
    pub(super) writes: Range<usize>,
    /// The sum of the image at the epoch's beginning.
    pub(super) sum: u128,
    /// Contents of sectors in the image at the epoch's beginning, where they differ from the first
    /// image. Only sectors that the epoch's writes touch are in it.
    pub(super) before: HashMap<u64, Content>,
}

/// A stretch of a disk's log.
#[derive(Clone, Debug)]
pub struct Stretch {
    pub(super) writes: Vec<StretchWrite>,
    pub(super) epochs: Vec<Epoch>,
    /// Contents of the first image in the sectors that something was written to.
    pub(super) base: HashMap<u64, Content>,
}

impl Stretch {
    /// Cuts `writes` and `flushes`, both in order, into epochs. `base` gives what a sector of the
    /// image held that the log began with.
    ///
    /// A write that arrived while a flush was under way belongs to the epoch after it.
    pub fn new(
        writes: Vec<StretchWrite>,
        flushes: Vec<StretchFlush>,
        mut base: impl FnMut(u64) -> Content,
    ) -> Self {
        let mut first = HashMap::new();
        for write in &writes {
            for sector in write.sector..write.sector + write.contents.len() as u64 {
                first.entry(sector).or_insert_with(|| base(sector));
            }
        }
        let mut epochs = Vec::with_capacity(flushes.len() + 1);
        let (mut image, mut durable, mut begin) = (Image::default(), 0, 0);
        let ends = flushes.into_iter().map(|flush| (flush.number, flush.covers));
        for (until, covers) in ends.chain([(u64::MAX, u64::MAX)]) {
            let end = begin + writes[begin..].partition_point(|write| write.number <= covers);
            let range = begin..end;
            let (sum, before) = (image.sum(), image.contents_under(&writes[range.clone()]));
            writes[range.clone()].iter().for_each(|write| image.apply(write, &first));
            epochs.push(Epoch { durable, until, writes: range, sum, before });
            durable = writes[..end].last().map_or(0, |write| write.number);
            begin = end;
        }
        Self { writes, epochs, base: first }
    }

    /// Returns the number of flush boundaries, the beginning of the stretch among them (count).
    pub fn boundary_count(&self) -> u64 {
        self.epochs.len() as u64
    }

    /// Returns the number of writes and discards (count).
    pub fn write_count(&self) -> u64 {
        self.writes.len() as u64
    }

    /// Returns the logarithm to base 2 of the number of states within epochs: of an epoch with n
    /// writes all subsets but the empty one and the whole, no write torn. None without such a
    /// state.
    pub fn within_log2(&self) -> Option<f64> {
        let counts = self.epochs.iter().map(|epoch| epoch.writes.len()).filter(|n| *n > 1);
        let logs: Vec<f64> = counts
            .map(|n| if n < 50 { (((1_u64 << n) - 2) as f64).log2() } else { n as f64 })
            .collect();
        let most = logs.iter().copied().reduce(f64::max)?;
        Some(most + logs.iter().map(|log| (log - most).exp2()).sum::<f64>().log2())
    }
}
