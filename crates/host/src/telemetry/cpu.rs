//! CPU time of the whole machine by mode, from `/proc/stat`.

use procfs::{CurrentSI, KernelStats};

use super::{Column, Kind, Probe, Watched, column, float};

/// `/proc/stat` counts guest time in user time as well; so do these.
const MODES: &[&str] = &["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];

struct Cpu {
    columns: Vec<Column>,
}

pub(super) fn make(_: &Watched) -> Result<Option<Box<dyn Probe>>, String> {
    Ok(Some(Box::new(Cpu { columns: MODES.iter().map(|m| column(*m, "s", Kind::Counter)).collect() })))
}

impl Probe for Cpu {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn sample(&mut self) -> Result<Vec<Option<f64>>, String> {
        let t = KernelStats::current().map_err(|e| format!("cannot read /proc/stat: {e}"))?.total;
        let ticks =
            [Some(t.user), Some(t.nice), Some(t.system), Some(t.idle), t.iowait, t.irq, t.softirq, t.steal];
        let per_second = float(procfs::ticks_per_second());
        Ok(ticks.into_iter().map(|t| t.map(|t| float(t) / per_second)).collect())
    }
}
