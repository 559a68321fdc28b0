//! Values of variables and expressions.

use std::io::Write as _;

use super::EvalError;

/// A value of the expression language.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A 64-bit integer.
    Int(i64),
    /// A double.
    Double(f64),
}

impl Value {
    /// As an integer; a double is rounded to the nearest, halves to the even one.
    ///
    /// # Errors
    /// A double that is none, or out of a bigint's range.
    #[allow(clippy::cast_possible_truncation)]
    pub fn int(self) -> Result<i64, EvalError> {
        const BEYOND: f64 = 9_223_372_036_854_775_808.0;
        match self {
            Self::Int(n) => Ok(n),
            Self::Double(x) => {
                let rounded = x.round_ties_even();
                // NaN lies in no range.
                if (-BEYOND..BEYOND).contains(&rounded) {
                    Ok(rounded as i64)
                } else {
                    Err(EvalError::DoubleToInt(x))
                }
            }
        }
    }

    /// As a double.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn double(self) -> f64 {
        match self {
            Self::Int(n) => n as f64,
            Self::Double(x) => x,
        }
    }

    /// Appends its text, a double with 15 significant digits as C's `%.15g` writes it. Allocates only what `out`
    /// grows by.
    pub fn write_text(self, out: &mut Vec<u8>) {
        // Writing to a Vec cannot fail.
        let _ = match self {
            Self::Int(n) => write!(out, "{n}"),
            Self::Double(x) => return write_double(x, out),
        };
    }
}

fn write_double(x: f64, out: &mut Vec<u8>) {
    const DIGITS: i32 = 15;
    if x.is_nan() {
        out.extend_from_slice(b"nan");
        return;
    }
    if x.is_sign_negative() {
        out.push(b'-');
    }
    if x.is_infinite() {
        out.extend_from_slice(b"inf");
        return;
    }
    // `d.dddddddddddddde±x`: the digits, and the power of ten of the first.
    let mut scratch = [0; 32];
    let mut rest = &mut scratch[..];
    let _ = write!(rest, "{:.14e}", x.abs());
    let unused = rest.len();
    let written = &scratch[..scratch.len() - unused];
    let (mantissa, exponent) = match written.iter().position(|&b| b == b'e') {
        Some(e) => (&written[..e], &written[e + 1..]),
        None => (written, &b"0"[..]),
    };
    let exponent: i32 = str::from_utf8(exponent).ok().and_then(|e| e.parse().ok()).unwrap_or(0);
    let mut digits = [b'0'; DIGITS as usize];
    for (digit, byte) in digits.iter_mut().zip(mantissa.iter().filter(|b| b.is_ascii_digit())) {
        *digit = *byte;
    }
    let significant = digits.iter().rposition(|&d| d != b'0').map_or(1, |n| n + 1);
    let digits = &digits[..significant];
    if (-4..DIGITS).contains(&exponent) {
        if exponent < 0 {
            out.extend_from_slice(b"0.");
            out.extend((1..-exponent).map(|_| b'0'));
            out.extend_from_slice(digits);
        } else {
            let whole = usize::try_from(exponent).unwrap_or(0) + 1;
            out.extend((0..whole).map(|n| digits.get(n).copied().unwrap_or(b'0')));
            if digits.len() > whole {
                out.push(b'.');
                out.extend_from_slice(&digits[whole..]);
            }
        }
    } else {
        out.push(digits[0]);
        if digits.len() > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(out, "e{sign}{:02}", exponent.abs());
    }
}
