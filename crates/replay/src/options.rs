//! Options of a replay.

use std::str::FromStr;
use std::time::Duration;

/// Speed of a replay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Speed {
    /// Times as fast as the log.
    Factor(f64),
    /// As fast as the server takes it: sessions keep their order, and nothing waits to be due.
    Max,
}

/// A text is no speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a speed is a number above 0, such as 2 or 0.5, or `max`")]
pub struct SpeedError;

impl FromStr for Speed {
    type Err = SpeedError;

    fn from_str(text: &str) -> Result<Self, SpeedError> {
        if text == "max" {
            return Ok(Self::Max);
        }
        let factor: f64 = text.parse().map_err(|_| SpeedError)?;
        let is_usable = (1e-6..=1e6).contains(&factor);
        is_usable.then_some(Self::Factor(factor)).ok_or(SpeedError)
    }
}

impl Speed {
    /// Returns the time of the replay for a time of the log (nanoseconds, from microseconds).
    pub(crate) fn scale(self, us: u64) -> u64 {
        match self {
            // Most logs are replayed as they are, to the microsecond.
            Self::Factor(1.0) => us.saturating_mul(1_000),
            Self::Factor(factor) => (us as f64 * 1e3 / factor) as u64,
            Self::Max => 0,
        }
    }
}

/// How a recording is replayed.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayOptions {
    /// Speed.
    pub speed: Speed,
    /// Database for all sessions; by default each goes to that of its name in the log.
    pub database: Option<String>,
    /// Sessions at one time at most; by default what the server has room for, or with
    /// [`Speed::Max`] as many as in the log.
    pub max_connections: Option<usize>,
    /// Time after which a statement is cancelled; a longer duration in the log is added.
    pub statement_timeout: Duration,
    /// Time after which the replay ends, if it has not ended before.
    pub max_duration: Option<Duration>,
}

impl Default for ReplayOptions {
    fn default() -> Self {
        Self {
            speed: Speed::Factor(1.0),
            database: None,
            max_connections: None,
            statement_timeout: Duration::from_secs(300),
            max_duration: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_divides_the_times_of_the_log() {
        let scaled = |text: &str| text.parse::<Speed>().map(|speed| speed.scale(1_000_000));
        assert_eq!(scaled("1"), Ok(1_000_000_000));
        assert_eq!(scaled("2"), Ok(500_000_000));
        assert_eq!(scaled("0.5"), Ok(2_000_000_000));
        assert_eq!(scaled("max"), Ok(0));
        for wrong in ["0", "-1", "fast", "inf", "NaN", "1e9", ""] {
            assert_eq!(scaled(wrong), Err(SpeedError), "{wrong}");
        }
    }
}
