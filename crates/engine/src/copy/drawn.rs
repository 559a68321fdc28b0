//! Draws that several kinds of values share: one of some values, and a length.

use super::row_random::RowRandom;

/// Values of which one is drawn for each row.
#[derive(Clone, Debug)]
pub(super) struct Choice<T> {
    draw: RowRandom,
    /// Sums of the weights up to each value, and the values.
    values: Vec<(u64, T)>,
}

impl<T> Choice<T> {
    /// Creates the choice of `values`, each with its weight.
    pub(super) fn new(draw: RowRandom, values: impl Iterator<Item = (u32, T)>) -> Self {
        let mut sum = 0;
        let summed = values.map(|(weight, value)| {
            sum += u64::from(weight);
            (sum, value)
        });
        Self { draw, values: summed.collect() }
    }

    /// Returns the value of `row`; none if there are no values.
    #[inline]
    pub(super) fn at(&self, row: u64) -> Option<&T> {
        let weight = self.values.last().map_or(1, |(sum, _)| *sum);
        let drawn = self.draw.below_or_at(row, weight.saturating_sub(1));
        self.values.iter().find(|(sum, _)| drawn < *sum).map(|(_, value)| value)
    }
}

/// Length that is drawn for each row, every one as likely.
#[derive(Clone, Copy, Debug)]
pub(super) struct Length {
    least: u32,
    /// Length that is added at most.
    more: u32,
    draw: RowRandom,
}

impl Length {
    /// Creates lengths from `least` to `most`.
    pub(super) fn new(draw: RowRandom, least: u32, most: u32) -> Self {
        Self { least, more: most.saturating_sub(least), draw }
    }

    /// Returns the length of `row`.
    #[inline]
    pub(super) fn at(self, row: u64) -> u32 {
        // Letters begin with draw 0, which a length may not share.
        self.least + self.draw.below_or_at_of(row, u64::MAX, self.more.into()) as u32
    }

    /// Appends `length` letters and digits, the length of `row`; returns where they begin.
    #[inline]
    pub(super) fn write_letters(self, row: u64, length: u32, out: &mut Vec<u8>) -> usize {
        let at = out.len();
        out.resize(at + length as usize, b' ');
        self.draw.letters(row, &mut out[at..]);
        at
    }
}
