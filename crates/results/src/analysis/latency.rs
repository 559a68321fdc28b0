//! Views of latency distributions.

use pgdyno_model::Latencies;
use pgdyno_model::measurement::StatementMeasurement;
use pgdyno_model::record::FsyncRate;

use super::view::{FsyncView, LatencyView, StatementView};

pub(super) fn fsync_view(rate: &FsyncRate) -> FsyncView {
    let per_second = rate.per_second();
    FsyncView {
        storage: rate.storage.clone(),
        method: rate.method.clone(),
        block_bytes: rate.block_bytes,
        flushes: rate.flushes,
        seconds: rate.seconds,
        per_second: (per_second > 0.0).then_some(per_second),
        latency_us: latency_view(&rate.latency),
        measured_at: rate.measured_at,
    }
}

pub(super) fn latency_view(latencies: &Latencies) -> Option<LatencyView> {
    let quantile = |q| latencies.quantile_us(q);
    Some(LatencyView {
        count: latencies.count(),
        mean: latencies.mean_us()?,
        p50: quantile(0.5)?,
        p90: quantile(0.9)?,
        p95: quantile(0.95)?,
        p99: quantile(0.99)?,
        p99_9: quantile(0.999)?,
        p99_99: quantile(0.9999)?,
        max: latencies.max_us()?,
    })
}

pub(super) fn statement_view(script: &str, statement: &StatementMeasurement) -> StatementView {
    StatementView {
        script: script.to_owned(),
        line: statement.line,
        text: statement.text.clone(),
        failed: statement.failed,
        latency_us: latency_view(&statement.latency),
        first_byte_us: latency_view(&statement.first_byte),
    }
}
