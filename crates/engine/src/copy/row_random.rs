//! Random numbers by row: each depends only on a seed, a table, a column and a row's number.

/// splitmix64's increment and finalizer (Steele, Lea, Flood 2014).
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

#[inline]
fn mixed(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// 64 characters: six bits each.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Random numbers of one column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowRandom(u64);

impl RowRandom {
    /// Creates the random numbers of `column` of `table`.
    pub fn new(seed: u64, table: &str, column: &str) -> Self {
        let names = table.bytes().chain([0]).chain(column.bytes());
        Self(names.fold(mixed(seed.wrapping_add(STEP)), |state, byte| {
            mixed(state ^ u64::from(byte)).wrapping_add(STEP)
        }))
    }

    /// Draws 64 bits for `row`, others for each `more`.
    #[inline]
    pub(super) fn bits(self, row: u64, more: u64) -> u64 {
        mixed(
            mixed(self.0.wrapping_add(row.wrapping_mul(STEP)))
                .wrapping_add(more.wrapping_mul(STEP)),
        )
    }

    /// Draws uniformly from `0..=most` for `row`.
    ///
    /// The bias is at most `most` / 2^64 (Lemire 2019, without the rejection).
    #[inline]
    pub fn below_or_at(self, row: u64, most: u64) -> u64 {
        self.below_or_at_of(row, 0, most)
    }

    /// Draws as [`RowRandom::below_or_at`], for each `more` anew.
    #[inline]
    pub(super) fn below_or_at_of(self, row: u64, more: u64, most: u64) -> u64 {
        ((u128::from(self.bits(row, more)) * (u128::from(most) + 1)) >> 64) as u64
    }

    /// Fills `place` with decimal digits for `row`.
    #[inline]
    pub(super) fn digits(self, row: u64, place: &mut [u8]) {
        for (more, eight) in (0_u64..).zip(place.chunks_mut(8)) {
            let mut drawn = self.below_or_at_of(row, more, 99_999_999);
            for byte in eight {
                *byte = b'0' + (drawn % 10) as u8;
                drawn /= 10;
            }
        }
    }

    /// Fills `place` with letters and digits for `row`.
    #[inline]
    pub fn letters(self, row: u64, place: &mut [u8]) {
        for (more, ten) in (0_u64..).zip(place.chunks_mut(10)) {
            let mut bits = self.bits(row, more);
            for byte in ten {
                *byte = LETTERS[(bits & 63) as usize];
                bits >>= 6;
            }
        }
    }
}
