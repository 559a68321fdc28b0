//! Latency distributions: HDR histograms in nanoseconds.

use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};

/// The longest latency a histogram tells apart (one hour); longer ones are recorded as this.
pub const LONGEST: Duration = Duration::from_secs(3600);

/// A distribution of latencies in nanoseconds, to three significant digits, from 128 ns to [`LONGEST`].
///
/// Recording neither allocates nor locks.
#[derive(Clone, PartialEq)]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Latencies(n={}, p50={} ns, max={} ns)",
            self.count(),
            self.0.value_at_quantile(0.5),
            self.0.max()
        )
    }
}

impl Latencies {
    /// An empty distribution, allocated whole.
    #[must_use]
    pub fn new() -> Self {
        let longest = u64::try_from(LONGEST.as_nanos()).unwrap_or(u64::MAX);
        match Histogram::new_with_bounds(128, longest, 3) {
            Ok(h) => Self(h),
            Err(e) => unreachable!("fixed bounds are valid: {e}"),
        }
    }

    /// Counts one latency of `nanoseconds`.
    #[inline]
    pub fn record(&mut self, nanoseconds: u64) {
        self.0.saturating_record(nanoseconds);
    }

    /// Counts `count` latencies of `nanoseconds` each.
    pub fn record_many(&mut self, nanoseconds: u64, count: u64) {
        self.0.saturating_record_n(nanoseconds, count);
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Self) {
        // Both sides have the same bounds, so that no value of `other` can be out of range.
        let added = self.0.add(&other.0);
        debug_assert!(added.is_ok());
    }

    /// Takes all of `other` away, which must have been counted here before.
    pub fn take_away(&mut self, other: &Self) {
        let taken = self.0.subtract(&other.0);
        debug_assert!(taken.is_ok(), "it was not counted here");
    }

    /// Forgets what was recorded, keeping the memory.
    pub fn clear(&mut self) {
        self.0.reset();
    }

    /// Latencies recorded (count).
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The latency in microseconds at or below which a share of `quantile` (0 to 1) lies; `None` when empty.
    #[must_use]
    pub fn quantile_us(&self, quantile: f64) -> Option<f64> {
        (!self.0.is_empty()).then(|| micros(self.0.value_at_quantile(quantile)))
    }

    /// The longest latency in microseconds; `None` when empty.
    #[must_use]
    pub fn max_us(&self) -> Option<f64> {
        (!self.0.is_empty()).then(|| micros(self.0.max()))
    }

    /// The mean in microseconds, to the histogram's three digits; `None` when empty.
    #[must_use]
    pub fn mean_us(&self) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.mean() / 1000.0)
    }

    /// `HdrHistogram`'s V2 encoding, as the store keeps it.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // Writing to memory fails only for a count past i64::MAX, which no run reaches.
        let written = V2Serializer::new().serialize(&self.0, &mut bytes);
        debug_assert!(written.is_ok());
        bytes
    }

    /// Reads what [`Latencies::to_bytes`] wrote.
    ///
    /// # Errors
    /// The bytes are not a V2 histogram, or one of other bounds than ours.
    pub fn from_bytes(mut bytes: &[u8]) -> Result<Self, String> {
        let read: Histogram<u64> = Deserializer::new()
            .deserialize(&mut bytes)
            .map_err(|e| format!("not a V2 HDR histogram: {e:?}"))?;
        let mut ours = Self::new();
        ours.0.add(&read).map_err(|e| format!("a histogram of other bounds: {e:?}"))?;
        Ok(ours)
    }
}

#[allow(clippy::cast_precision_loss)]
fn micros(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_survives_storage_and_merging() {
        let mut a = Latencies::new();
        for ns in [0, 100, 1_000, 1_000_000, u64::MAX] {
            a.record(ns);
        }
        let mut b = Latencies::from_bytes(&a.to_bytes()).unwrap();
        assert_eq!(a, b);
        b.merge(&a);
        assert_eq!(b.count(), 10);
        assert!(b.max_us().unwrap() >= 3.6e9);
        assert!(Latencies::from_bytes(b"nonsense").is_err());
        assert_eq!(Latencies::new().quantile_us(0.5), None);
    }
}
