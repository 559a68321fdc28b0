//! Numbers in decimal; integers are written straight into a buffer.
//!
//! Digits written one by one and then copied would be read back from the processor's store buffer,
//! which costs more than making them. Eight digits are therefore made at a time, in a register.

/// Ten to the eighth.
const EIGHT: u64 = 100_000_000;
const ZEROS: u64 = u64::from_ne_bytes([b'0'; 8]);

/// An integer of up to eight characters, with its text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShortInteger {
    /// Characters, the first in the lowest byte.
    text: u64,
    value: i32,
    length: u8,
}

impl ShortInteger {
    /// Creates the text of `n`; none if it is too long.
    #[inline]
    pub(crate) fn new(n: i64) -> Option<Self> {
        if !(-10_000_000 < n && n < EIGHT.cast_signed()) {
            return None;
        }
        let value = i32::try_from(n).ok()?;
        let digits = eight_digits(n.unsigned_abs());
        // A zero byte is a digit 0. The last digit stays.
        let leading = (digits.trailing_zeros() / 8).min(7);
        let (text, length) = ((digits | ZEROS) >> (8 * leading), 8 - leading as u8);
        Some(match n < 0 {
            true => Self { text: text << 8 | u64::from(b'-'), value, length: length + 1 },
            false => Self { text, value, length },
        })
    }

    pub(crate) fn value(self) -> i64 {
        self.value.into()
    }

    /// Appends the text to `out`.
    #[inline]
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        let end = out.len() + usize::from(self.length);
        out.extend_from_slice(&self.text.to_le_bytes());
        out.truncate(end);
    }
}

/// Appends `n` to `out`.
#[inline]
pub(crate) fn write_signed(n: i64, out: &mut Vec<u8>) {
    match ShortInteger::new(n) {
        Some(short) => short.write(out),
        None => write_long(n, out),
    }
}

/// Appends `n` to `out`.
#[inline]
pub(crate) fn write(n: u64, out: &mut Vec<u8>) {
    match i64::try_from(n).ok().and_then(ShortInteger::new) {
        Some(short) => short.write(out),
        None => write_unsigned(n, out),
    }
}

#[cold]
fn write_long(n: i64, out: &mut Vec<u8>) {
    if n < 0 {
        out.push(b'-');
    }
    write(n.unsigned_abs(), out);
}

#[cold]
fn write_unsigned(n: u64, out: &mut Vec<u8>) {
    write(n / EIGHT, out);
    out.extend_from_slice(&(eight_digits(n % EIGHT) | ZEROS).to_le_bytes());
}

/// Returns the eight digits of `n`, one a byte, the first in the lowest.
///
/// `n` has at most eight digits. All halves are divided at once, then all quarters, then all pairs.
#[inline]
fn eight_digits(n: u64) -> u64 {
    // Multiplications that divide by 100 below 10,000, and by 10 below 100.
    let split = |parts: u64, magic: u64, shift: u32, mask: u64, by: u64, width: u32| {
        let quotients = (parts.wrapping_mul(magic) >> shift) & mask;
        quotients | ((parts - by * quotients) << width)
    };
    let halves = (n / 10_000) | ((n % 10_000) << 32);
    let quarters = split(halves, 10_486, 20, 0x0000_007f_0000_007f, 100, 16);
    split(quarters, 103, 10, 0x000f_000f_000f_000f, 10, 8)
}

/// Returns `x` as C's `%f` writes it; `NaN` and `Infinity` as PostgreSQL does.
pub(crate) fn six_decimals(x: f64) -> String {
    match x {
        x if x.is_nan() => "NaN".to_owned(),
        x if x.is_infinite() => if x > 0.0 { "Infinity" } else { "-Infinity" }.to_owned(),
        x => format!("{x:.6}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_of_the_standard_library() {
        let check = |n: i64| {
            let mut out = b"x".to_vec();
            write_signed(n, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), format!("x{n}"));
        };
        (-20_000..20_000).for_each(check);
        let mut power = 1_i64;
        for _ in 0..19 {
            for digit in 1..10 {
                for near in -2..=2 {
                    check(power.wrapping_mul(digit).wrapping_add(near));
                }
            }
            power = power.wrapping_mul(10);
        }
        [i64::MIN, i64::MAX, 99_999_999, 9_999_999_999_999_999].into_iter().for_each(check);
        let mut random = crate::random::Random::new(7);
        (0..100_000).for_each(|_| check(random.uniform(i64::MIN / 2, i64::MAX / 2)));
        (0..100_000).for_each(|_| check(random.uniform(0, 99_999_999)));
        for n in 0..10_000 {
            assert_eq!(
                (eight_digits(n * 10_000 + n) | ZEROS).to_le_bytes(),
                *format!("{n:04}{n:04}").as_bytes()
            );
        }
    }
}
