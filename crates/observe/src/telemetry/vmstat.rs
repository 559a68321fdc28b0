//! What the kernel's memory management does, from `/proc/vmstat`: write-back, reclaim, swapping,
//! faults. Counters in pages are pages; the gauges of write-back are in `memory`.

use pgdyno_model::telemetry::{Column, Kind};

use super::context::TelemetryContext;
use super::probe::{Probe, ProbeError, column, float, read};

const COUNTERS: &[&str] = &[
    "nr_dirtied",
    "nr_written",
    "pgpgin",
    "pgpgout",
    "pswpin",
    "pswpout",
    "pgfault",
    "pgmajfault",
    "pgscan_kswapd",
    "pgscan_direct",
    "pgsteal_kswapd",
    "pgsteal_direct",
    "workingset_refault_anon",
    "workingset_refault_file",
    "allocstall_normal",
    "allocstall_movable",
    "compact_stall",
    "thp_fault_alloc",
    "thp_collapse_alloc",
    "oom_kill",
];

/// How many dirty pages begin write-back, and how many make writers wait for it.
const GAUGES: &[&str] = &["nr_dirty_background_threshold", "nr_dirty_threshold"];

struct Vmstat {
    columns: Vec<Column>,
}

pub(super) fn make(_: &TelemetryContext) -> Result<Option<Box<dyn Probe>>, ProbeError> {
    let text = read("/proc/vmstat")?;
    let there = |names: &[&str], kind| -> Vec<Column> {
        names
            .iter()
            .filter(|n| value(&text, n).is_some())
            .map(|n| column(*n, unit(n), kind))
            .collect()
    };
    let mut columns = there(COUNTERS, Kind::Counter);
    columns.extend(there(GAUGES, Kind::Gauge));
    Ok(Some(Box::new(Vmstat { columns })))
}

fn unit(name: &str) -> &'static str {
    match name {
        // These two alone are in KiB (mm/vmstat.c, vm_event_item.h).
        "pgpgin" | "pgpgout" => "KiB",
        n if n.starts_with("nr_")
            || n.starts_with("pgs")
            || n.starts_with("pswp")
            || n.starts_with("work") =>
        {
            "pages"
        }
        _ => "count",
    }
}

fn value(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
}

impl Probe for Vmstat {
    fn name(&self) -> &'static str {
        "vmstat"
    }

    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn sample(&mut self) -> Result<Vec<Option<f64>>, ProbeError> {
        let text = read("/proc/vmstat")?;
        Ok(self.columns.iter().map(|c| value(&text, &c.name).map(float)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_begins_another_is_not_taken_for_it() {
        let text =
            "nr_dirtied 17\nnr_dirty_threshold 9\npgscan_direct_throttle 3\npgscan_direct 4\n";
        assert_eq!((value(text, "pgscan_direct"), value(text, "nr_dirty")), (Some(4), None));
    }
}
