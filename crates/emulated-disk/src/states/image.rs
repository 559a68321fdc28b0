//! Images by the contents of their sectors, without the bytes.
//!
//! The sum of an image adds up what each sector adds that differs from the first image. Two images
//! of equal sums are taken for equal. Contents are halves of SHA-256, so that two different images
//! have equal sums by an accident of about 2^-64.

use std::collections::HashMap;

use super::write::{Content, StretchWrite};

/// An image as writes go over it.
#[derive(Clone, Debug, Default)]
pub(super) struct Image {
    contents: HashMap<u64, Content>,
    sum: u128,
}

impl Image {
    /// Puts `write` over it. `base` holds what the first image holds.
    pub(super) fn apply(&mut self, write: &StretchWrite, base: &HashMap<u64, Content>) {
        for (sector, content) in write.sectors() {
            let first = base.get(&sector).copied().unwrap_or_default();
            let before = self.contents.insert(sector, content).unwrap_or(first);
            self.sum = exchanged(self.sum, sector, first, before, content);
        }
    }

    pub(super) fn sum(&self) -> u128 {
        self.sum
    }

    /// Returns what the sectors of `writes` hold.
    pub(super) fn contents_under(&self, writes: &[StretchWrite]) -> HashMap<u64, Content> {
        let sectors = writes.iter().flat_map(StretchWrite::sectors);
        sectors.filter_map(|(at, _)| Some((at, *self.contents.get(&at)?))).collect()
    }
}

/// Returns `sum` of an image after `sector`, which held `before`, holds `after`. `first` is what it
/// holds in the first image.
pub(super) fn exchanged(
    sum: u128,
    sector: u64,
    first: Content,
    before: Content,
    after: Content,
) -> u128 {
    sum.wrapping_sub(part(sector, before, first)).wrapping_add(part(sector, after, first))
}

/// Returns what a sector adds to an image's sum: nothing if it is as in the first image.
fn part(sector: u64, content: Content, first: Content) -> u128 {
    const ODD: u128 = 0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835;
    if content == first {
        return 0;
    }
    let mut mixed = content ^ u128::from(sector).wrapping_mul(ODD);
    mixed = (mixed ^ (mixed >> 67)).wrapping_mul(ODD);
    mixed ^ (mixed >> 61)
}
