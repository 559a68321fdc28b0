//! Latencies over time: counts for a heat map, and percentiles of buckets of several seconds.

use pgdyno_model::SecondLatencies;
use serde::Serialize;

use pgdyno_analysis::SecondView;

/// Latency buckets of an octave in a page: each is 4.4% wide.
const PER_OCTAVE: u16 = 16;

/// Counts of latencies by bucket of time and of latency. Latency bucket `k` begins at `base_us` ·
/// 2^(k/`per_octave`) microseconds.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct Heat {
    base_us: f64,
    per_octave: u16,
    /// Time bucket, latency bucket, count; again and again.
    rows: Vec<u64>,
}

/// Returns the latencies of each bucket of seconds; none for a bucket with a second of which they
/// are not stored.
pub(super) fn merged(buckets: &[Vec<&SecondView>]) -> Vec<Option<SecondLatencies>> {
    let merge = |bucket: &Vec<&SecondView>| {
        let mut all = SecondLatencies::default();
        for second in bucket.iter().map(|s| &s.second) {
            match &second.latencies {
                Some(latencies) => all.merge(latencies),
                None if second.latency_us_p50.is_some() => return None,
                None => {}
            }
        }
        Some(all)
    };
    buckets.iter().map(merge).collect()
}

impl Heat {
    /// Returns the counts; none where no second has them.
    pub(super) fn new(merged: &[Option<SecondLatencies>]) -> Option<Self> {
        let mut rows = Vec::new();
        for (time, latencies) in (0_u64..).zip(merged) {
            for (bucket, count) in latencies.iter().flat_map(|all| all.rebinned(PER_OCTAVE)) {
                rows.extend([time, u64::from(bucket), count]);
            }
        }
        let heat = Self { base_us: SecondLatencies::BASE_US, per_octave: PER_OCTAVE, rows };
        (!heat.rows.is_empty()).then_some(heat)
    }
}
