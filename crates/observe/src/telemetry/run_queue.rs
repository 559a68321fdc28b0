//! Threads that run or wait for a CPU, from `/proc/stat` and `/proc/loadavg`.

use pgdyno_model::telemetry::{Column, Kind};
use procfs::{Current, CurrentSI, KernelStats, LoadAverage};

use super::context::TelemetryContext;
use super::probe::{Probe, ProbeError, column, float};

struct RunQueue {
    columns: Vec<Column>,
}

pub(super) fn make(_: &TelemetryContext) -> Result<Option<Box<dyn Probe>>, ProbeError> {
    let columns = vec![
        column("procs_running", "count", Kind::Gauge),
        column("procs_blocked", "count", Kind::Gauge),
        column("ctxt", "count", Kind::Counter),
        column("processes", "count", Kind::Counter),
        column("loadavg1", "count", Kind::Gauge),
    ];
    Ok(Some(Box::new(RunQueue { columns })))
}

impl Probe for RunQueue {
    fn name(&self) -> &'static str {
        "run_queue"
    }

    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn sample(&mut self) -> Result<Vec<Option<f64>>, ProbeError> {
        let stat = KernelStats::current().map_err(|e| format!("cannot read /proc/stat: {e}"))?;
        let load = LoadAverage::current().map_err(|e| format!("cannot read /proc/loadavg: {e}"))?;
        Ok(vec![
            stat.procs_running.map(f64::from),
            stat.procs_blocked.map(f64::from),
            Some(float(stat.ctxt)),
            Some(float(stat.processes)),
            // The file has two decimals.
            Some((f64::from(load.one) * 100.0).round() / 100.0),
        ])
    }
}
