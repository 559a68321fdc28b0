//! Sums over transactions.

use serde::{Deserialize, Serialize};

/// Exact sums over transactions. Integers, so that the result does not depend on the order in which
/// threads and generators are added. In JSON the keys stand among those of the object around them,
/// with times in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sums {
    /// Transactions that ended well, whose latency is in the sums below (count).
    pub latency_count: u64,
    /// Sum of the latencies (nanoseconds).
    #[serde(rename = "latency_sum_us", with = "microseconds")]
    pub latency_sum_ns: u64,
    /// Sum of the latencies' squares (square nanoseconds).
    #[serde(rename = "latency_sum_squares_us2", with = "square_microseconds")]
    pub latency_sum_squares_ns2: u128,
    /// With a rate: sum of the times from due to sent (nanoseconds).
    #[serde(rename = "lag_sum_us", with = "microseconds")]
    pub lag_sum_ns: u64,
    /// With a rate: the longest time from due to sent (nanoseconds).
    #[serde(rename = "lag_max_us", with = "microseconds")]
    pub lag_max_ns: u64,
    /// Transactions never sent because they were due too long ago to meet the latency limit
    /// (count).
    pub skipped: u64,
    /// Transactions that ended well, but later than the latency limit (count).
    pub late: u64,
    /// Transactions that were tried more than once, whatever became of them (count).
    pub retried: u64,
    /// Tries after a transaction's first (count).
    pub retries: u64,
    /// Failed transactions whose last error was a serialization failure (count).
    pub serialization_failures: u64,
    /// Failed transactions whose last error was a deadlock (count).
    pub deadlock_failures: u64,
    /// Failed transactions of other errors, those of clients that gave up among them (count).
    pub other_failures: u64,
}

impl Sums {
    /// Adds a transaction that ended well, `latency` and `lag` in nanoseconds.
    #[inline]
    pub fn add(&mut self, latency: u64, lag: u64) {
        self.latency_count += 1;
        self.latency_sum_ns += latency;
        self.latency_sum_squares_ns2 += u128::from(latency) * u128::from(latency);
        self.lag_sum_ns += lag;
        self.lag_max_ns = self.lag_max_ns.max(lag);
    }

    /// Adds the tries after a transaction's first.
    #[inline]
    pub fn tried(&mut self, retries: u32) {
        self.retried += u64::from(retries > 0);
        self.retries += u64::from(retries);
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.latency_count += other.latency_count;
        self.latency_sum_ns += other.latency_sum_ns;
        self.latency_sum_squares_ns2 += other.latency_sum_squares_ns2;
        self.lag_sum_ns += other.lag_sum_ns;
        self.lag_max_ns = self.lag_max_ns.max(other.lag_max_ns);
        self.skipped += other.skipped;
        self.late += other.late;
        self.retried += other.retried;
        self.retries += other.retries;
        self.serialization_failures += other.serialization_failures;
        self.deadlock_failures += other.deadlock_failures;
        self.other_failures += other.other_failures;
    }

    /// Returns the mean latency (microseconds); none without transactions.
    pub fn mean_us(&self) -> Option<f64> {
        self.mean(self.latency_sum_ns as f64 / 1e3)
    }

    /// Returns the standard deviation of the latencies (microseconds); none without transactions.
    pub fn stddev_us(&self) -> Option<f64> {
        let mean = self.mean_us()?;
        let squares = self.mean(self.latency_sum_squares_ns2 as f64 / 1e6)?;
        Some((squares - mean * mean).max(0.0).sqrt())
    }

    /// Returns the mean time from due to sent (microseconds); none without transactions.
    pub fn mean_lag_us(&self) -> Option<f64> {
        self.mean(self.lag_sum_ns as f64 / 1e3)
    }

    fn mean(&self, sum: f64) -> Option<f64> {
        (self.latency_count > 0).then(|| sum / self.latency_count as f64)
    }
}

/// Stores nanoseconds as microseconds.
mod microseconds {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(ns: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(*ns as f64 / 1e3)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        f64::deserialize(from).map(|us| (us * 1e3).round() as u64)
    }
}

/// Stores square nanoseconds as square microseconds.
mod square_microseconds {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(ns2: &u128, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(*ns2 as f64 / 1e6)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u128, D::Error> {
        f64::deserialize(from).map(|us2| (us2 * 1e6).round() as u128)
    }
}
