//! CPU time by mode, of the whole host and of each core, from `/proc/stat`.

use std::path::Path;

use pgdyno_model::telemetry::Kind;
use procfs::{CpuTime, CurrentSI, KernelStats};

use super::columns::growing_columns;
use super::probe::{EACH_SAMPLE, ProbeError, ProbeResult, column, fixed_columns, float};

/// The modes. User time includes guest time, as in `/proc/stat`.
const MODES: [&str; 8] = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];

pub(super) fn all(_: Option<&Path>) -> ProbeResult {
    let columns = MODES.iter().map(|m| column(*m, "s", Kind::Counter)).collect();
    Ok(fixed_columns(EACH_SAMPLE, columns, || Ok(seconds(&stat()?.total).to_vec())))
}

/// Creates the probe of cores. Modes in which a core never was have no column.
pub(super) fn cores(_: Option<&Path>) -> ProbeResult {
    Ok(growing_columns(|row| {
        for (core, times) in stat()?.cpu_time.iter().enumerate() {
            for (mode, seconds) in MODES.iter().zip(seconds(times)) {
                row.set(&format!("cpu{core}.{mode}"), "s", Kind::Counter, seconds.unwrap_or(0.0));
            }
        }
        Ok(())
    }))
}

fn stat() -> Result<KernelStats, ProbeError> {
    KernelStats::current().map_err(ProbeError::procfs("/proc/stat"))
}

/// Returns the time in each of [`MODES`] (seconds).
fn seconds(t: &CpuTime) -> [Option<f64>; 8] {
    let per_second = float(procfs::ticks_per_second());
    [Some(t.user), Some(t.nice), Some(t.system), Some(t.idle), t.iowait, t.irq, t.softirq, t.steal]
        .map(|ticks| ticks.map(|ticks| float(ticks) / per_second))
}
