//! Pages that wait for the device, from `/proc/meminfo`.

use crate::facts::kilobytes;

use super::{Column, Kind, Probe, Watched, column, float};

const FIELDS: &[&str] = &["Dirty", "Writeback"];

struct Memory {
    columns: Vec<Column>,
}

pub(super) fn make(_: &Watched) -> Result<Option<Box<dyn Probe>>, String> {
    Ok(Some(Box::new(Memory { columns: FIELDS.iter().map(|f| column(*f, "bytes", Kind::Gauge)).collect() })))
}

impl Probe for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn sample(&mut self) -> Result<Vec<Option<f64>>, String> {
        let text = std::fs::read_to_string("/proc/meminfo")
            .map_err(|e| format!("cannot read /proc/meminfo: {e}"))?;
        Ok(FIELDS.iter().map(|f| kilobytes(&text, f).map(float)).collect())
    }
}
