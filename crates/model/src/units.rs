//! Quantities as files write them: `5s`, `250ms`, `16 MB`.
//!
//! ```
//! use pgdyno_model::units::{Bytes, Span};
//!
//! assert_eq!("250ms".parse::<Span>()?.0.as_millis(), 250);
//! assert_eq!("16MiB".parse::<Bytes>()?, Bytes(16 << 20));
//! # Ok::<(), pgdyno_model::units::UnitError>(())
//! ```

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Error of reading a quantity, with the text that was given.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum UnitError {
    /// The text is not a length of time.
    #[error("`{0}` is no length of time; write it like \"5s\", \"250ms\", \"2m 30s\"")]
    Span(String),
    /// The text is not a size.
    #[error("`{0}` is no size; write it like \"4GB\" or \"512MiB\"")]
    Bytes(String),
    /// The text is not a time in RFC 3339.
    #[error("`{text}` is no time: {reason}")]
    Epoch { text: String, reason: humantime::TimestampError },
    /// The text does not say how often to reconnect.
    #[error("`{0}` is neither `never`, nor `always`, nor a number of connections")]
    Reconnections(String),
}

/// A length of time, written as humans do (`5s`, `1m 30s`, `250ms`); serialises as that text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

impl Span {
    /// Creates a span of `seconds`.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// Returns the length multiplied by `factor`, which is not negative; the longest length where
    /// that is longer.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        let seconds = self.0.as_secs_f64() * factor;
        Self(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
    }
}

impl std::str::FromStr for Span {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        humantime::parse_duration(text).map(Self).map_err(|_| UnitError::Span(text.to_owned()))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(f)
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct V;
        impl serde::de::Visitor<'_> for V {
            type Value = Span;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a length of time in quotes, like \"5s\", \"250ms\", \"2m 30s\"")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Span, E> {
                text.parse().map_err(E::custom)
            }
        }
        from.deserialize_str(V)
    }
}

/// A number of bytes; displays in decimal units (`1.5 GB`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["B", "kB", "MB", "GB", "TB", "PB"];
        let mut value = self.0 as f64;
        let mut unit = 0;
        while value >= 999.95 && unit + 1 < UNITS.len() {
            value /= 1000.0;
            unit += 1;
        }
        if unit == 0 { write!(f, "{} B", self.0) } else { write!(f, "{value:.1} {}", UNITS[unit]) }
    }
}

/// Reads a number with a unit: decimal (`4 GB`, `kB`, `MB`, `TB`) or binary (`4GiB`, `KiB`, `MiB`,
/// `TiB`).
impl std::str::FromStr for Bytes {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let wrong = || UnitError::Bytes(text.to_owned());
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let factor: u64 = match unit.trim() {
            "B" => 1,
            "kB" => 1000,
            "MB" => 1_000_000,
            "GB" => 1_000_000_000,
            "TB" => 1_000_000_000_000,
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            "GiB" => 1 << 30,
            "TiB" => 1 << 40,
            _ => return Err(wrong()),
        };
        number.checked_mul(factor).map(Self).ok_or_else(wrong)
    }
}

/// Nanoseconds since the Unix epoch of a wall clock; displays as RFC 3339 in UTC, to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Epoch(pub u64);

impl Epoch {
    /// Converts a wall clock's time. Times before 1970 become 1970.
    pub fn from_time(at: std::time::SystemTime) -> Self {
        let since = at.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Self(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Returns this moment.
    pub fn now() -> Self {
        Self::from_time(std::time::SystemTime::now())
    }

    /// Converts to [`std::time::SystemTime`].
    pub fn time(self) -> std::time::SystemTime {
        std::time::UNIX_EPOCH + Duration::from_nanos(self.0)
    }
}

impl std::str::FromStr for Epoch {
    type Err = UnitError;

    /// Reads RFC 3339 in UTC: `2026-11-21T16:00:01.250Z`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        humantime::parse_rfc3339(text)
            .map(Self::from_time)
            .map_err(|reason| UnitError::Epoch { text: text.to_owned(), reason })
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_rfc3339_seconds(self.time()).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_read_as_storage_people_write_them() {
        assert_eq!(Bytes(999).to_string(), "999 B");
        assert_eq!(Bytes(999_999).to_string(), "1.0 MB");
        assert_eq!(Bytes(15_300_000_000).to_string(), "15.3 GB");
    }

    #[test]
    fn a_size_is_read_with_its_unit_and_never_without() {
        assert_eq!("4GB".parse(), Ok(Bytes(4_000_000_000)));
        assert_eq!("512 MiB".parse(), Ok(Bytes(512 << 20)));
        for wrong in ["", "4", "GB", "-4GB", "4 gb", "99999999999TB"] {
            assert_eq!(wrong.parse::<Bytes>(), Err(UnitError::Bytes(wrong.to_owned())));
        }
    }

    #[test]
    fn a_span_without_a_unit_is_refused_with_an_example() {
        let error = "300".parse::<Span>().unwrap_err();
        assert_eq!(error, UnitError::Span("300".to_owned()));
        assert!(error.to_string().contains("\"5s\""), "{error}");
    }
}
