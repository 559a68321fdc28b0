//! Values of options, as pgbench reads them.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use pgdyno_engine::ReactorChoice;
use pgdyno_engine::script::leading_integer;
use pgdyno_generators::Generators;
use pgdyno_model::experiment::{Protocol, ReconnectLost};

use crate::request::PartitionMethod;
use crate::usage_error::UsageError;

/// An integer as `strtol` reads it, within bounds.
pub(crate) fn integer(text: &str, option: &str, min: i64, max: i64) -> Result<u32, UsageError> {
    let trimmed = text.trim_matches(|c: char| c.is_ascii_whitespace());
    let digits = trimmed.strip_prefix(['+', '-']).unwrap_or(trimmed);
    if digits.is_empty() != trimmed.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(UsageError::new(format!("invalid value \"{text}\" for option {option}")));
    }
    // Of nothing at all `strtol` makes 0.
    let number = if trimmed.is_empty() { Ok(0) } else { trimmed.parse::<i64>() };
    let value = number.ok().filter(|n| (min..=max).contains(n));
    value
        .and_then(|n| u32::try_from(n).ok())
        .ok_or_else(|| UsageError::new(format!("{option} must be in range {min}..{max}")))
}

/// The largest number that most options take.
pub(crate) const INT_MAX: i64 = i32::MAX as i64;

/// The number that `text` begins with, as `atof` reads it; 0 where there is none.
fn leading_number(text: &str) -> f64 {
    let text = text.trim_start();
    let word = text.trim_start_matches('+').to_ascii_lowercase();
    if word.starts_with("inf") {
        return f64::INFINITY;
    }
    if let Some(hexadecimal) = word.strip_prefix("0x") {
        let digits = hexadecimal.chars().map_while(|c| c.to_digit(16));
        return digits.fold(0.0, |number, digit| number * 16.0 + f64::from(digit));
    }
    let numeric = text
        .find(|c: char| !matches!(c, '0'..='9' | '.' | 'e' | 'E' | '+' | '-'))
        .unwrap_or(text.len());
    (1..=numeric).rev().find_map(|end| text.get(..end)?.parse().ok()).unwrap_or(0.0)
}

/// A number above 0, and not above `max`.
pub(crate) fn positive(text: &str, what: &str, max: f64) -> Result<f64, UsageError> {
    let value = leading_number(text);
    if value > 0.0 && value <= max {
        Ok(value)
    } else {
        Err(UsageError::new(format!("invalid {what}: \"{text}\"")))
    }
}

/// The seed that `text` names, as `strtoul` reads numbers: a minus sign counts from the other end,
/// and what is too large is the largest.
pub(crate) fn seed(text: &str, from: &str) -> Result<u64, UsageError> {
    let digits = text.trim_start();
    let (is_negative, digits) = match digits.as_bytes().first() {
        Some(b'-') => (true, &digits[1..]),
        Some(b'+') => (false, &digits[1..]),
        _ => (false, digits),
    };
    match text {
        "time" => Ok(std::time::UNIX_EPOCH.elapsed().map_or(0, |t| t.as_micros() as u64)),
        "rand" => Ok(fastrand::u64(..)),
        _ if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => {
            Ok(match digits.parse::<u64>() {
                Ok(number) if is_negative => number.wrapping_neg(),
                Ok(number) => number,
                Err(_) => u64::MAX,
            })
        }
        _ => Err(UsageError::new(format!("unrecognized random seed option \"{text}\""))
            .detail("An unsigned integer, \"time\" or \"rand\" is expected.")
            .then(format!("error while setting random seed from {from}"))),
    }
}

/// The steps of `-I`.
pub(crate) fn steps(text: &str) -> Result<Vec<char>, UsageError> {
    const ALLOWED: &str = "dtgGvpf";
    if text.is_empty() {
        return Err(UsageError::new("no initialization steps specified"));
    }
    match text.chars().find(|c| !ALLOWED.contains(*c) && *c != ' ') {
        Some(wrong) => {
            Err(UsageError::new(format!("unrecognized initialization step \"{wrong}\""))
                .detail(format!("Allowed step characters are: \"{ALLOWED}\".")))
        }
        None => Ok(text.chars().filter(|c| *c != ' ').collect()),
    }
}

/// Returns the partition method that `text` names, in capitals or not.
pub(crate) fn partition_method(text: &str) -> Result<PartitionMethod, UsageError> {
    match text.to_ascii_lowercase().as_str() {
        "range" => Ok(PartitionMethod::Range),
        "hash" => Ok(PartitionMethod::Hash),
        _ => Err(UsageError::new(format!(
            "invalid partition method, expecting \"range\" or \"hash\", got: \"{text}\""
        ))),
    }
}

/// Returns the latency limit (ms). pgbench counts in whole microseconds: less than one is no limit.
pub(crate) fn latency_limit(text: &str) -> Result<Option<f64>, UsageError> {
    Ok(Some(positive(text, "latency limit", f64::MAX)?).filter(|limit| *limit >= 0.001))
}

/// Returns the rate (transactions per second); none if it is infinite.
pub(crate) fn rate(text: &str) -> Result<Option<f64>, UsageError> {
    Ok(Some(positive(text, "rate limit", f64::INFINITY)?).filter(|rate| rate.is_finite()))
}

/// Returns the query mode (`-M`).
pub(crate) fn protocol(text: &str) -> Result<Protocol, UsageError> {
    Protocol::parse(text)
        .ok_or_else(|| UsageError::new(format!("invalid query mode (-M): \"{text}\"")))
}

/// Returns the time between progress lines.
pub(crate) fn progress(text: &str) -> Result<Duration, UsageError> {
    let seconds = integer(text, "-P/--progress", 1, INT_MAX)?;
    Ok(Duration::from_secs(seconds.into()))
}

/// Returns the tries of a transaction, as `atoi` reads them; 0 is without limit.
pub(crate) fn max_tries(text: &str) -> Result<u32, UsageError> {
    u32::try_from(leading_integer(text.as_bytes()))
        .ok()
        .filter(|tries| i64::from(*tries) <= INT_MAX)
        .ok_or_else(|| UsageError::new(format!("invalid number of maximum tries: \"{text}\"")))
}

/// Returns how often a client replaces a lost connection.
pub(crate) fn reconnect_lost(text: &str) -> Result<ReconnectLost, UsageError> {
    text.parse().map_err(|wrong| UsageError::new(format!("--reconnect-lost: {wrong}")))
}

/// Returns the reactor called `text`.
pub(crate) fn reactor(text: &str) -> Result<ReactorChoice, UsageError> {
    ReactorChoice::parse(text).ok_or_else(|| {
        let names = ReactorChoice::NAMES.join(", ");
        UsageError::new(format!("unrecognized reactor \"{text}\"; known are {names}"))
    })
}

/// Returns the file called `name`, which `option` writes to. Standard output has the report.
pub(crate) fn own_file(name: &OsStr, option: &str) -> Result<PathBuf, UsageError> {
    match name == "-" {
        false => Ok(PathBuf::from(name)),
        true => Err(UsageError::new(format!("{option} cannot write to standard output"))
            .hint("name a file; ./- is one called \"-\"")),
    }
}

/// Returns the generators that `text` names.
pub(crate) fn generators(text: &str) -> Result<Generators, UsageError> {
    text.parse().map_err(|wrong| UsageError::new(format!("--generators: {wrong}")))
}

/// Returns how far apart generators may begin.
pub(crate) fn start_skew(text: &str) -> Result<Duration, UsageError> {
    let milliseconds = positive(text, "start skew", 1e6)?;
    Ok(Duration::from_secs_f64(milliseconds / 1e3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_integer_may_be_the_smallest_and_the_largest_that_is_allowed() {
        let read = |text| integer(text, "--fillfactor", 10, 100).ok();
        assert_eq!((read("10"), read("100"), read(" +11")), (Some(10), Some(100), Some(11)));
        for refused in ["9", "101", "-10", "", "10x", "99999999999999999999"] {
            assert_eq!(read(refused), None, "{refused}");
        }
    }
}
