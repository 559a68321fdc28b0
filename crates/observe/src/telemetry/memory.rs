//! Main memory, and pages that wait for write-back, from `/proc/meminfo`.

use pgdyno_facts::kilobytes;
use pgdyno_model::telemetry::{Column, Kind};

use super::context::TelemetryContext;
use super::probe::{Probe, ProbeError, column, float, read};

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

struct Memory {
    columns: Vec<Column>,
}

pub(super) fn make(_: &TelemetryContext) -> Result<Option<Box<dyn Probe>>, ProbeError> {
    Ok(Some(Box::new(Memory {
        columns: FIELDS.iter().map(|f| column(*f, "bytes", Kind::Gauge)).collect(),
    })))
}

impl Probe for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn sample(&mut self) -> Result<Vec<Option<f64>>, ProbeError> {
        let text = read("/proc/meminfo")?;
        Ok(FIELDS.iter().map(|f| kilobytes(&text, f).map(float)).collect())
    }
}
