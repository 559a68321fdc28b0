//! Numbers by row.

use std::num::NonZeroU64;

use super::family::DrawnFamilies;
use super::row_random::RowRandom;

/// Length of a day (microseconds).
const DAY_US: i64 = 86_400_000_000;

/// A number that depends on the row's.
#[derive(Clone, Debug)]
pub(super) enum Number {
    /// The row's number, and what is added to it.
    Row(i64),
    /// Rows of a group, groups of a cycle (0: none), the first number.
    Counter(NonZeroU64, u64, i64),
    Permutation(Permutation),
    /// Lowest number, and the highest one's distance from it.
    Drawn(RowRandom, i64, u64),
    /// Highest mask, what is added, lowest number, and how many numbers there are.
    NonUniform(RowRandom, u64, u64, i64, u64),
    Children(DrawnFamilies),
    Sibling(DrawnFamilies),
    OfParent(DrawnFamilies, Box<Number>),
    Moment(i64, i64),
    /// Day of the first row, and the step (microseconds).
    Day(i64, i64),
}

impl Number {
    #[inline]
    pub(super) fn at(&self, row: u64) -> i64 {
        match self {
            Self::Row(more) => row.wrapping_add_signed(*more).cast_signed(),
            Self::Counter(every, 0, from) => {
                ((row - 1) / *every).wrapping_add_signed(*from).cast_signed()
            }
            Self::Counter(every, cycle, from) => {
                ((row - 1) / *every % cycle).wrapping_add_signed(*from).cast_signed()
            }
            Self::Permutation(permutation) => permutation.at(row),
            Self::Drawn(draw, low, span) => {
                draw.below_or_at(row, *span).wrapping_add_signed(*low).cast_signed()
            }
            Self::NonUniform(draw, mask, shift, low, numbers) => {
                let masked = draw.below_or_at_of(row, 1, *mask);
                let drawn = draw.below_or_at_of(row, 0, numbers - 1).wrapping_add_signed(*low);
                let turned = (masked | drawn).wrapping_add(*shift) % numbers;
                turned.wrapping_add_signed(*low).cast_signed()
            }
            Self::Children(families) => families.count(row).cast_signed(),
            Self::Sibling(families) => families.parent(row).1.cast_signed(),
            Self::OfParent(families, number) => number.at(families.parent(row).0),
            Self::Day(from, step) => {
                let passed = step.wrapping_mul((row - 1).cast_signed());
                from.wrapping_add(passed.div_euclid(DAY_US))
            }
            Self::Moment(from, step) => {
                from.wrapping_add(step.wrapping_mul((row - 1).cast_signed()))
            }
        }
    }
}

/// Permutations of blocks of rows: a Feistel network over the next power of four, walked until the
/// result lies in the block (J. Black, P. Rogaway, *Ciphers with arbitrary finite domains*, 2002).
#[derive(Clone, Debug)]
pub(super) struct Permutation {
    draw: RowRandom,
    of: NonZeroU64,
    /// Bits of half a number.
    half: u32,
}

/// Rounds of the network.
const ROUNDS: u64 = 4;

impl Permutation {
    pub(super) fn new(draw: RowRandom, of: NonZeroU64) -> Self {
        let bits = u64::BITS - (of.get() - 1).leading_zeros();
        Self { draw, of, half: bits.div_ceil(2).max(1) }
    }

    fn at(&self, row: u64) -> i64 {
        let (block, mut place) = ((row - 1) / self.of, (row - 1) % self.of);
        loop {
            place = self.mixed(block, place);
            if place < self.of.get() {
                return (place + 1).cast_signed();
            }
        }
    }

    fn mixed(&self, block: u64, place: u64) -> u64 {
        let mask = (1 << self.half) - 1;
        let (mut left, mut right) = (place >> self.half, place & mask);
        for round in 0..ROUNDS {
            let drawn = self.draw.bits(block, right * ROUNDS + round);
            (left, right) = (right, left ^ (drawn & mask));
        }
        left << self.half | right
    }
}
