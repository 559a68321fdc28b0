//! From raw counters to rates. A counter that went back was reset or wrapped: that interval has no rate.

use pgdyno_model::telemetry::{Sample, Table};

use super::view::{RateLine, RateTable};

/// The kernel counts sectors of 512 bytes, whatever the device's own are (Documentation/block/stat.rst).
const SECTOR: f64 = 512.0;
const MEGABYTE: f64 = 1e6;

/// Everything that a chart shows of `tables`; `devices` are the kernel names under the trial's storage, best first.
pub(super) fn rates(tables: &[Table], devices: &[&str]) -> Vec<RateTable> {
    let mut out = Vec::new();
    for table in tables {
        let table = &even(table);
        match table.probe.as_str() {
            "cpu" => out.extend(cpu(table)),
            "diskstats" => out.extend(diskstats(table, devices)),
            "pg_stat_wal" => out.extend(wal(table)),
            "memory" => out.extend(memory(table)),
            _ => {}
        }
    }
    out
}

/// `table` without intervals of less than half the usual length: a rate over a sliver of time, such as from the last
/// second's sample to the one at the window's close, is noise. What it counted goes to its neighbour.
fn even(table: &Table) -> Table {
    let mut lengths: Vec<f64> = intervals(table).map(|(a, b)| b.t_s - a.t_s).collect();
    lengths.sort_by(f64::total_cmp);
    let shortest = lengths.get(lengths.len() / 2).copied().unwrap_or(0.0) / 2.0;
    let mut samples: Vec<Sample> = Vec::with_capacity(table.samples.len());
    for (i, sample) in table.samples.iter().enumerate() {
        let sliver = samples.last().is_some_and(|last| sample.t_s - last.t_s < shortest);
        let is_last = i + 1 == table.samples.len();
        match (sliver, is_last) {
            (true, false) => continue,
            // The last one has what the others have not: the one before it goes.
            (true, true) if samples.len() > 1 => drop(samples.pop()),
            _ => {}
        }
        samples.push(sample.clone());
    }
    Table { samples, ..table.clone() }
}

/// Shares of all CPU time by mode.
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
            RateLine { name: name.to_owned(), values: deltas.into_iter().zip(&total).map(share).collect() }
        })
        .collect();
    table_of(table, "cpu", "CPU, all cores together".into(), "%", lines)
}

/// Throughput, operations and use of the device under the data.
fn diskstats(table: &Table, devices: &[&str]) -> Vec<RateTable> {
    let Some(device) = device(table, devices) else { return Vec::new() };
    let prefixed = |name: &str| if device.is_empty() { name.to_owned() } else { format!("{device}.{name}") };
    let rate = |name: &str, scale: f64| -> Option<Vec<Option<f64>>> {
        Some(per_second(table, column(table, &prefixed(name))?, scale))
    };
    let line = |name: &str, values: Option<Vec<Option<f64>>>| {
        values.map(|values| RateLine { name: name.to_owned(), values })
    };
    let named = if device.is_empty() { "device".to_owned() } else { device.clone() };
    let throughput = [
        line("written", rate("wr_sectors", SECTOR / MEGABYTE)),
        line("read", rate("rd_sectors", SECTOR / MEGABYTE)),
    ];
    let operations = [
        line("writes", rate("wr_ios", 1.0)),
        line("reads", rate("rd_ios", 1.0)),
        line("flushes", rate("fl_ios", 1.0)),
    ];
    // Milliseconds in which at least one request was under way: 1000 a second is 100%.
    let busy = [line("busy", rate("io_ticks", 0.1))];
    let groups: [(_, _, _, Vec<Option<RateLine>>); 3] = [
        ("device_throughput", format!("{named}: throughput"), "MB/s", throughput.into()),
        ("device_operations", format!("{named}: operations"), "1/s", operations.into()),
        ("device_busy", format!("{named}: time with a request under way"), "%", busy.into()),
    ];
    groups
        .into_iter()
        .filter_map(|(group, title, unit, lines)| {
            table_of(table, group, title, unit, lines.into_iter().flatten().collect())
        })
        .collect()
}

fn wal(table: &Table) -> Option<RateTable> {
    let column = column(table, "wal_bytes")?;
    let line = RateLine { name: "WAL".into(), values: per_second(table, column, 1.0 / MEGABYTE) };
    table_of(table, "wal", "write-ahead log generated".into(), "MB/s", vec![line])
}

/// Pages that wait for the device: gauges, as they stood at each interval's end.
fn memory(table: &Table) -> Option<RateTable> {
    let line = |(name, source): (&str, &str)| {
        let column = column(table, source)?;
        let values = intervals(table).map(|(_, end)| {
            end.values.get(column).copied().flatten().filter(|v| v.is_finite()).map(|v| short(v / MEGABYTE))
        });
        Some(RateLine { name: name.into(), values: values.collect() })
    };
    let lines = [("dirty", "Dirty"), ("being written", "Writeback")].into_iter().filter_map(line).collect();
    table_of(table, "memory", "page cache that waits for the device".into(), "MB", lines)
}

/// The device to show: the first of `devices` that the table has, else the table's first; empty if names have no
/// prefix.
fn device(table: &Table, devices: &[&str]) -> Option<String> {
    let there: Vec<&str> =
        table.columns.iter().map(|c| c.name.rsplit_once('.').map_or("", |(device, _)| device)).collect();
    let wanted = devices.iter().find(|d| there.contains(d)).copied();
    wanted.or_else(|| there.first().copied()).map(str::to_owned)
}

fn column(table: &Table, name: &str) -> Option<usize> {
    table.columns.iter().position(|c| c.name == name)
}

/// A rate table over the intervals between `table`'s samples; none without an interval or a line.
fn table_of(
    table: &Table,
    group: &'static str,
    title: String,
    unit: &'static str,
    lines: Vec<RateLine>,
) -> Option<RateTable> {
    let t_s: Vec<f64> = intervals(table).map(|(a, _)| (a.t_s * 1000.0).round() / 1000.0).collect();
    let known = lines.iter().any(|line| line.values.iter().any(Option::is_some));
    (!t_s.is_empty() && known).then_some(RateTable { group, title, unit, t_s, lines })
}

/// Neighbouring samples; those that did not move on in time are no interval.
fn intervals(table: &Table) -> impl Iterator<Item = (&Sample, &Sample)> {
    table.samples.windows(2).filter_map(|pair| match pair {
        [a, b] if b.t_s > a.t_s => Some((a, b)),
        _ => None,
    })
}

/// A counter's growth over each interval.
fn differences(table: &Table, column: usize) -> Vec<Option<f64>> {
    let value = |sample: &Sample| sample.values.get(column).copied().flatten();
    intervals(table)
        .map(|(a, b)| {
            let grown = value(b)? - value(a)?;
            (grown.is_finite() && grown >= 0.0).then_some(grown)
        })
        .collect()
}

fn per_second(table: &Table, column: usize, scale: f64) -> Vec<Option<f64>> {
    let lengths = intervals(table).map(|(a, b)| b.t_s - a.t_s);
    differences(table, column)
        .into_iter()
        .zip(lengths)
        .map(|(d, s)| d.map(|d| short(scale * d / s)))
        .collect()
}

/// Element by element; none where any is none.
fn sum(columns: impl Iterator<Item = Vec<Option<f64>>>) -> Vec<Option<f64>> {
    columns.reduce(|a, b| a.into_iter().zip(b).map(|(a, b)| Some(a? + b?)).collect()).unwrap_or_default()
}

/// Three decimals are more than a chart shows; more digits would only make reports large.
fn short(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use pgdyno_model::telemetry::{Column, Kind};

    use super::*;

    fn table(probe: &str, columns: &[&str], samples: &[(f64, &[f64])]) -> Table {
        let column = |name: &&str| Column { name: (*name).into(), unit: String::new(), kind: Kind::Counter };
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
            &["vda.wr_ios", "vda.wr_sectors", "vda.io_ticks", "vdb.wr_ios", "vdb.wr_sectors", "vdb.io_ticks"],
            &[(0.0, &[0.0, 0.0, 0.0, 10.0, 0.0, 0.0]), (0.5, &[0.0, 0.0, 0.0, 60.0, 4000.0, 250.0])],
        );
        let rates = rates(std::slice::from_ref(&disk), &["vdb1", "vdb"]);
        let value = |group| rates.iter().find(|r| r.group == group).unwrap().lines[0].values[0].unwrap();
        assert_eq!(value("device_throughput"), 4.096);
        assert_eq!(value("device_operations"), 100.0);
        assert_eq!(value("device_busy"), 50.0);
        assert!(rates.iter().all(|r| r.title.starts_with("vdb:")));
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
        assert_eq!(rates(&[table("pg_stat_wal", &["wal_bytes"], &[(0.0, &[1.0]), (0.0, &[2.0])])], &[]), []);
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
