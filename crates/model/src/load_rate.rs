//! Rates at which transactions are due: the same all the time, or by stages.
//!
//! ```
//! use pgdyno_model::load_rate::LoadRate;
//!
//! let rate: LoadRate = "500 for 60s, 500 to 2000 for 30s".parse()?;
//! assert_eq!(rate.seconds(), Some(90));
//! assert_eq!(rate.to_string(), "500 for 1m, 500 to 2000 for 30s");
//! # Ok::<(), pgdyno_model::load_rate::LoadRateError>(())
//! ```

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::level::LevelValue;
use crate::units::Span;

/// Most stages of a rate: a day by seconds fits.
pub const MAX_STAGES: usize = 100_000;

/// Stage of a rate: whole seconds in which it stays, or goes straight from one value to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateStage {
    /// Length (whole seconds, 1 or more).
    pub seconds: u32,
    /// Rate at its beginning (transactions per second, 0 or more).
    pub from: f64,
    /// Rate at its end.
    pub to: f64,
}

impl RateStage {
    /// Transactions that are due in it, on average (count).
    pub fn due(&self) -> f64 {
        f64::midpoint(self.from, self.to) * f64::from(self.seconds)
    }
}

impl fmt::Display for RateStage {
    /// `500 for 1m`, `500 to 2000 for 30s`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seconds, from, to } = *self;
        write!(f, "{from}")?;
        if from.total_cmp(&to).is_ne() {
            write!(f, " to {to}")?;
        }
        write!(f, " for {}", Span::from_secs(seconds.into()))
    }
}

impl FromStr for RateStage {
    type Err = LoadRateError;
    fn from_str(text: &str) -> Result<Self, LoadRateError> {
        let wrong = || LoadRateError::Stage(text.trim().to_owned());
        let (rates, length) = text.split_once(" for ").ok_or_else(wrong)?;
        let (from, to) = rates.split_once(" to ").unwrap_or((rates, rates));
        let rate = |text: &str| text.trim().parse::<f64>().map_err(|_| wrong());
        let length: Span = length.trim().parse().map_err(|_| wrong())?;
        Self::new(length, rate(from)?, rate(to)?)
    }
}

impl RateStage {
    /// Creates a stage of `length` in which the rate goes from `from` to `to` (1/s).
    ///
    /// # Errors
    /// [`LoadRateError`]: the length is not in whole seconds, or a rate is negative or endless.
    pub fn new(length: Span, from: f64, to: f64) -> Result<Self, LoadRateError> {
        let seconds = u32::try_from(length.0.as_secs()).unwrap_or(u32::MAX);
        if length.0.subsec_nanos() > 0 || seconds == 0 {
            return Err(LoadRateError::Length(length));
        }
        match [from, to].into_iter().find(|rate| !(rate.is_finite() && *rate >= 0.0)) {
            Some(rate) => Err(LoadRateError::Rate(rate)),
            None => Ok(Self { seconds, from, to }),
        }
    }
}

/// Rate at which transactions are due, over all clients together. Serialises as a number or, with
/// stages, as text.
#[derive(Clone, Debug, PartialEq)]
pub enum LoadRate {
    /// Transactions per second, above 0.
    Constant(f64),
    /// Stages from the opening of the window on; after the last one the first begins anew. At
    /// least one, and something is due in one of them.
    Stages(Vec<RateStage>),
}

impl LoadRate {
    /// Creates the rate of `stages`.
    ///
    /// # Errors
    /// [`LoadRateError`]: there are none or too many, or nothing is due in any.
    pub fn staged(stages: Vec<RateStage>) -> Result<Self, LoadRateError> {
        match stages.len() {
            1..=MAX_STAGES if stages.iter().any(|stage| stage.due() > 0.0) => {
                Ok(Self::Stages(stages))
            }
            0..=MAX_STAGES => Err(LoadRateError::Nothing),
            many => Err(LoadRateError::Many(many)),
        }
    }

    /// Stages; none where the rate is the same all the time.
    pub fn stages(&self) -> Option<&[RateStage]> {
        match self {
            Self::Constant(_) => None,
            Self::Stages(stages) => Some(stages),
        }
    }

    /// Length of all stages together (seconds); none without stages.
    pub fn seconds(&self) -> Option<u64> {
        Some(self.stages()?.iter().map(|stage| u64::from(stage.seconds)).sum())
    }
}

impl fmt::Display for LoadRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(rate) => rate.fmt(f),
            Self::Stages(stages) => {
                for (n, stage) in stages.iter().enumerate() {
                    write!(f, "{}{stage}", if n > 0 { ", " } else { "" })?;
                }
                Ok(())
            }
        }
    }
}

impl FromStr for LoadRate {
    type Err = LoadRateError;
    fn from_str(text: &str) -> Result<Self, LoadRateError> {
        match text.trim().parse::<f64>() {
            Ok(rate) if rate > 0.0 && rate.is_finite() => Ok(Self::Constant(rate)),
            Ok(_) => Err(LoadRateError::Constant(text.to_owned())),
            Err(_) if !text.contains(" for ") => Err(LoadRateError::Constant(text.to_owned())),
            Err(_) => Self::staged(text.split(',').map(str::parse).collect::<Result<Vec<_>, _>>()?),
        }
    }
}

impl Serialize for LoadRate {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Constant(rate) => to.serialize_f64(*rate),
            Self::Stages(_) => to.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for LoadRate {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match LevelValue::deserialize(from)? {
            // As stored: not by way of a text, which may have fewer digits.
            LevelValue::Float(rate) => Ok(Self::Constant(rate)),
            value => value.to_string().parse().map_err(serde::de::Error::custom),
        }
    }
}

/// Error of reading a rate.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum LoadRateError {
    /// Neither a number above 0 nor stages.
    #[error(
        "`{0}` is no rate; it must be a number above 0, or stages: `500 for 60s, 2000 for 10s`"
    )]
    Constant(String),
    /// A text that is no stage.
    #[error("`{0}` is no stage of a rate; write it like `500 for 60s` or `500 to 2000 for 30s`")]
    Stage(String),
    /// A length that is not in whole seconds.
    #[error("a stage of a rate lasts {0}; it must last whole seconds")]
    Length(Span),
    /// A rate below 0 or without end.
    #[error("`{0}` is no rate of a stage; it must be 0 or more")]
    Rate(f64),
    /// No stage in which anything is due.
    #[error("nothing is due in any stage of the rate; give one a number above 0")]
    Nothing,
    /// Too many stages.
    #[error("the rate has {0} stages; {MAX_STAGES} at most can be offered")]
    Many(usize),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(text: &str) -> Result<LoadRate, LoadRateError> {
        text.parse()
    }

    #[test]
    fn a_rate_is_a_number_or_stages_and_survives_json() {
        for text in ["500", "0.1", "500 for 1m, 0 for 1s, 500 to 2000.5 for 1m 30s"] {
            let read = rate(text).unwrap();
            assert_eq!(read.to_string(), text);
            let json = serde_json::to_string(&read).unwrap();
            assert_eq!(serde_json::from_str::<LoadRate>(&json).unwrap(), read, "{json}");
        }
        // As earlier versions stored it.
        assert_eq!(serde_json::from_str::<LoadRate>("500").unwrap(), LoadRate::Constant(500.0));
        let stages = rate(" 500 for 60s,500 to 2000 for 30s").unwrap();
        let [steady, ramp] = stages.stages().unwrap() else { panic!("{stages}") };
        assert_eq!((steady.due(), ramp.due()), (30_000.0, 37_500.0));
        assert_eq!((stages.seconds(), rate("3").unwrap().seconds()), (Some(90), None));
    }

    #[test]
    fn what_is_no_rate_is_told_with_the_way_to_write_one() {
        for (text, word) in [
            ("0", "number above 0"),
            ("fast", "number above 0"),
            ("500 for 60s, 3", "like `500 for 60s`"),
            ("500 for ever", "like `500 for 60s`"),
            ("a to 5 for 60s", "like `500 for 60s`"),
            ("500 for 1500ms", "whole seconds"),
            ("500 for 0s", "whole seconds"),
            ("-1 for 10s", "0 or more"),
            ("1 to inf for 10s", "0 or more"),
            ("0 for 10s", "nothing is due"),
        ] {
            let error = rate(text).unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
