//! Timestamps of a log: `2026-11-30 22:13:17.381 UTC`.

use std::time::UNIX_EPOCH;

use super::LogError;

/// When a record was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogTime<'a> {
    /// Microseconds since 1970 in UTC, or on the clock of `zone`.
    pub micros: i64,
    /// Abbreviation of a time zone whose distance from UTC it does not tell, such as `CET`.
    pub zone: Option<&'a str>,
}

impl<'a> LogTime<'a> {
    /// Reads a timestamp.
    ///
    /// # Errors
    /// [`LogError::Malformed`].
    pub fn read(text: &'a str) -> Result<Self, LogError> {
        read(text).ok_or(LogError::Malformed("a record does not begin with a time"))
    }
}

fn read(text: &str) -> Option<LogTime<'_>> {
    let (time, zone) = text.rsplit_once(' ')?;
    let time = humantime::parse_rfc3339_weak(time).ok()?.duration_since(UNIX_EPOCH).ok()?;
    let micros = i64::try_from(time.as_micros()).ok()?;
    Some(match offset(zone) {
        Some(east) => LogTime { micros: micros - east * 1_000_000, zone: None },
        None => LogTime { micros, zone: Some(zone) },
    })
}

/// Returns how far `zone` lies east of Greenwich (seconds); none for a name that does not tell.
fn offset(zone: &str) -> Option<i64> {
    if matches!(zone, "UTC" | "GMT" | "Z") {
        return Some(0);
    }
    let (sign, digits) = match zone.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let digits: String = digits.chars().filter(|c| *c != ':').collect();
    let number: i64 = digits.parse().ok().filter(|n| (0..10_000).contains(n))?;
    let (hours, minutes) =
        if digits.len() > 2 { (number / 100, number % 100) } else { (number, 0) };
    Some(sign * (hours * 3_600 + minutes * 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(text: &str) -> i64 {
        read(text).unwrap().micros
    }

    #[test]
    fn a_timestamp_is_microseconds_since_1970() {
        assert_eq!(micros("1970-01-01 00:00:00.000 UTC"), 0);
        assert_eq!(micros("2000-03-01 00:00:00.5 GMT"), 951_868_800_500_000);
        assert_eq!(micros("2026-11-30 22:13:17.381 UTC"), 1_796_076_797_381_000);
        assert_eq!(micros("2024-02-29 23:59:59 UTC") + 1_000_000, micros("2024-03-01 00:00:00 Z"));
        assert_eq!(micros("2026-01-01 03:00:00.000 +03"), micros("2026-01-01 00:00:00.000 UTC"));
        assert_eq!(micros("2026-01-01 00:00:00.000 -0330"), micros("2026-01-01 03:30:00.000 UTC"));
    }

    #[test]
    fn a_name_does_not_tell_its_distance_from_greenwich() {
        let time = read("2026-11-30 22:13:17.381 CET").unwrap();
        assert_eq!(time, LogTime { micros: 1_796_076_797_381_000, zone: Some("CET") });
    }

    #[test]
    fn other_texts_are_no_timestamps() {
        for text in ["", "2026-11-30", "2026-13-01 00:00:00 UTC", "a-b-c 1:2:3 UTC", "1-1-1 1:1 Z"]
        {
            assert!(read(text).is_none(), "{text}");
        }
    }
}
