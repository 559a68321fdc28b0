//! Threads that run or wait for a CPU, from `/proc/stat` and `/proc/loadavg`.

use std::path::Path;

use pgdyno_model::telemetry::Kind;
use procfs::{Current, CurrentSI, KernelStats, LoadAverage};

use super::probe::{EACH_SAMPLE, ProbeError, ProbeResult, column, fixed_columns, float};

pub(super) fn make(_: Option<&Path>) -> ProbeResult {
    let columns = vec![
        column("procs_running", "count", Kind::Gauge),
        column("procs_blocked", "count", Kind::Gauge),
        column("ctxt", "count", Kind::Counter),
        column("processes", "count", Kind::Counter),
        column("loadavg1", "count", Kind::Gauge),
    ];
    Ok(fixed_columns(EACH_SAMPLE, columns, || {
        let stat = KernelStats::current().map_err(ProbeError::procfs("/proc/stat"))?;
        let load = LoadAverage::current().map_err(ProbeError::procfs("/proc/loadavg"))?;
        Ok(vec![
            stat.procs_running.map(f64::from),
            stat.procs_blocked.map(f64::from),
            Some(float(stat.ctxt)),
            Some(float(stat.processes)),
            // The file has two decimals.
            Some((f64::from(load.one) * 100.0).round() / 100.0),
        ])
    }))
}
