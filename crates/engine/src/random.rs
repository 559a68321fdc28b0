//! Random numbers as pgbench draws them.
//!
//! xoroshiro128** seeded by splitmix64, the distributions that scripts can name, and the hash
//! functions.

use thiserror::Error;

use crate::digits::six_decimals;

/// Blackman and Vigna's generator xoroshiro128**.
///
/// ```
/// use pgdyno_engine::random::Random;
///
/// let mut random = Random::new(42);
/// assert!((1..=6).contains(&random.uniform(1, 6)));
/// assert_eq!(Random::new(42).next_u64(), Random::new(42).next_u64());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random([u64; 2]);

/// Arguments that a random function cannot draw with, in pgbench's words.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[allow(missing_docs, reason = "the names say it")]
pub enum DrawError {
    /// The lower bound lies above the upper one.
    #[error("empty range given to random")]
    EmptyRange(i64, i64),
    /// More numbers than a bigint counts.
    #[error("random range is too large")]
    RangeTooLarge(i64, i64),
    /// A distribution's parameter is out of its range.
    #[error("{function} parameter must be {allowed} (not {})", six_decimals(*.value))]
    Parameter {
        function: &'static str,
        value: f64,
        /// The range in words.
        allowed: &'static str,
    },
}

/// Checks the bounds of a random function, and returns them.
///
/// # Errors
/// [`DrawError::EmptyRange`] and [`DrawError::RangeTooLarge`].
#[inline]
pub fn range(low: i64, high: i64) -> Result<(i64, i64), DrawError> {
    if low > high {
        return Err(DrawError::EmptyRange(low, high));
    }
    match high.checked_sub(low).and_then(|n| n.checked_add(1)) {
        Some(_) => Ok((low, high)),
        None => Err(DrawError::RangeTooLarge(low, high)),
    }
}

impl Random {
    /// Creates a generator whose state splitmix64 draws from `seed`.
    pub fn new(mut seed: u64) -> Self {
        let mut draw = || {
            seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = seed;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        // splitmix64 never gives zero twice in a row, the one state that xoroshiro cannot leave.
        Self([draw(), draw()])
    }

    /// Draws 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let [s0, mut s1] = self.0;
        let result = s0.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        s1 ^= s0;
        self.0 = [s0.rotate_left(24) ^ s1 ^ (s1 << 16), s1.rotate_left(37)];
        result
    }

    /// Draws uniformly from [0, 1), with 52 bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 12) as f64 / (1_u64 << 52) as f64
    }

    /// Draws uniformly from `low..=high`, for `low <= high`.
    ///
    /// As many bits as the range needs are drawn, and drawn again while they lie beyond it.
    #[inline]
    pub fn uniform(&mut self, low: i64, high: i64) -> i64 {
        let range = high.wrapping_sub(low).cast_unsigned();
        if range == 0 {
            return low;
        }
        let shift = range.leading_zeros();
        loop {
            let drawn = self.next_u64() >> shift;
            if drawn <= range {
                return low.wrapping_add_unsigned(drawn);
            }
        }
    }

    /// Draws uniformly from `0..n`, for `n` above 0.
    pub(crate) fn index(&mut self, n: usize) -> usize {
        let last = i64::try_from(n).unwrap_or(i64::MAX).saturating_sub(1);
        usize::try_from(self.uniform(0, last)).unwrap_or_default()
    }

    /// Returns the number that lies at `share` (0 to 1) of `low..=high`.
    fn at_share(low: i64, high: i64, share: f64) -> i64 {
        let count = (high - low + 1) as f64;
        low.saturating_add((count * share) as i64).clamp(low, high)
    }

    /// Draws from `low..=high`, exponentially distributed: the larger `parameter`, the more often
    /// low numbers.
    ///
    /// # Errors
    /// [`DrawError::Parameter`] unless `parameter` is above 0.
    pub fn exponential(&mut self, low: i64, high: i64, parameter: f64) -> Result<i64, DrawError> {
        if parameter.is_nan() || parameter <= 0.0 {
            return Err(DrawError::Parameter {
                function: "exponential",
                value: parameter,
                allowed: "greater than zero",
            });
        }
        let cut = (-parameter).exp();
        // In (0, 1], so that the logarithm's argument is above 0.
        let uniform = 1.0 - self.unit();
        Ok(Self::at_share(low, high, -(cut + (1.0 - cut) * uniform).ln() / parameter))
    }

    /// Draws from `low..=high`, normally distributed (Box and Muller), cut off at `parameter`
    /// standard deviations from the middle.
    ///
    /// # Errors
    /// [`DrawError::Parameter`] unless `parameter` is at least 2.
    pub fn gaussian(&mut self, low: i64, high: i64, parameter: f64) -> Result<i64, DrawError> {
        if parameter.is_nan() || parameter < 2.0 {
            return Err(DrawError::Parameter {
                function: "gaussian",
                value: parameter,
                allowed: "at least 2.000000",
            });
        }
        loop {
            // In (0, 1], so that the logarithm is finite.
            let a = 1.0 - self.unit();
            let b = 1.0 - self.unit();
            let deviations = (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).sin();
            if (-parameter..parameter).contains(&deviations) {
                return Ok(Self::at_share(low, high, (deviations + parameter) / (parameter * 2.0)));
            }
        }
    }

    /// Draws from `low..=high`, Zipf-distributed, by rejection (Devroye 1986, X.6.1) extended to a
    /// bounded range.
    ///
    /// # Errors
    /// [`DrawError::Parameter`] unless `parameter` lies in 1.001 to 1000.
    pub fn zipfian(&mut self, low: i64, high: i64, parameter: f64) -> Result<i64, DrawError> {
        if !(1.001..=1000.0).contains(&parameter) {
            return Err(DrawError::Parameter {
                function: "zipfian",
                value: parameter,
                allowed: "in range [1.001, 1000]",
            });
        }
        let count = high - low + 1;
        if count <= 1 {
            return Ok(low);
        }
        let b = 2_f64.powf(parameter - 1.0);
        loop {
            let u = self.unit();
            let v = self.unit();
            let x = u.powf(-1.0 / (parameter - 1.0)).floor();
            let t = (1.0 + 1.0 / x).powf(parameter - 1.0);
            if v * x * (t - 1.0) / (b - 1.0) <= t / b && x <= count as f64 {
                return Ok(low + x as i64 - 1);
            }
        }
    }
}

/// Hashes the eight bytes of `value`, the lowest first, by FNV-1a with a basis mixed with `seed`.
pub fn fnv1a(value: u64, seed: u64) -> u64 {
    let basis = 0xcbf2_9ce4_8422_2325 ^ seed;
    value
        .to_le_bytes()
        .iter()
        .fold(basis, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Hashes the eight bytes of `value` by Appleby's `MurmurHash64A`.
pub fn murmur2(value: u64, seed: u64) -> u64 {
    const M: u64 = 0xc6a4_a793_5bd1_e995;
    let mixed = value.wrapping_mul(M);
    let mixed = (mixed ^ (mixed >> 47)).wrapping_mul(M);
    let hash = (seed ^ 8_u64.wrapping_mul(M) ^ mixed).wrapping_mul(M);
    let hash = (hash ^ (hash >> 47)).wrapping_mul(M);
    hash ^ (hash >> 47)
}

/// Returns the position of `value` in a permutation of `0..size` by `seed`; `size` is above 0.
///
/// Each of six rounds is a bijection. It scrambles the lower part, whose length is the largest
/// power of two that fits, then an upper part of equal length, and rotates all by a random number.
pub fn permute(value: i64, size: i64, seed: i64) -> i64 {
    if size < 2 {
        return 0;
    }
    let mut random = Random::new(seed.cast_unsigned());
    let size = size.cast_unsigned();
    let bits = size.ilog2();
    let mask = (1_u64 << bits) - 1;
    let scramble = |position: u64, random: &mut Random| {
        let factor = random.next_u64() & mask | 1;
        let flips = random.next_u64() & mask;
        if position > mask {
            return position;
        }
        let mixed = (position.wrapping_mul(factor) ^ flips) & mask;
        (mixed << 1) & mask | (mixed >> (bits - 1))
    };
    let mut at = value.cast_unsigned() % size;
    for _ in 0..6 {
        at = scramble(at, &mut random);
        at = size - 1 - scramble(size - 1 - at, &mut random);
        let turn = random.uniform(0, (size - 1).cast_signed()).cast_unsigned();
        at = (at + turn) % size;
    }
    at.cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_the_published_algorithms() {
        // splitmix64 from seed 1234567, as its reference implementation gives it.
        assert_eq!(
            Random::new(1_234_567).0,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]
        );
        // xoroshiro128** from state (1, 2): worked out by hand from the definition.
        let mut random = Random([1, 2]);
        assert_eq!(random.next_u64(), 5760);
        assert_eq!(random.0, [1_u64.rotate_left(24) ^ 3 ^ (3 << 16), 3_u64.rotate_left(37)]);
    }

    #[test]
    fn uniform_draws_reach_both_ends_and_no_further() {
        let mut random = Random::new(7);
        let mut seen = [0_u32; 6];
        for _ in 0..60_000 {
            let n = random.uniform(-2, 3);
            seen[usize::try_from(n + 2).unwrap()] += 1;
        }
        for count in seen {
            // Ten standard deviations of a fair die.
            assert!((9_080..10_920).contains(&count), "{seen:?}");
        }
        assert_eq!(random.uniform(5, 5), 5);
        for _ in 0..100 {
            assert!(random.uniform(0, i64::MAX - 1) >= 0);
        }
    }

    #[test]
    fn skewed_draws_stay_within_bounds_and_lean_where_they_should() {
        let mut random = Random::new(11);
        let mut means = [0_i64; 3];
        for _ in 0..20_000 {
            let drawn = [
                random.exponential(1, 100, 5.0).unwrap(),
                random.gaussian(1, 100, 2.5).unwrap(),
                random.zipfian(1, 100, 1.5).unwrap(),
            ];
            for (mean, n) in means.iter_mut().zip(drawn) {
                assert!((1..=100).contains(&n), "{drawn:?}");
                *mean += n;
            }
        }
        let [exponential, gaussian, zipfian] = means.map(|sum| sum / 20_000);
        assert!((17..25).contains(&exponential), "{exponential}");
        assert!((48..53).contains(&gaussian), "{gaussian}");
        assert!((5..15).contains(&zipfian), "{zipfian}");
        assert!(random.gaussian(1, 2, 1.9).is_err());
        assert!(random.exponential(1, 2, f64::NAN).is_err());
        assert!(random.zipfian(1, 2, 1.0).is_err());
        assert_eq!(random.zipfian(4, 4, 2.0), Ok(4));
        assert_eq!(range(2, 1), Err(DrawError::EmptyRange(2, 1)));
        assert!(range(i64::MIN, 0).is_err());
    }
}
