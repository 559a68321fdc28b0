//! Lengths of time in options and answers.

use pgdyno_model::units::Span;

/// A value of an option that is no length of time, or none that can be measured.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DurationError {
    /// It cannot be read.
    #[error("{0}")]
    Unreadable(<Span as std::str::FromStr>::Err),
    /// It is zero.
    #[error("nothing can be measured in no time")]
    Zero,
}

/// Parses a length of time that is not zero: `5s`, `250ms`, `2m 30s`.
///
/// # Errors
/// The text is no length of time, or is zero.
pub(crate) fn parse_duration(text: &str) -> Result<Span, DurationError> {
    let span: Span = text.parse().map_err(DurationError::Unreadable)?;
    if span.0.is_zero() { Err(DurationError::Zero) } else { Ok(span) }
}
