//! Quantities as files write them: `5s`, `250ms`, `16 MB`.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A length of time, written as humans do (`5s`, `1m 30s`, `250ms`); serialises as that text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

impl Span {
    /// `seconds` as a span.
    #[must_use]
    pub const fn from_secs(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }
}

impl std::str::FromStr for Span {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        humantime::parse_duration(text).map(Self).map_err(|_| {
            format!("`{text}` is no length of time; write it like \"5s\", \"250ms\", \"2m 30s\"")
        })
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
#[serde(transparent)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    #[allow(clippy::cast_precision_loss)]
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

/// Nanoseconds since the Unix epoch of a wall clock; displays as RFC 3339 in UTC, to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Epoch(pub u64);

impl Epoch {
    /// The wall clock's time of `at`; times before 1970 read as 1970.
    #[must_use]
    pub fn of(at: std::time::SystemTime) -> Self {
        let since = at.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Self(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }

    /// The same instant as a [`std::time::SystemTime`].
    #[must_use]
    pub fn time(self) -> std::time::SystemTime {
        std::time::UNIX_EPOCH + Duration::from_nanos(self.0)
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
    fn a_span_without_a_unit_is_refused_with_an_example() {
        let error = "300".parse::<Span>().unwrap_err();
        assert!(error.contains("\"5s\""), "{error}");
    }
}
