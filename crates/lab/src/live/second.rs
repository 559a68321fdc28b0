//! Turns a second of load into the record that watchers read.

use std::time::Duration;

use pgdyno_engine::{LiveSecond, Phase};
use pgdyno_model::SecondLatencies;
use pgdyno_model::live::LoadSecond;

/// Returns the record of the second `live`, with the first [`LoadSecond::WAITS`] of `waits`, and
/// the expected time `left` until the run ends.
pub fn load_second(live: &LiveSecond, mut waits: Vec<(String, f64)>, left: Duration) -> LoadSecond {
    waits.truncate(LoadSecond::WAITS);
    LoadSecond {
        elapsed_s: live.elapsed.as_secs_f64(),
        measuring: live.phase != Phase::WarmUp,
        tps: live.tps,
        failed: live.failed,
        latency_us_p50: live.latency_us_p50,
        latency_us_p99: live.latency_us_p99,
        latencies: live.latency.as_ref().map_or_else(Vec::new, |latencies| {
            SecondLatencies::from(latencies).rebinned(LoadSecond::BUCKETS_PER_OCTAVE)
        }),
        event_loop_lag_us_p99: live.event_loop_lag_us_p99,
        waits,
        left_s: left.as_secs_f64(),
    }
}
