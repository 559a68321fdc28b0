//! Main memory, and pages that wait for write-back, from `/proc/meminfo`.

use std::path::Path;

use pgdyno_facts::kilobytes;
use pgdyno_model::telemetry::Kind;

use super::probe::{EACH_SAMPLE, ProbeResult, column, fixed_columns, float, read};

const FIELDS: &[&str] = &[
    "Dirty",
    "Writeback",
    "MemFree",
    "MemAvailable",
    "Cached",
    "AnonPages",
    "Shmem",
    "Slab",
    "SwapFree",
];

pub(super) fn make(_: Option<&Path>) -> ProbeResult {
    let columns = FIELDS.iter().map(|f| column(*f, "bytes", Kind::Gauge)).collect();
    Ok(fixed_columns(EACH_SAMPLE, columns, || {
        let text = read("/proc/meminfo")?;
        Ok(FIELDS.iter().map(|f| kilobytes(&text, f).map(float)).collect())
    }))
}
