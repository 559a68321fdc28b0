//! Values of variables and expressions.

use std::io::Write as _;

use super::EvalError;
use crate::digits::{self, ShortInteger};

/// A value of the expression language.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// SQL's NULL.
    Null,
    /// True or false.
    Bool(bool),
    /// A 64-bit integer.
    Int(i64),
    /// A double.
    Double(f64),
}

impl Value {
    /// Returns the name of the type, as messages have it.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "boolean",
            Self::Int(_) => "int",
            Self::Double(_) => "double",
        }
    }

    /// Returns the value as an integer; a double is rounded, halves to even.
    ///
    /// # Errors
    /// The value is no number, or a double beyond a bigint.
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
            Self::Null | Self::Bool(_) => Err(EvalError::Coerce { from: self.kind(), to: "int" }),
        }
    }

    /// Returns the value as a double.
    ///
    /// # Errors
    /// The value is no number.
    pub fn double(self) -> Result<f64, EvalError> {
        match self {
            Self::Int(n) => Ok(n as f64),
            Self::Double(x) => Ok(x),
            Self::Null | Self::Bool(_) => {
                Err(EvalError::Coerce { from: self.kind(), to: "double" })
            }
        }
    }

    /// Returns the value as a boolean.
    ///
    /// # Errors
    /// The value is no boolean.
    pub fn bool(self) -> Result<bool, EvalError> {
        match self {
            Self::Bool(b) => Ok(b),
            _ => Err(EvalError::Coerce { from: self.kind(), to: "boolean" }),
        }
    }

    /// Returns whether the value counts as true in a condition: `true`, and every number but 0.
    pub fn is_true(self) -> bool {
        match self {
            Self::Null => false,
            Self::Bool(b) => b,
            Self::Int(n) => n != 0,
            Self::Double(x) => x != 0.0,
        }
    }

    /// Appends the value's text to `out`. Nothing else is allocated.
    ///
    /// A double has 15 significant digits, as C's `%.15g` writes it; or `NaN`, or `Infinity`.
    pub fn write_text(self, out: &mut Vec<u8>) {
        // Writing to a Vec cannot fail.
        let _ = match self {
            Self::Null => write!(out, "NULL"),
            Self::Bool(b) => write!(out, "{b}"),
            Self::Int(n) => return digits::write_signed(n, out),
            Self::Double(x) => return write_double(x, out),
        };
    }
}

/// Value of a variable.
#[derive(Clone, Debug, PartialEq)]
pub enum VariableValue {
    /// A value of the expression language.
    Value(Value),
    /// A short integer with its text, which is often written several times.
    ShortInteger(ShortInteger),
    /// Text from an option, a result or a program. SQL gets it unchanged.
    Text(Box<[u8]>),
}

impl From<Value> for VariableValue {
    #[inline]
    fn from(value: Value) -> Self {
        match value {
            Value::Int(n) => ShortInteger::new(n).map_or(Self::Value(value), Self::ShortInteger),
            _ => Self::Value(value),
        }
    }
}

impl From<&str> for VariableValue {
    fn from(text: &str) -> Self {
        Self::Text(text.as_bytes().into())
    }
}

impl VariableValue {
    /// Returns the value in an expression; none if the text is no number, boolean or NULL.
    pub fn value(&self) -> Option<Value> {
        match self {
            Self::Value(value) => Some(*value),
            Self::ShortInteger(short) => Some(Value::Int(short.value())),
            Self::Text(text) => read(str::from_utf8(text).ok()?),
        }
    }

    /// Appends the text to `out`.
    #[inline]
    pub fn write_text(&self, out: &mut Vec<u8>) {
        match self {
            Self::Value(value) => value.write_text(out),
            Self::ShortInteger(short) => short.write(out),
            Self::Text(text) => out.extend_from_slice(text),
        }
    }
}

/// Reads a value from `text`. Words for booleans may be abbreviated as far as they are unambiguous.
fn read(text: &str) -> Option<Value> {
    if text.is_empty() {
        return None;
    }
    let is = |word: &str| word.eq_ignore_ascii_case(text);
    let begins = |word: &str| word.get(..text.len()).is_some_and(is);
    if is("null") {
        return Some(Value::Null);
    }
    if begins("true") || begins("yes") || is("on") {
        return Some(Value::Bool(true));
    }
    if begins("false") || begins("no") || is("off") || is("of") {
        return Some(Value::Bool(false));
    }
    let trimmed = text.trim_ascii_start();
    let digits = trimmed.strip_prefix(['+', '-']).unwrap_or(trimmed);
    if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        return trimmed.parse().ok().map(Value::Int);
    }
    trimmed
        .parse()
        .ok()
        .filter(|x: &f64| x.is_finite() || !digits.as_bytes()[0].is_ascii_digit())
        .map(Value::Double)
}

fn write_double(x: f64, out: &mut Vec<u8>) {
    const DIGITS: i32 = 15;
    if x.is_nan() {
        out.extend_from_slice(b"NaN");
        return;
    }
    if x.is_sign_negative() {
        out.push(b'-');
    }
    if x.is_infinite() {
        out.extend_from_slice(b"Infinity");
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
