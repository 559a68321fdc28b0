//! Turns a trial's telemetry into the tables that charts draw.

use pgdyno_model::telemetry::Table;

use super::charts::{self, MEGABYTE, is_zero, table_of};
use super::devices::diskstats;
use super::rates::{begins, column, differences, ends, even, growth, per_second, short, sum};
use super::view::{ObserverView, RateLine, RateTable};

/// Probes of gauges, each drawn as a line of its own: probe, group, title and unit of the chart,
/// and a part of the gauges' names.
const GAUGES: [(&str, &str, &str, &str, &str); 3] = [
    ("hwmon", "temperature", "temperatures", "°C", ""),
    ("pg_locks", "lock_waits", "sessions that wait for a lock", "sessions", ".waiting."),
    ("pg_stat_progress", "progress", "long commands under way", "commands", ""),
];

/// Makes the tables that charts draw of `tables`. `devices` are the kernel names under the trial's
/// storage, best first. Charts in detail leave out lines that stay 0.
pub(super) fn rates(tables: &[Table], devices: &[&str]) -> Vec<RateTable> {
    let mut out = Vec::new();
    for table in tables {
        let table = &even(table);
        match table.probe.as_str() {
            "cpu" => out.extend(cpu(table)),
            "cpu_cores" => out.extend(cores(table)),
            "diskstats" => out.extend(diskstats(table, devices)),
            "wait_events" => out.extend(wait_events(table)),
            "network" => out.extend(network(table)),
            _ => {}
        }
        let gauges = GAUGES.iter().filter(|(probe, ..)| *probe == table.probe);
        out.extend(gauges.filter_map(|(_, group, title, unit, part)| {
            every_column(table, group, title, unit, part)
        }));
        out.extend(charts::draw(table));
    }
    out.sort_by_key(|table| table.detail);
    out
}

/// Computes the CPU that watching took in a trial.
pub(super) fn observer(tables: &[Table]) -> Option<ObserverView> {
    let table = tables.iter().find(|t| t.probe == "observer")?;
    let seconds = table.samples.last()?.t_s - table.samples.first()?.t_s;
    let cores = |name: &str| Some(growth(table, column(table, name)?)? / seconds);
    (seconds > 0.0).then_some(())?;
    Some(ObserverView { sampler_cpus: cores("sampler_cpu")?, backends_cpus: cores("backends_cpu") })
}

/// Computes the shares of all CPU time by mode.
fn cpu(table: &Table) -> Option<RateTable> {
    // guest and guest_nice are counted in user and nice already (proc_stat(5)).
    const MODES: [(&str, &[&str]); 5] = [
        ("user", &["user", "nice"]),
        ("system", &["system", "irq", "softirq"]),
        ("iowait", &["iowait"]),
        ("steal", &["steal"]),
        ("idle", &["idle"]),
    ];
    let deltas = |names: &[&str]| -> Option<Vec<Option<f64>>> {
        let columns: Vec<usize> = names.iter().filter_map(|n| column(table, n)).collect();
        (!columns.is_empty()).then(|| sum(columns.iter().map(|c| differences(table, *c))))
    };
    let modes: Vec<(&str, Vec<Option<f64>>)> =
        MODES.iter().filter_map(|(name, columns)| Some((*name, deltas(columns)?))).collect();
    column(table, "idle")?;
    let total = sum(modes.iter().map(|(_, d)| d.clone()));
    let lines = modes
        .into_iter()
        .filter(|(name, _)| *name != "idle")
        .map(|(name, deltas)| {
            let share = |(d, t): (Option<f64>, &Option<f64>)| match (d, t) {
                (Some(d), Some(t)) if *t > 0.0 => Some(short(100.0 * d / t)),
                _ => None,
            };
            RateLine {
                name: name.to_owned(),
                values: deltas.into_iter().zip(&total).map(share).collect(),
            }
        })
        .collect();
    table_of(table, "cpu", "CPU, all cores together", "%", false, lines)
}

/// Computes how busy the busiest and the idlest core were: one full core hides in the mean of many.
fn cores(table: &Table) -> Option<RateTable> {
    let mut names: Vec<&str> =
        table.columns.iter().filter_map(|c| Some(c.name.split_once('.')?.0)).collect();
    names.dedup();
    let of = |core: &str, idle: bool| {
        let wanted = |name: &str| {
            name.strip_prefix(core)
                .and_then(|rest| rest.strip_prefix('.'))
                .is_some_and(|mode| idle == matches!(mode, "idle" | "iowait"))
        };
        let columns = (0..table.columns.len()).filter(|i| wanted(&table.columns[*i].name));
        sum(columns.map(|i| differences(table, i)))
    };
    let busy: Vec<Vec<Option<f64>>> = names
        .iter()
        .map(|core| {
            let share = |(busy, idle): (Option<f64>, Option<f64>)| {
                let (busy, idle) = (busy?, idle?);
                (busy + idle > 0.0).then(|| short(100.0 * busy / (busy + idle)))
            };
            of(core, false).into_iter().zip(of(core, true)).map(share).collect()
        })
        .collect();
    if busy.len() < 2 {
        return None;
    }
    let line = |name: &str, pick: fn(f64, f64) -> f64| {
        let at = |i: usize| busy.iter().filter_map(|core| *core.get(i)?).reduce(pick);
        RateLine { name: name.to_owned(), values: (0..begins(table).len()).map(at).collect() }
    };
    let lines = vec![line("busiest core", f64::max), line("idlest core", f64::min)];
    table_of(table, "cpu_cores", "how busy single cores were", "%", true, lines)
}

/// Computes the mean number of the loaded database's backends by wait event, or `CPU`: sightings
/// over polls.
fn wait_events(table: &Table) -> Option<RateTable> {
    /// Most events shown by name: the number of colours, less one for all others.
    const MOST: usize = 6;
    let polls = differences(table, column(table, "polls")?);
    let mut events: Vec<(&str, f64, Vec<Option<f64>>)> = (0..table.columns.len())
        .filter_map(|i| {
            let name = table.columns[i].name.strip_prefix("load.")?;
            Some((name, growth(table, i)?, differences(table, i)))
        })
        .filter(|(_, total, _)| *total > 0.0)
        .collect();
    events.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mean = |counts: Vec<Option<f64>>| -> Vec<Option<f64>> {
        let of = |(count, polls): (Option<f64>, &Option<f64>)| {
            let polls = (*polls).filter(|p| *p > 0.0)?;
            Some(short(count? / polls))
        };
        counts.into_iter().zip(&polls).map(of).collect()
    };
    let others = events.split_off(events.len().min(MOST));
    let mut lines: Vec<RateLine> = events
        .into_iter()
        .map(|(name, _, counts)| RateLine { name: name.to_owned(), values: mean(counts) })
        .collect();
    if !others.is_empty() {
        let counts = sum(others.into_iter().map(|(.., counts)| counts));
        lines.push(RateLine { name: "others".into(), values: mean(counts) });
    }
    let title = "what the load's backends were doing or waiting for";
    let made = table_of(table, "wait_events", title, "backends", false, lines)?;
    Some(RateTable { stacked: true, ..made })
}

/// Computes the traffic of every interface that has any.
fn network(table: &Table) -> Option<RateTable> {
    let line = |i: usize| {
        let (interface, field) = table.columns[i].name.rsplit_once('.')?;
        let way = match field {
            "rx_bytes" => "in",
            "tx_bytes" => "out",
            _ => return None,
        };
        Some(RateLine {
            name: format!("{interface} {way}"),
            values: per_second(table, i, 1.0 / MEGABYTE),
        })
    };
    let lines: Vec<RateLine> =
        (0..table.columns.len()).filter_map(line).filter(|l| !is_zero(l)).collect();
    table_of(table, "network", "network", "MB/s", true, lines)
}

/// Every gauge whose name holds `part`, as a line of its own.
fn every_column(
    table: &Table,
    group: &'static str,
    title: &str,
    unit: &'static str,
    part: &str,
) -> Option<RateTable> {
    let lines: Vec<RateLine> = (0..table.columns.len())
        .filter(|i| table.columns[*i].name.contains(part))
        .map(|i| RateLine { name: table.columns[i].name.clone(), values: ends(table, i, 1.0) })
        .filter(|line| !is_zero(line))
        .collect();
    table_of(table, group, title, unit, true, lines)
}

#[cfg(test)]
mod tests {
    use pgdyno_model::telemetry::{Column, Kind, STATS_RESET, Sample};

    use super::super::rates::resets;
    use super::*;

    fn table(probe: &str, columns: &[&str], samples: &[(f64, &[f64])]) -> Table {
        let kind = |name: &str| match name {
            "Dirty" | STATS_RESET => Kind::Gauge,
            _ => Kind::Counter,
        };
        let column =
            |name: &&str| Column { name: (*name).into(), unit: String::new(), kind: kind(name) };
        let sample = |(t_s, values): &(f64, &[f64])| Sample {
            t_s: *t_s,
            values: values.iter().map(|v| v.is_finite().then_some(*v)).collect(),
        };
        Table {
            probe: probe.into(),
            columns: columns.iter().map(column).collect(),
            samples: samples.iter().map(sample).collect(),
            unavailable: None,
        }
    }

    #[test]
    fn cpu_shares_come_from_differences_and_a_counter_that_went_back_gives_none() {
        let cpu = table(
            "cpu",
            &["user", "nice", "system", "idle", "iowait", "guest"],
            &[
                (0.0, &[100.0, 0.0, 50.0, 1000.0, 10.0, 90.0]),
                (1.0, &[150.0, 10.0, 60.0, 1020.0, 20.0, 140.0]),
                (2.0, &[20.0, 10.0, 60.0, 1020.0, 20.0, 140.0]),
            ],
        );
        let rates = rates(&[cpu], &[]);
        let line = |name| &rates[0].lines.iter().find(|l| l.name == name).unwrap().values;
        assert_eq!(line("user"), &[Some(60.0), None]);
        assert_eq!(line("system"), &[Some(10.0), None]);
        assert_eq!(line("iowait"), &[Some(10.0), None]);
        assert_eq!(rates[0].t_s, [0.0, 1.0]);
    }

    #[test]
    fn device_rates_are_those_of_the_storages_own_device() {
        let disk = table(
            "diskstats",
            &[
                "vda.wr_ios",
                "vda.wr_sectors",
                "vda.io_ticks",
                "vdb.wr_ios",
                "vdb.wr_sectors",
                "vdb.io_ticks",
            ],
            &[
                (0.0, &[0.0, 0.0, 0.0, 10.0, 0.0, 0.0]),
                (0.5, &[0.0, 0.0, 0.0, 60.0, 4000.0, 250.0]),
            ],
        );
        let rates = rates(std::slice::from_ref(&disk), &["vdb1", "vdb"]);
        let value =
            |group| rates.iter().find(|r| r.group == group).unwrap().lines[0].values[0].unwrap();
        assert_eq!(value("device_throughput"), 4.096);
        assert_eq!(value("device_operations"), 100.0);
        assert_eq!(value("device_busy"), 50.0);
        assert!(
            rates.iter().all(|r| r.detail != r.title.starts_with("vdb:")),
            "other layers are details"
        );
    }

    #[test]
    fn a_devices_latency_is_ticks_over_operations_and_its_queue_ticks_over_time() {
        let disk = table(
            "diskstats",
            &[
                "vda.rd_ios",
                "vda.rd_ticks",
                "vda.wr_ios",
                "vda.wr_ticks",
                "vda.fl_ios",
                "vda.fl_ticks",
                "vda.time_in_queue",
            ],
            &[
                (0.0, &[5.0, 9.0, 10.0, 100.0, 1.0, 10.0, 0.0]),
                (1.0, &[5.0, 9.0, 60.0, 125.0, 5.0, 50.0, 3000.0]),
                (3.0, &[5.0, 9.0, 60.0, 125.0, 6.0, 53.0, 4000.0]),
            ],
        );
        let rates = rates(&[disk], &["vda"]);
        let latency = rates.iter().find(|r| r.group == "device_latency").unwrap();
        let lines: Vec<_> =
            latency.lines.iter().map(|l| (l.name.as_str(), &l.values[..])).collect();
        assert_eq!(
            lines,
            [("write", &[Some(0.5), None][..]), ("flush", &[Some(10.0), Some(3.0)])],
            "no read, no line; no write, no value"
        );
        assert_eq!(latency.unit, "ms");
        let queue = rates.iter().find(|r| r.group == "device_queue").unwrap();
        assert_eq!(queue.lines[0].values, [Some(3.0), Some(0.5)]);
    }

    #[test]
    fn the_generators_cpu_is_shown_in_cores_where_it_was_sampled() {
        let of = |columns: &[&str]| {
            let samples: [(f64, &[f64]); 2] = [(0.0, &[0.1, 0.1, 1.0]), (2.0, &[0.2, 0.2, 2.5])];
            rates(&[table("observer", columns, &samples)], &[])
        };
        let found = of(&["sampler_cpu", "backends_cpu", "generator_cpu"]);
        let chart = found.iter().find(|r| r.group == "generator_cpu").unwrap();
        assert_eq!((chart.unit, &chart.lines[0].values[..]), ("cores", &[Some(0.75)][..]));
        let before = of(&["sampler_cpu", "backends_cpu"]);
        assert!(before.iter().all(|r| r.group != "generator_cpu"));
    }

    #[test]
    fn a_reset_gives_no_rate_even_where_the_counter_has_outgrown_its_old_value_and_is_marked() {
        let wal = table(
            "pg_stat_wal",
            &["wal_bytes", STATS_RESET],
            &[
                (0.0, &[1e6, 100.0]),
                (1.0, &[2e6, 100.0]),
                (2.0, &[9e6, 101.5]),
                (3.0, &[10e6, 101.5]),
            ],
        );
        assert_eq!(resets(&wal), [2.0]);
        assert_eq!(rates(&[wal], &[])[0].lines[0].values, [Some(1.0), None, Some(1.0)]);
        let cpu = table(
            "cpu",
            &["user", "iowait"],
            &[(0.0, &[5.0, 5.0]), (1.0, &[6.0, 4.0]), (2.0, &[1.0, 4.0])],
        );
        assert_eq!(resets(&cpu), [2.0], "iowait may fall");
    }

    #[test]
    fn wait_events_are_mean_backends_the_commonest_first_and_the_rare_ones_together() {
        let columns = [
            "polls",
            "load.CPU",
            "load.A:a",
            "load.B:b",
            "load.C:c",
            "load.D:d",
            "load.E:e",
            "load.F:f",
            "load.G:g",
            "walwriter.IO:x",
        ];
        let waits = table(
            "wait_events",
            &columns,
            &[(0.0, &[0.0; 10]), (1.0, &[10.0, 5.0, 40.0, 6.0, 7.0, 8.0, 9.0, 1.0, 1.0, 10.0])],
        );
        let found = rates(&[waits], &[]);
        let shown: Vec<(&str, f64)> =
            found[0].lines.iter().map(|l| (l.name.as_str(), l.values[0].unwrap())).collect();
        assert!(found[0].stacked);
        assert_eq!(shown[0], ("A:a", 4.0));
        assert_eq!(shown.last(), Some(&("others", 0.2)));
        assert_eq!(shown.len(), 7);
    }

    #[test]
    fn what_watching_cost_is_its_cpu_over_time_and_unknown_where_the_server_is_elsewhere() {
        let cost = |backends: f64| {
            table(
                "observer",
                &["sampler_cpu", "backends_cpu"],
                &[(0.0, &[1.0, backends]), (4.0, &[1.02, backends + 0.04])],
            )
        };
        let seen = observer(&[cost(3.0)]).unwrap();
        assert!(
            (seen.sampler_cpus - 0.005).abs() < 1e-9
                && (seen.backends_cpus.unwrap() - 0.01).abs() < 1e-9
        );
        assert_eq!(observer(&[cost(f64::NAN)]).unwrap().backends_cpus, None);
        assert_eq!(observer(&[]), None);
    }

    #[test]
    fn the_busiest_core_shows_where_the_mean_would_hide_it() {
        let cores = table(
            "cpu_cores",
            &["cpu0.user", "cpu0.idle", "cpu1.user", "cpu1.idle"],
            &[(0.0, &[0.0, 0.0, 0.0, 0.0]), (1.0, &[1.0, 0.0, 0.1, 0.9])],
        );
        let found = rates(&[cores], &[]);
        assert_eq!(found[0].lines[0].values, [Some(100.0)]);
        assert_eq!(found[0].lines[1].values, [Some(10.0)]);
    }

    #[test]
    fn a_sliver_at_the_windows_close_goes_to_the_second_before_it() {
        let wal = table(
            "pg_stat_wal",
            &["wal_bytes"],
            &[
                (-0.2, &[0.0]),
                (0.8, &[1e6]),
                (1.8, &[2e6]),
                (1.9, &[2.5e6]),
                (2.8, &[3e6]),
                (2.81, &[5.03e6]),
            ],
        );
        let rates = rates(&[wal], &[]);
        assert_eq!(rates[0].t_s, [-0.2, 0.8, 1.8]);
        assert_eq!(rates[0].lines[0].values, [Some(1.0), Some(1.0), Some(3.0)]);
    }

    #[test]
    fn one_sample_missing_values_and_equal_times_make_no_rate() {
        assert_eq!(rates(&[table("pg_stat_wal", &["wal_bytes"], &[(0.0, &[1.0])])], &[]), []);
        assert_eq!(
            rates(&[table("pg_stat_wal", &["wal_bytes"], &[(0.0, &[1.0]), (0.0, &[2.0])])], &[]),
            []
        );
        assert_eq!(rates(&[table("cpu", &[], &[(0.0, &[]), (1.0, &[])])], &[]), []);
        assert_eq!(rates(&[table("diskstats", &[], &[(0.0, &[]), (1.0, &[])])], &["vda"]), []);
        let gap = table(
            "pg_stat_wal",
            &["wal_bytes"],
            &[(0.0, &[0.0]), (1.0, &[f64::NAN]), (2.0, &[8e6]), (3.0, &[9e6])],
        );
        assert_eq!(rates(&[gap], &[])[0].lines[0].values, [None, None, Some(1.0)]);
        let memory = table("memory", &["Dirty"], &[(0.0, &[5e6]), (1.0, &[4e6])]);
        assert_eq!(rates(&[memory], &[])[0].lines[0].values, [Some(4.0)], "a gauge may fall");
    }
}
