//! CPU time by mode, of the whole host and of each core, from `/proc/stat`.

use pgdyno_model::telemetry::{Column, Kind};
use procfs::{CpuTime, CurrentSI, KernelStats};

use super::columns::Columns;
use super::context::TelemetryContext;
use super::probe::{Probe, ProbeError, column, float};

/// The modes. User time includes guest time, as in `/proc/stat`.
const MODES: [&str; 8] = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];

struct All {
    columns: Vec<Column>,
}

#[derive(Default)]
struct Cores {
    columns: Columns,
}

pub(super) fn all(_: &TelemetryContext) -> Result<Option<Box<dyn Probe>>, ProbeError> {
    Ok(Some(Box::new(All {
        columns: MODES.iter().map(|m| column(*m, "s", Kind::Counter)).collect(),
    })))
}

/// Creates the probe of cores. Modes in which a core never was have no column.
pub(super) fn cores(_: &TelemetryContext) -> Result<Option<Box<dyn Probe>>, ProbeError> {
    Ok(Some(Box::new(Cores::default())))
}

fn stat() -> Result<KernelStats, ProbeError> {
    KernelStats::current().map_err(|e| format!("cannot read /proc/stat: {e}").into())
}

/// Returns the time in each of [`MODES`] (seconds).
fn seconds(t: &CpuTime) -> [Option<f64>; 8] {
    let per_second = float(procfs::ticks_per_second());
    [Some(t.user), Some(t.nice), Some(t.system), Some(t.idle), t.iowait, t.irq, t.softirq, t.steal]
        .map(|ticks| ticks.map(|ticks| float(ticks) / per_second))
}

impl Probe for All {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn sample(&mut self) -> Result<Vec<Option<f64>>, ProbeError> {
        Ok(seconds(&stat()?.total).to_vec())
    }
}

impl Probe for Cores {
    fn name(&self) -> &'static str {
        "cpu_cores"
    }

    fn columns(&self) -> &[Column] {
        self.columns.all()
    }

    fn sample(&mut self) -> Result<Vec<Option<f64>>, ProbeError> {
        let stat = stat()?;
        let mut row = self.columns.row();
        for (core, times) in stat.cpu_time.iter().enumerate() {
            for (mode, seconds) in MODES.iter().zip(seconds(times)) {
                row.set(&format!("cpu{core}.{mode}"), "s", Kind::Counter, seconds.unwrap_or(0.0));
            }
        }
        Ok(row.values())
    }
}
