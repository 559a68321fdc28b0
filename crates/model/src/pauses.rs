//! Pauses of a client around the transactions of a script.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::units::Span;

/// Pauses of a client around the transactions of a script, as at a terminal (TPC Benchmark C 5.11,
/// clause 5.2.5). They are no latency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pauses {
    /// Time before each of the script's transactions, in which somebody keys it in.
    pub keying_time: Span,
    /// Mean time after each of them, in which somebody thinks. Each is drawn from an exponential
    /// distribution that is cut at ten times the mean.
    pub think_time: Span,
}

impl Pauses {
    /// Greatest number that may multiply pauses.
    pub const MOST_TIMES: f64 = 1000.0;

    /// Whether pauses may be `factor` times as long.
    pub fn is_factor(factor: f64) -> bool {
        (0.0..=Self::MOST_TIMES).contains(&factor)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.keying_time.0.is_zero() && self.think_time.0.is_zero()
    }

    /// Returns the pauses `factor` times as long.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self {
            keying_time: self.keying_time.times(factor),
            think_time: self.think_time.times(factor),
        }
    }
}

impl fmt::Display for Pauses {
    /// `keying time 18s, think time 12s`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { keying_time, think_time } = self;
        write!(f, "keying time {keying_time}, think time {think_time}")
    }
}
