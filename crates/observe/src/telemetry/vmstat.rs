//! Counters of the kernel's memory management, from `/proc/vmstat`: write-back, reclaim, swapping,
//! faults. The gauges of write-back are in `memory`.

use std::collections::HashMap;
use std::path::Path;

use pgdyno_model::telemetry::{Column, Kind};

use super::probe::{EACH_SAMPLE, ProbeError, ProbeResult, column, fixed_columns, float};

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

/// The numbers of dirty pages at which write-back begins, and at which writers wait.
const GAUGES: &[&str] = &["nr_dirty_background_threshold", "nr_dirty_threshold"];

pub(super) fn make(_: Option<&Path>) -> ProbeResult {
    let values = read_vmstat()?;
    let there = |names: &[&str], kind| -> Vec<Column> {
        names
            .iter()
            .filter(|n| values.contains_key(**n))
            .map(|n| column(*n, unit(n), kind))
            .collect()
    };
    let mut columns = there(COUNTERS, Kind::Counter);
    columns.extend(there(GAUGES, Kind::Gauge));
    let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
    Ok(fixed_columns(EACH_SAMPLE, columns, move || {
        let values = read_vmstat()?;
        let value = |name| values.get(name).map(|value| float(value.unsigned_abs()));
        Ok(names.iter().map(value).collect())
    }))
}

fn unit(name: &str) -> &'static str {
    match name {
        // Only these two are in KiB (mm/vmstat.c, vm_event_item.h).
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

fn read_vmstat() -> Result<HashMap<String, i64>, ProbeError> {
    procfs::vmstat().map_err(ProbeError::procfs("/proc/vmstat"))
}
