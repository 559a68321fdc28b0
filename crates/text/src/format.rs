//! Formats numbers for people: three significant digits, commas between thousands.
//!
//! ```
//! use pgdyno_text::format;
//!
//! assert_eq!(format::rate(12_345.6), "12,346");
//! assert_eq!(format::milliseconds(1234.0), "1.23");
//! assert_eq!(format::percent(0.0234), "2.3");
//! assert_eq!(format::counted(2_u32, "round"), "2 rounds");
//! ```

use std::fmt::Display;

use serde::Serializer;

/// Formats a rate such as tps, without a unit.
pub fn rate(value: f64) -> String {
    significant(value)
}

/// Formats microseconds as milliseconds, without a unit.
pub fn milliseconds(us: f64) -> String {
    significant(us / 1000.0)
}

/// Formats a ratio of two rates.
pub fn times(value: f64) -> String {
    significant(value)
}

/// Formats a share of 1 as a percentage, without the sign `%`.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent.abs() < 10.0 && percent != 0.0 {
        format!("{percent:.1}")
    } else {
        significant(percent)
    }
}

/// Formats a share of 1 as a whole percentage, without the sign `%`.
pub fn whole_percent(share: f64) -> String {
    // Adding 0 turns -0 into 0.
    format!("{:.0}", (100.0 * share).round() + 0.0)
}

/// Formats half of an interval's width as a percentage of `mean`.
///
/// None if half of the interval is wider than the mean: it says nothing then.
pub fn plus_minus(mean: f64, [lo, hi]: [f64; 2]) -> Option<String> {
    let half = (hi - lo) / 2.0;
    (mean > 0.0 && half <= mean).then(|| percent(half / mean))
}

/// Formats seconds, without a unit and without trailing zeros.
pub fn seconds(value: f64) -> String {
    let text = significant(value);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// Formats a length of time with its unit: seconds, or ms and µs where it is shorter.
pub fn duration(seconds: f64) -> String {
    let (value, unit) = match seconds {
        1.0.. => (seconds, "s"),
        0.001.. => (seconds * 1e3, "ms"),
        _ if seconds > 0.0 => (seconds * 1e6, "µs"),
        _ => (seconds, "s"),
    };
    format!("{} {unit}", self::seconds(value))
}

/// Formats a count.
pub fn count(value: u64) -> String {
    grouped(&value.to_string())
}

/// Formats a count with its noun: `1 socket`, `2 sockets`.
pub fn counted(value: impl Into<u64>, noun: &str) -> String {
    let value = value.into();
    format!("{} {noun}{}", count(value), if value == 1 { "" } else { "s" })
}

/// Serialises a value as the text that it displays: `#[serde(serialize_with = …)]`.
///
/// # Errors
/// Only those of the serialiser.
pub fn as_text<T: Display, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}

/// Serialises a value as [`as_text`] does, and none as null.
///
/// # Errors
/// Only those of the serialiser.
#[allow(clippy::ref_option)]
pub fn as_optional_text<T: Display, S: Serializer>(
    value: &Option<T>,
    to: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => to.collect_str(value),
        None => to.serialize_none(),
    }
}

/// Absolute value below which a figure is a rounding error of 0. No printed rate, time or ratio is
/// that small.
const ZERO: f64 = 1e-9;

fn significant(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let decimals = match value.abs() {
        // A difference of equal figures is 0 but for rounding.
        v if v < ZERO => return "0".to_owned(),
        v if v < 0.0005 => return format!("{value:.1e}"),
        v if v < 0.0995 => 4,
        v if v < 0.9995 => 3,
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    grouped(&format!("{value:.decimals$}"))
}

fn grouped(digits: &str) -> String {
    let (whole, rest) = digits.split_once('.').map_or((digits, None), |(w, r)| (w, Some(r)));
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |w| ("-", w));
    let mut out = String::from(sign);
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if let Some(rest) = rest {
        out.push('.');
        out.push_str(rest);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_are_enough() {
        for (value, text) in [
            (0.0, "0"),
            (0.000_12, "1.2e-4"),
            (0.0123, "0.0123"),
            (0.4567, "0.457"),
            (0.9996, "1.00"),
            (9.996, "10.0"),
            (45.67, "45.7"),
            (99.96, "100"),
            (1_234_567.8, "1,234,568"),
            (-1234.0, "-1,234"),
            (-1.5e-16, "0"),
            (f64::NAN, "–"),
        ] {
            assert_eq!(significant(value), text);
        }
        assert_eq!(plus_minus(100.0, [97.0, 103.0]).unwrap(), "3.0");
        assert_eq!(
            (seconds(5.0), seconds(0.25), seconds(300.0)),
            ("5".into(), "0.25".into(), "300".into())
        );
        assert_eq!(
            [0.000_47, 0.25, 300.0, 0.0].map(duration),
            ["470 µs", "250 ms", "300 s", "0 s"]
        );
        assert_eq!([-0.001, 0.931, -0.12].map(whole_percent), ["0", "93", "-12"]);
        assert_eq!(plus_minus(0.0, [0.0, 0.0]), None);
        assert_eq!(plus_minus(100.0, [-154.0, 354.0]), None);
    }
}
