//! Values of options, as pgbench reads them.

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

/// Open files that this process may have.
fn open_files() -> Option<u64> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    limits
        .lines()
        .find(|l| l.starts_with("Max open files"))?
        .split_whitespace()
        .nth(3)?
        .parse()
        .ok()
}

/// The number of clients, for which this process must have enough open files.
pub(crate) fn clients(text: &str) -> Result<u32, UsageError> {
    let clients = integer(text, "-c/--client", 1, INT_MAX)?;
    let needed = u64::from(clients) + 3;
    match open_files() {
        Some(limit) if limit < needed => Err(UsageError::new(format!(
            "need at least {needed} open files, but system limit is {limit}"
        ))
        .hint("use fewer clients, or raise the limit (ulimit -n)")),
        _ => Ok(clients),
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
