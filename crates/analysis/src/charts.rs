//! Charts whose lines are columns of one telemetry table. A new one is an item of
//! [`CHARTS`] or [`DETAIL_CHARTS`].

use pgdyno_model::telemetry::{Kind, Table};

use super::rates::{begins, column, ends, per_second, sum};
use super::view::{RateLine, RateTable};

pub(super) const MEGABYTE: f64 = 1e6;

/// A chart whose lines are columns of one table, or sums of such.
pub(super) struct Chart {
    probe: &'static str,
    group: &'static str,
    title: &'static str,
    unit: &'static str,
    /// Each line's name, its columns, and what brings a second's growth (or a gauge) to the unit.
    lines: &'static [(&'static str, &'static [&'static str], f64)],
}

/// Charts of every report.
const CHARTS: &[Chart] = &[
    Chart {
        probe: "pg_stat_wal",
        group: "wal",
        title: "write-ahead log generated",
        unit: "MB/s",
        lines: &[("WAL", &["wal_bytes"], 1.0 / MEGABYTE)],
    },
    Chart {
        probe: "memory",
        group: "memory",
        title: "page cache that waits for the device",
        unit: "MB",
        lines: &[
            ("dirty", &["Dirty"], 1.0 / MEGABYTE),
            ("being written", &["Writeback"], 1.0 / MEGABYTE),
        ],
    },
    Chart {
        probe: "processes",
        group: "server_memory",
        title: "memory of the server's processes (PSS: shared pages count once)",
        unit: "MB",
        lines: &[
            ("backends under load", &["backends_pss"], 1.0 / MEGABYTE),
            ("other processes", &["others_pss"], 1.0 / MEGABYTE),
        ],
    },
    Chart {
        probe: "processes",
        group: "backend_memory",
        title: "memory of a backend, mean",
        unit: "MB",
        lines: &[
            ("with its part of shared pages (PSS)", &["backend_pss"], 1.0 / MEGABYTE),
            ("its own (private)", &["backend_private"], 1.0 / MEGABYTE),
        ],
    },
    Chart {
        probe: "processes",
        group: "server_cpu",
        title: "CPU of the server's processes",
        unit: "cores",
        lines: &[
            ("backends under load", &["backends_cpu"], 1.0),
            ("other processes", &["others_cpu"], 1.0),
        ],
    },
    Chart {
        probe: "observer",
        group: "generator_cpu",
        title: "CPU of the load generator",
        unit: "cores",
        lines: &[("generator", &["generator_cpu"], 1.0)],
    },
];

/// Charts of detailed reports. A line that stays 0 is left out.
const DETAIL_CHARTS: &[Chart] = &[
    Chart {
        probe: "pressure",
        group: "pressure",
        title: "time in which some task waited for a resource (PSI)",
        unit: "%",
        lines: &[
            ("CPU", &["cpu.some"], 1e-4),
            ("I/O", &["io.some"], 1e-4),
            ("memory", &["memory.some"], 1e-4),
        ],
    },
    Chart {
        probe: "run_queue",
        group: "run_queue",
        title: "threads that run or want to, and that wait for I/O",
        unit: "threads",
        lines: &[("running", &["procs_running"], 1.0), ("blocked", &["procs_blocked"], 1.0)],
    },
    Chart {
        probe: "run_queue",
        group: "context_switches",
        title: "context switches",
        unit: "1/s",
        lines: &[("switches", &["ctxt"], 1.0)],
    },
    Chart {
        probe: "vmstat",
        group: "reclaim",
        title: "pages scanned, reclaimed and swapped",
        unit: "1/s",
        lines: &[
            ("scanned", &["pgscan_kswapd", "pgscan_direct"], 1.0),
            ("reclaimed", &["pgsteal_kswapd", "pgsteal_direct"], 1.0),
            ("swapped in", &["pswpin"], 1.0),
            ("swapped out", &["pswpout"], 1.0),
        ],
    },
    Chart {
        probe: "pg_stat_bgwriter",
        group: "buffers_written",
        title: "shared buffers written, by whom",
        unit: "1/s",
        lines: &[
            ("checkpointer", &["buffers_checkpoint"], 1.0),
            ("background writer", &["buffers_clean"], 1.0),
            ("backends", &["buffers_backend"], 1.0),
        ],
    },
    Chart {
        probe: "pg_stat_checkpointer",
        group: "checkpointer",
        title: "shared buffers written by checkpoints",
        unit: "1/s",
        lines: &[("checkpointer", &["buffers_written"], 1.0)],
    },
    Chart {
        probe: "pg_stat_database",
        group: "blocks",
        title: "blocks that backends of the loaded database asked for",
        unit: "1/s",
        lines: &[("read", &["blks_read"], 1.0), ("found in shared buffers", &["blks_hit"], 1.0)],
    },
    Chart {
        probe: "sizes",
        group: "sizes",
        title: "size of the loaded database and of pg_wal",
        unit: "MB",
        lines: &[
            ("database", &["database"], 1.0 / MEGABYTE),
            ("pg_wal", &["pg_wal"], 1.0 / MEGABYTE),
        ],
    },
    Chart {
        probe: "cgroup",
        group: "cgroup",
        title: "the server's control group: CPU used, and its limit",
        unit: "cores",
        lines: &[("used", &["cpu_usage"], 1.0), ("limit", &["cpu_max"], 1.0)],
    },
    Chart {
        probe: "cgroup",
        group: "throttled",
        title: "time for which the server's control group was throttled",
        unit: "s/s",
        lines: &[("throttled", &["throttled"], 1.0)],
    },
    Chart {
        probe: "arcstats",
        group: "arc",
        title: "ZFS ARC look-ups",
        unit: "1/s",
        lines: &[("hits", &["hits"], 1.0), ("misses", &["misses"], 1.0)],
    },
    Chart {
        probe: "observer",
        group: "observer",
        title: "what this watching cost, of one core",
        unit: "%",
        lines: &[
            ("sampler", &["sampler_cpu"], 100.0),
            ("server's backends", &["backends_cpu"], 100.0),
        ],
    },
];

/// Draws every chart of `table`.
pub(super) fn draw(table: &Table) -> impl Iterator<Item = RateTable> {
    let all = CHARTS.iter().map(|c| (c, false)).chain(DETAIL_CHARTS.iter().map(|c| (c, true)));
    all.filter(|(chart, _)| chart.probe == table.probe)
        .filter_map(|(chart, detail)| chart.draw(table, detail))
}

impl Chart {
    fn draw(&self, table: &Table, detail: bool) -> Option<RateTable> {
        let line = |(name, columns, scale): &(&str, &[&str], f64)| {
            let there = columns.iter().filter_map(|name| column(table, name));
            let each: Vec<Vec<Option<f64>>> = there
                .map(|i| match table.columns[i].kind {
                    Kind::Counter => per_second(table, i, *scale),
                    Kind::Gauge => ends(table, i, *scale),
                })
                .collect();
            (!each.is_empty())
                .then(|| RateLine { name: (*name).to_owned(), values: sum(each.into_iter()) })
        };
        let lines = self.lines.iter().filter_map(line).filter(|line| !detail || !is_zero(line));
        table_of(table, self.group, self.title, self.unit, detail, lines.collect())
    }
}

pub(super) fn is_zero(line: &RateLine) -> bool {
    line.values.iter().flatten().all(|v| *v == 0.0)
}

/// A rate table over the intervals between `table`'s samples; none without an interval or a line.
pub(super) fn table_of(
    table: &Table,
    group: &'static str,
    title: impl Into<String>,
    unit: &'static str,
    detail: bool,
    lines: Vec<RateLine>,
) -> Option<RateTable> {
    let t_s = begins(table);
    let known = lines.iter().any(|line| line.values.iter().any(Option::is_some));
    let title = title.into();
    (!t_s.is_empty() && known).then_some(RateTable {
        group,
        title,
        unit,
        stacked: false,
        detail,
        t_s,
        lines,
    })
}
