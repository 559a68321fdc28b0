//! Figures as they were printed: a value, and how far from it the true one may lie.

use serde::{Deserialize, Serialize};

/// A printed number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Figure {
    /// As printed.
    pub value: f64,
    /// Half a unit of the last printed digit: what rounding may have taken.
    pub half: f64,
    /// Where it stands in its file, from 1.
    pub line: usize,
}

/// More digits than these are no figure of a report.
const MOST_DIGITS: usize = 24;

impl Figure {
    /// A number as C prints it: digits, at most one point.
    pub(crate) fn read(text: &str, line: usize) -> Option<Self> {
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let all_digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty()
            || digits.len() > MOST_DIGITS
            || !all_digits(whole)
            || !all_digits(fraction)
        {
            return None;
        }
        let decimals = i32::try_from(fraction.len()).ok()?;
        let value: f64 = text.parse().ok()?;
        Some(Self { value, half: 0.5 * 10f64.powi(-decimals), line })
    }

    /// A count: it was not rounded.
    pub(crate) fn count(text: &str, line: usize) -> Option<Self> {
        text.bytes()
            .all(|b| b.is_ascii_digit())
            .then(|| Self::read(text, line))
            .flatten()
            .map(Self::exact)
    }

    fn exact(self) -> Self {
        Self { half: 0.0, ..self }
    }

    /// The least that would be printed so.
    pub(crate) fn low(self) -> f64 {
        self.value - self.half
    }

    /// The most that would be printed so.
    pub(crate) fn high(self) -> f64 {
        self.value + self.half
    }

    /// Whether a true value between `low` and `high` may be printed so, rounded or cut off.
    pub(crate) fn may_print(self, low: f64, high: f64) -> bool {
        // A binary fraction of a decimal one.
        let slip = 1e-9 * self.value.abs();
        high >= self.value - self.half - slip && low <= self.value + 2.0 * self.half + slip
    }
}

/// The sign before decimals in numbers that people wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decimals {
    Point,
    Comma,
}

impl Decimals {
    /// Returns the sign before decimals, and the one between thousands.
    fn signs(self) -> [char; 2] {
        match self {
            Self::Point => ['.', ','],
            Self::Comma => [',', '.'],
        }
    }
}

/// Reading of a number that a person wrote.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Reading {
    Number(Figure),
    /// One of two numbers, a thousand times apart: `1,234`.
    Ambiguous,
    No,
}

impl Reading {
    /// Returns the figure of an unambiguous number.
    pub(crate) fn number(self) -> Option<Figure> {
        if let Self::Number(figure) = self { Some(figure) } else { None }
    }
}

/// Returns the decimal sign that a number proves for all numbers beside it; none where it may be
/// either.
pub(crate) fn proof(text: &str) -> Option<Decimals> {
    match shape(&digits(text)?)? {
        Shape::Decimals(sign) => Some(sign),
        Shape::Whole | Shape::Either => None,
    }
}

/// Reads a person's number: thousands apart or not, with a unit or not. `known` is the sign that
/// numbers beside it prove.
pub(crate) fn read_number(text: &str, known: Option<Decimals>, line: usize) -> Reading {
    let Some(digits) = digits(text) else { return Reading::No };
    let decimals = match shape(&digits) {
        None => return Reading::No,
        Some(Shape::Whole) => Decimals::Point,
        Some(Shape::Decimals(sign)) => sign,
        Some(Shape::Either) => match known {
            Some(known) => known,
            // Programs write points.
            None if digits.contains('.') => Decimals::Point,
            None => return Reading::Ambiguous,
        },
    };
    let [sign, thousands] = decimals.signs();
    let plain = digits.replace(thousands, "").replace(sign, ".");
    Figure::read(&plain, line).map_or(Reading::No, Reading::Number)
}

/// Units that may stand behind a number in a cell.
const UNITS: &[&str] = &["%", "tps", "TPS", "ms", "x", "×", "/s", "ops/s", "IOPS", "s", "MB/s"];

/// Returns digits and signs of a number, without its unit; none of another text.
fn digits(text: &str) -> Option<String> {
    let mut text = text.trim().trim_start_matches(['~', '≈', '+']).trim();
    for unit in UNITS {
        if let Some(before) = text.strip_suffix(unit) {
            text = before.trim_end();
            break;
        }
    }
    let mut digits = String::new();
    for (at, c) in text.char_indices() {
        match c {
            '0'..='9' | '.' | ',' => digits.push(c),
            '-' if at == 0 => digits.push(c),
            // Thousands apart by blanks: only where three digits follow.
            ' ' | '\u{a0}' | '\u{202f}' | '\u{2009}' | '\'' | '’' => {
                let rest = &text[at + c.len_utf8()..];
                let group = rest.bytes().take_while(u8::is_ascii_digit).count();
                if group != 3 || digits.contains(['.', ',']) {
                    return None;
                }
            }
            _ => return None,
        }
    }
    digits.contains(|c: char| c.is_ascii_digit()).then_some(digits)
}

/// Form of a number by its signs.
enum Shape {
    Whole,
    /// Signs that have one reading, in which this one stands before decimals.
    Decimals(Decimals),
    Either,
}

/// Returns the form of digits and signs; none of those that are no number.
fn shape(digits: &str) -> Option<Shape> {
    let digits = digits.trim_start_matches('-');
    let Some(last) = digits.rfind(['.', ',']) else { return Some(Shape::Whole) };
    let (decimals, thousands) = match digits[last..].starts_with('.') {
        true => (Decimals::Point, Decimals::Comma),
        false => (Decimals::Comma, Decimals::Point),
    };
    let [sign, other] = decimals.signs();
    let is_grouped = |text: &str, sign: char| {
        let mut parts = text.split(sign);
        let first = parts.next().unwrap_or_default();
        (1..=3).contains(&first.len()) && parts.all(|part| part.len() == 3)
    };
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let (whole, fraction) = (&digits[..last], &digits[last + 1..]);
    match (whole.contains(sign), whole.contains(other)) {
        (true, true) => None,
        (true, false) => is_grouped(digits, sign).then_some(Shape::Decimals(thousands)),
        (false, true) => {
            (is_grouped(whole, other) && is_digits(fraction)).then_some(Shape::Decimals(decimals))
        }
        (false, false) if !is_digits(whole) || !is_digits(fraction) => None,
        (false, false) if fraction.len() == 3 && whole.len() <= 3 && whole != "0" => {
            Some(Shape::Either)
        }
        (false, false) => Some(Shape::Decimals(decimals)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_digit_tells_how_exact_a_figure_is() {
        let figure = Figure::read("46.36", 7).unwrap();
        assert_eq!((figure.value, figure.line), (46.36, 7));
        assert!((figure.half - 0.005).abs() < 1e-12);
        assert!(figure.may_print(46.3602, 46.3602) && figure.may_print(46.3694, 46.3694));
        assert!(!figure.may_print(46.38, 46.39) && !figure.may_print(46.3, 46.35));
        for none in ["", ".", "1.2.3", "1e9", "nan", "0x5", "5%", &"9".repeat(40)] {
            assert_eq!(Figure::read(none, 1), None, "{none}");
        }
    }

    #[test]
    fn numbers_that_people_write_are_read_where_they_can_be_only_one() {
        let value = |text: &str, known| match read_number(text, known, 1) {
            Reading::Number(figure) => Some(figure.value),
            _ => None,
        };
        for (text, read) in [
            ("12", 12.0),
            ("1.234,56", 1234.56),
            ("1,234.56", 1234.56),
            ("1,234,567", 1_234_567.0),
            ("1.234.567", 1_234_567.0),
            ("12,5", 12.5),
            ("12839,5", 12839.5),
            ("0,567", 0.567),
            ("12 839", 12839.0),
            ("12\u{202f}839,5 tps", 12839.5),
            ("12'839", 12839.0),
            ("69,1 %", 69.1),
            ("~75%", 75.0),
            ("1.185 ms", 1.185),
        ] {
            assert_eq!(value(text, None), Some(read), "{text}");
        }
        assert_eq!(read_number("12,839", None, 1), Reading::Ambiguous);
        assert_eq!(value("12,839", Some(Decimals::Point)), Some(12839.0));
        assert_eq!(value("12,839", Some(Decimals::Comma)), Some(12.839));
        assert_eq!(value("12.839", Some(Decimals::Comma)), Some(12839.0));
        for none in ["n/a", "", "-", "1.2.3,4", "1,23,456", "5 6", "ext4", "9.2.4", "2010-01-05"] {
            assert_eq!(read_number(none, None, 1), Reading::No, "{none}");
        }
        assert_eq!(proof("12,5"), Some(Decimals::Comma));
        assert_eq!(proof("1,234,567"), Some(Decimals::Point));
        assert_eq!(proof("1,234"), None);
    }
}
