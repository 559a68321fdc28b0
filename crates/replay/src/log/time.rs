//! Timestamps of a log: `2026-11-30 22:13:17.381 UTC`.

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
    let mut words = text.splitn(3, ' ');
    let (date, time, zone) = (words.next()?, words.next()?, words.next()?);
    let [year, month, day] = numbers(date, '-')?;
    let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [hour, minute, second] = numbers(clock, ':')?;
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    if hour > 24 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
    let micros = seconds * 1_000_000 + micros_of(fraction)?;
    Some(match offset(zone) {
        Some(east) => LogTime { micros: micros - east * 1_000_000, zone: None },
        None => LogTime { micros, zone: Some(zone) },
    })
}

fn numbers(text: &str, separator: char) -> Option<[i64; 3]> {
    let mut parts = text.split(separator);
    let mut next = || -> Option<i64> {
        let part = parts.next().filter(|part| (1..=4).contains(&part.len()))?;
        part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok())?
    };
    let read = [next()?, next()?, next()?];
    parts.next().is_none().then_some(read)
}

/// Reads up to six digits of a second's fraction.
fn micros_of(fraction: &str) -> Option<i64> {
    if fraction.is_empty() || fraction.len() > 6 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let scale = 10_i64.pow(6 - u32::try_from(fraction.len()).ok()?);
    Some(fraction.parse::<i64>().ok()? * scale)
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

/// Returns the days from 1970-01-01 to a date of the Gregorian calendar. Years begin in March here,
/// so that a leap day is the last of its year.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
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
