//! Latency distributions: HDR histograms in nanoseconds.

use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};

/// Longest latency that a histogram resolves (one hour); longer ones are recorded as this.
pub const LONGEST: Duration = Duration::from_secs(3600);
/// Shortest latency that a histogram resolves (nanoseconds).
const LOWEST: u64 = 128;
/// Significant digits.
const DIGITS: u8 = 3;

/// A distribution of latencies in nanoseconds, to three significant digits, from 128 ns to
/// [`LONGEST`].
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
    /// Creates an empty distribution, with memory for all of its buckets.
    pub fn new() -> Self {
        match Histogram::new_with_bounds(LOWEST, longest(), DIGITS) {
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
    #[inline]
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

    /// Latencies recorded (count).
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The latency in microseconds at or below which a share of `quantile` (0 to 1) lies; `None`
    /// when empty.
    pub fn quantile_us(&self, quantile: f64) -> Option<f64> {
        (!self.0.is_empty()).then(|| micros(self.0.value_at_quantile(quantile)))
    }

    /// The longest latency in microseconds; `None` when empty.
    pub fn max_us(&self) -> Option<f64> {
        (!self.0.is_empty()).then(|| micros(self.0.max()))
    }

    /// The mean in microseconds, to the histogram's three digits; `None` when empty.
    pub fn mean_us(&self) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.mean() / 1000.0)
    }

    /// The standard deviation in microseconds, of all recorded latencies (divided by n), to the
    /// histogram's three digits; `None` when empty.
    pub fn stddev_us(&self) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.stdev() / 1000.0)
    }

    /// The histogram itself, in nanoseconds.
    pub fn as_histogram(&self) -> &Histogram<u64> {
        &self.0
    }

    /// Iterates over latencies in nanoseconds, by size, and how many there are of each. Latencies
    /// that the histogram does not tell apart are one: their middle.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let middle = |value| self.0.median_equivalent(value);
        self.0.iter_recorded().map(move |v| (middle(v.value_iterated_to()), v.count_at_value()))
    }

    /// `HdrHistogram`'s V2 encoding, as the store keeps it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // Writing to memory fails only for a count past i64::MAX, which no run reaches.
        let written = V2Serializer::new().serialize(&self.0, &mut bytes);
        debug_assert!(written.is_ok());
        bytes
    }

    /// Reads what [`Latencies::to_bytes`] wrote of a distribution with the same bounds.
    ///
    /// # Errors
    /// [`HistogramError`]: the bytes are no V2 histogram, or its bounds are others.
    pub fn from_equal_bytes(mut bytes: &[u8]) -> Result<Self, HistogramError> {
        let read: Histogram<u64> =
            Deserializer::new().deserialize(&mut bytes).map_err(HistogramError::NotV2)?;
        let found = (read.low(), read.high(), read.sigfig());
        if found != (LOWEST, longest(), DIGITS) {
            return Err(HistogramError::UnequalBounds(found.0, found.1, found.2));
        }
        Ok(Self(read))
    }

    /// Whether a latency was recorded that is [`LONGEST`] or longer, so that its length is unknown.
    pub fn is_saturated(&self) -> bool {
        self.0.max() >= longest()
    }

    /// Reads what [`Latencies::to_bytes`] wrote.
    ///
    /// # Errors
    /// [`HistogramError`]: the bytes are no V2 histogram, or its bounds are not those of pgdyno.
    pub fn from_bytes(mut bytes: &[u8]) -> Result<Self, HistogramError> {
        let read: Histogram<u64> =
            Deserializer::new().deserialize(&mut bytes).map_err(HistogramError::NotV2)?;
        let mut ours = Self::new();
        ours.0.add(&read).map_err(HistogramError::OtherBounds)?;
        Ok(ours)
    }
}

/// Error of reading a stored histogram.
#[derive(Debug, thiserror::Error)]
pub enum HistogramError {
    /// The bytes are not a histogram in `HdrHistogram`'s V2 encoding.
    #[error("not a V2 HDR histogram: {0:?}")]
    NotV2(hdrhistogram::serialization::DeserializeError),
    /// The histogram holds values beyond the bounds of [`Latencies`].
    #[error("a histogram of other bounds: {0:?}")]
    OtherBounds(hdrhistogram::AdditionError),
    /// The histogram has other bounds than [`Latencies`].
    #[error("a histogram from {0} to {1} ns with {2} digits")]
    UnequalBounds(u64, u64, u8),
}

/// Width of a bucket in the lowest octave, in powers of two of nanoseconds.
const UNIT: u32 = LOWEST.ilog2();
/// Buckets of an octave, in powers of two: enough for three digits.
const OCTAVE: u32 = 10;

/// Counts of latencies by bucket, with the buckets of [`Latencies`] and counts of half the size.
///
/// A histogram's counts are rarely in a processor's caches when load shares it with servers. Less
/// memory to touch, and few instructions between one count and the next, make recording cheap.
#[derive(Clone, Debug)]
pub struct LatencyCounts {
    counts: Box<[u32]>,
    /// Longest latency, with all its digits (nanoseconds).
    longest: u64,
    /// Latencies beyond the room of `counts`.
    beyond: Option<Latencies>,
}

impl Default for LatencyCounts {
    fn default() -> Self {
        Self::new()
    }
}

impl LatencyCounts {
    /// Creates an empty distribution, with memory for all of its buckets.
    pub fn new() -> Self {
        let buckets = bucket_of(longest()) + 1;
        Self { counts: vec![0; buckets].into(), longest: 0, beyond: None }
    }

    /// Counts one latency of `nanoseconds`.
    #[inline]
    pub fn record(&mut self, nanoseconds: u64) {
        let nanoseconds = nanoseconds.min(longest());
        self.longest = self.longest.max(nanoseconds);
        let count = &mut self.counts[bucket_of(nanoseconds)];
        match count.checked_add(1) {
            Some(more) => *count = more,
            None => self.beyond.get_or_insert_default().record(nanoseconds),
        }
    }

    /// Adds all counts to `sum` and resets them.
    pub fn drain_into(&mut self, sum: &mut Latencies) {
        if let Some(beyond) = self.beyond.take() {
            sum.merge(&beyond);
        }
        let last = bucket_of(self.longest);
        for (bucket, count) in
            self.counts[..=last].iter_mut().enumerate().filter(|(_, count)| **count > 0)
        {
            let mut count = u64::from(std::mem::take(count));
            if bucket == last {
                sum.record(self.longest);
                count -= 1;
            }
            if count > 0 {
                sum.record_many(lowest_in(bucket), count);
            }
        }
        self.longest = 0;
    }
}

/// Returns the bucket of `nanoseconds`. Buckets of the two lowest octaves are one unit wide; each
/// further octave doubles the width.
#[inline]
fn bucket_of(nanoseconds: u64) -> usize {
    let octave = ((nanoseconds >> (UNIT + OCTAVE)) | 1).ilog2();
    (octave as usize) * (1 << OCTAVE) + (nanoseconds >> (UNIT + octave)) as usize
}

/// Returns the least latency of `bucket` (nanoseconds).
fn lowest_in(bucket: usize) -> u64 {
    let octave = (bucket >> OCTAVE).saturating_sub(1);
    ((bucket - (octave << OCTAVE)) as u64) << (UNIT as usize + octave)
}

const fn longest() -> u64 {
    LONGEST.as_nanos() as u64
}

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

    #[test]
    fn the_standard_deviation_is_that_of_all_latencies() {
        let mut latencies = Latencies::new();
        assert_eq!(latencies.stddev_us(), None);
        for us in [2, 4, 4, 4, 5, 5, 7, 9] {
            latencies.record(us * 1000);
        }
        // Mean 5, variance 4; the histogram keeps three digits.
        let stddev = latencies.stddev_us().unwrap();
        assert!((stddev - 2.0).abs() < 0.01, "{stddev}");
    }

    #[test]
    fn counts_come_to_what_a_histogram_would_have_recorded() {
        let longest = longest();
        let mut values: Vec<u64> = (0..3_000).map(|n| n * 100).collect();
        for power in 0..42 {
            values.extend(
                [(1 << power) - 1, 1 << power, (1 << power) + 1, 3 << power]
                    .map(|n: u64| n.min(longest)),
            );
        }
        let mut random = 1_u64;
        for _ in 0..20_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            values.push((random >> 22 >> (random & 31)).min(longest));
        }
        let (mut counts, mut whole, mut drained) =
            (LatencyCounts::new(), Latencies::new(), Latencies::new());
        for (n, value) in values.iter().enumerate() {
            assert!(whole.0.equivalent(*value, lowest_in(bucket_of(*value))), "{value}");
            counts.record(*value);
            whole.record(*value);
            if n % 7_000 == 0 {
                counts.drain_into(&mut drained);
            }
        }
        counts.drain_into(&mut drained);
        assert_eq!(drained.count(), values.len() as u64);
        assert_eq!(drained.max_us(), whole.max_us());
        assert_eq!(drained.to_bytes(), whole.to_bytes());
        // Nothing is left, and what is beyond all bounds is the longest.
        counts.drain_into(&mut drained);
        assert_eq!(drained.count(), whole.count());
        counts.record(u64::MAX);
        counts.counts[bucket_of(longest)] = u32::MAX;
        counts.record(u64::MAX);
        let mut many = Latencies::new();
        counts.drain_into(&mut many);
        assert_eq!(many.count(), u64::from(u32::MAX) + 1);
        let mut one = Latencies::new();
        one.record(u64::MAX);
        assert_eq!(many.max_us(), one.max_us());
    }
}
