//! The latency distribution of one second, small enough to keep one for every second of a trial.
//!
//! [`Latencies`] has 16,000 counts, most of them 0. A [`SecondLatencies`] keeps those that are not,
//! in buckets of equal ratio: 64 an octave, each 1.1 % wide. Make it of a second's [`Latencies`]
//! when the second is over, [`SecondLatencies::merge`] seconds to have an interval, and ask
//! [`SecondLatencies::quantile_us`].

use crate::Latencies;
use crate::latency::LONGEST;

/// Version of the encoding: the first byte.
const VERSION: u8 = 1;
/// Bits of a byte of the encoding that hold a number; the upper one says that more follow.
const NUMBER_BITS: u32 = 7;

/// Latencies of one second, or of several: counts by bucket, without those that are 0.
///
/// Bucket `k` holds latencies from [`BASE_US`](Self::BASE_US) · 2^(k/64) µs to below
/// [`BASE_US`](Self::BASE_US) · 2^((k+1)/64) µs. The first one also holds what is shorter, the
/// last one what is longer.
///
/// ```
/// use pgdyno_model::{Latencies, SecondLatencies};
///
/// let mut latencies = Latencies::new();
/// latencies.record_many(2_000_000, 3); // 2 ms, in nanoseconds
/// let second = SecondLatencies::from(&latencies);
/// assert_eq!(second.count(), 3);
/// assert_eq!(SecondLatencies::from_bytes(&second.to_bytes()).unwrap(), second);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecondLatencies {
    /// Bucket and count, by bucket; no count is 0.
    counts: Vec<(u16, u64)>,
}

impl SecondLatencies {
    /// Lower end of bucket 0 (microseconds).
    pub const BASE_US: f64 = 1.0;
    /// Buckets of an octave (count).
    pub const PER_OCTAVE: u16 = 64;

    /// Whether there is no latency.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Latencies (count).
    pub fn count(&self) -> u64 {
        self.counts.iter().map(|(_, count)| count).sum()
    }

    /// Iterates over buckets and their counts, by bucket; a count is never 0.
    pub fn iter(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        self.counts.iter().copied()
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Self) {
        let mut merged = Vec::with_capacity(self.counts.len().max(other.counts.len()));
        let mut ours = std::mem::take(&mut self.counts).into_iter().peekable();
        let mut theirs = other.iter().peekable();
        while let Some(&(bucket, _)) = ours.peek().into_iter().chain(theirs.peek()).min() {
            let ours = ours.next_if(|(b, _)| *b == bucket).map_or(0, |(_, count)| count);
            let theirs = theirs.next_if(|(b, _)| *b == bucket).map_or(0, |(_, count)| count);
            merged.push((bucket, ours.saturating_add(theirs)));
        }
        self.counts = merged;
    }

    /// Returns the latency in microseconds at or below which a share of `quantile` (0 to 1) lies:
    /// the middle of its bucket, by ratio. `None` when empty.
    pub fn quantile_us(&self, quantile: f64) -> Option<f64> {
        let wanted = ((quantile.clamp(0.0, 1.0) * self.count() as f64).ceil() as u64).max(1);
        let mut below: u64 = 0;
        let (bucket, _) = self.iter().find(|(_, count)| {
            below = below.saturating_add(*count);
            below >= wanted
        })?;
        Some(Self::BASE_US * ((f64::from(bucket) + 0.5) / f64::from(Self::PER_OCTAVE)).exp2())
    }

    /// Returns counts by wider buckets, `per_octave` an octave: bucket `k` begins at
    /// [`BASE_US`](Self::BASE_US) · 2^(k/`per_octave`) µs. Exact where `per_octave` divides 64;
    /// else a count goes to the bucket that holds its lower end.
    pub fn rebinned(&self, per_octave: u16) -> Vec<(u16, u64)> {
        let per_octave = u32::from(per_octave.min(Self::PER_OCTAVE));
        let mut wider: Vec<(u16, u64)> = Vec::new();
        for (bucket, count) in self.iter() {
            let bucket = (u32::from(bucket) * per_octave / u32::from(Self::PER_OCTAVE)) as u16;
            match wider.last_mut() {
                Some((last, sum)) if *last == bucket => *sum = sum.saturating_add(count),
                _ => wider.push((bucket, count)),
            }
        }
        wider
    }

    /// Encodes the counts: a version, then for each bucket its distance from the one before and its
    /// count, both as LEB128 numbers.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        let mut next = 0;
        for (bucket, count) in self.iter() {
            push_number(&mut bytes, u64::from(bucket - next));
            push_number(&mut bytes, count);
            next = bucket + 1;
        }
        bytes
    }

    /// Reads what [`SecondLatencies::to_bytes`] wrote.
    ///
    /// # Errors
    /// [`SecondLatenciesError`]; memory is taken only for buckets that there can be.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SecondLatenciesError> {
        let (version, mut rest) = bytes.split_first().ok_or(SecondLatenciesError::Truncated)?;
        if *version != VERSION {
            return Err(SecondLatenciesError::Version(*version));
        }
        let (last, mut next, mut sum) = (u64::from(last_bucket()), 0_u64, 0_u64);
        let mut counts = Vec::new();
        while !rest.is_empty() {
            let bucket = next.saturating_add(take_number(&mut rest)?);
            let count = take_number(&mut rest)?;
            let fits = u16::try_from(bucket).ok().filter(|_| bucket <= last);
            let bucket = fits.ok_or(SecondLatenciesError::Bucket(bucket))?;
            sum = sum
                .checked_add(count)
                .filter(|_| count > 0)
                .ok_or(SecondLatenciesError::Count { bucket, count })?;
            counts.push((bucket, count));
            next = u64::from(bucket) + 1;
        }
        Ok(Self { counts })
    }
}

impl From<&Latencies> for SecondLatencies {
    fn from(latencies: &Latencies) -> Self {
        let mut counts: Vec<(u16, u64)> = Vec::new();
        for (nanoseconds, count) in latencies.iter() {
            let bucket = bucket_of(nanoseconds);
            match counts.last_mut() {
                Some((last, sum)) if *last == bucket => *sum += count,
                _ => counts.push((bucket, count)),
            }
        }
        Self { counts }
    }
}

/// Error of reading an encoded [`SecondLatencies`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum SecondLatenciesError {
    /// The bytes end too early.
    #[error("the latencies of a second end too early")]
    Truncated,
    /// Another version wrote the bytes.
    #[error("latencies of a second in encoding {0}; {VERSION} is known")]
    Version(u8),
    /// A number of more than 64 bits, or written longer than needed.
    #[error("the latencies of a second hold a malformed number")]
    Number,
    /// There is no such bucket.
    #[error("the latencies of a second name bucket {0}, and there is none")]
    Bucket(u64),
    /// A count of 0, or counts whose sum is beyond 64 bits.
    #[error("the latencies of a second hold a count of {count} in bucket {bucket}")]
    Count { bucket: u16, count: u64 },
}

/// The bucket of a latency in nanoseconds.
fn bucket_of(nanoseconds: u64) -> u16 {
    let nanoseconds = nanoseconds.min(LONGEST.as_nanos() as u64) as f64;
    let octaves = (nanoseconds / (1000.0 * SecondLatencies::BASE_US)).log2();
    // A cast saturates: what is shorter than the base goes to bucket 0.
    (octaves * f64::from(SecondLatencies::PER_OCTAVE)) as u16
}

/// The bucket of the longest latency.
fn last_bucket() -> u16 {
    bucket_of(u64::MAX)
}

fn push_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 1 << NUMBER_BITS {
        bytes.push(number as u8 | 1 << NUMBER_BITS);
        number >>= NUMBER_BITS;
    }
    bytes.push(number as u8);
}

fn take_number(rest: &mut &[u8]) -> Result<u64, SecondLatenciesError> {
    let mut number = 0_u64;
    for shift in (0..u64::BITS).step_by(NUMBER_BITS as usize) {
        let (byte, after) = rest.split_first().ok_or(SecondLatenciesError::Truncated)?;
        *rest = after;
        let bits = u64::from(byte & !(1 << NUMBER_BITS));
        if (bits << shift) >> shift != bits || (bits == 0 && shift > 0 && *byte == 0) {
            return Err(SecondLatenciesError::Number);
        }
        number |= bits << shift;
        if *byte == bits as u8 {
            return Ok(number);
        }
    }
    Err(SecondLatenciesError::Number)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn latencies(microseconds: &[(f64, u64)]) -> Latencies {
        let mut all = Latencies::new();
        for (us, count) in microseconds {
            all.record_many((us * 1000.0) as u64, *count);
        }
        all
    }

    #[test]
    fn a_bucket_spans_a_64th_of_an_octave_and_the_ends_hold_what_is_beyond() {
        assert_eq!([0, 200, 1_000, 1_010, 1_011].map(bucket_of), [0, 0, 0, 0, 1]);
        assert_eq!([1_999, 2_000, 1_024_000].map(bucket_of), [63, 64, 640]);
        assert_eq!([last_bucket(), bucket_of(3_600_000_000_000)], [2031; 2]);
        let beyond = SecondLatencies::from(&latencies(&[(0.1, 1), (1e12, 2)]));
        assert_eq!(beyond.counts, [(0, 1), (2031, 2)]);
    }

    #[test]
    fn quantiles_are_within_a_bucket_of_those_of_the_whole_distribution() {
        let whole = latencies(
            &(1..=5000_u32).map(|n| (f64::from(n) * 7.3, u64::from(n % 5))).collect::<Vec<_>>(),
        );
        let second = SecondLatencies::from(&whole);
        assert_eq!(second.count(), whole.count());
        for quantile in [0.0, 0.01, 0.5, 0.95, 0.99, 0.999, 1.0] {
            let (exact, found) =
                (whole.quantile_us(quantile).unwrap(), second.quantile_us(quantile).unwrap());
            assert!((found / exact - 1.0).abs() < 0.012, "{quantile}: {found} for {exact}");
        }
        assert_eq!(SecondLatencies::default().quantile_us(0.5), None);
    }

    #[test]
    fn merged_seconds_are_the_seconds_of_merged_latencies() {
        let (a, b) =
            (latencies(&[(3.0, 2), (400.0, 1)]), latencies(&[(3.0, 5), (9.0, 1), (1e6, 4)]));
        let mut both = a.clone();
        both.merge(&b);
        let mut merged = SecondLatencies::from(&a);
        merged.merge(&SecondLatencies::from(&b));
        assert_eq!(merged, SecondLatencies::from(&both));
        merged.merge(&SecondLatencies::default());
        assert_eq!(merged, SecondLatencies::from(&both));
    }

    #[test]
    fn wider_buckets_keep_every_count() {
        let second = SecondLatencies { counts: vec![(0, 1), (3, 2), (4, 4), (130, 8), (2031, 16)] };
        assert_eq!(second.rebinned(16), [(0, 3), (1, 4), (32, 8), (507, 16)]);
        assert_eq!(second.rebinned(1), [(0, 7), (2, 8), (31, 16)]);
        assert_eq!(second.rebinned(64), second.counts);
    }

    #[test]
    fn bytes_that_were_not_written_by_it_are_refused() {
        use SecondLatenciesError as Error;
        let read = SecondLatencies::from_bytes;
        assert_eq!(read(&[VERSION]), Ok(SecondLatencies::default()));
        assert_eq!(read(&[]), Err(Error::Truncated));
        assert_eq!(read(&[9, 1, 1]), Err(Error::Version(9)));
        assert_eq!(read(&[VERSION, 5]), Err(Error::Truncated));
        assert_eq!(read(&[VERSION, 0x85]), Err(Error::Truncated));
        assert_eq!(read(&[VERSION, 5, 0]), Err(Error::Count { bucket: 5, count: 0 }));
        assert_eq!(read(&[VERSION, 0x85, 0, 1]), Err(Error::Number), "5 in two bytes");
        let most = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        let beyond = [&[VERSION, 0][..], &most, &[2]].concat();
        assert_eq!(read(&beyond), Err(Error::Number), "65 bits");
        let last = [&[VERSION, 0][..], &most, &[1]].concat();
        assert_eq!(read(&last).unwrap().count(), u64::MAX);
        let sum = [&last[..], &[0, 1]].concat();
        assert_eq!(read(&sum), Err(Error::Count { bucket: 1, count: 1 }), "a sum beyond 64 bits");
        let far = [&[VERSION][..], &most, &[1, 1]].concat();
        assert_eq!(read(&far), Err(Error::Bucket(u64::MAX)));
        let mut after_last = vec![VERSION];
        push_number(&mut after_last, u64::from(last_bucket()) + 1);
        after_last.push(1);
        assert_eq!(read(&after_last), Err(Error::Bucket(2032)));
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(
            values in prop::collection::vec((0_u64..4_000_000_000_000, 1_u64..100_000), 0..200)
        ) {
            let mut all = Latencies::new();
            values.iter().for_each(|(ns, count)| all.record_many(*ns, *count));
            let second = SecondLatencies::from(&all);
            prop_assert_eq!(SecondLatencies::from_bytes(&second.to_bytes()), Ok(second));
        }

        #[test]
        fn bytes_that_read_are_those_that_are_written(
            bytes in prop::collection::vec(any::<u8>(), 0..64)
        ) {
            let bytes = [vec![VERSION], bytes].concat();
            if let Ok(read) = SecondLatencies::from_bytes(&bytes) {
                prop_assert_eq!(read.to_bytes(), bytes);
            }
        }
    }
}
