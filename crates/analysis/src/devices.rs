//! Charts of the devices under a trial's data, from the kernel's disk statistics.

use pgdyno_model::telemetry::Table;

use super::charts::{MEGABYTE, table_of};
use super::rates::{column, differences, per_second, short};
use super::view::{RateLine, RateTable};

/// The kernel counts sectors of 512 bytes, whatever the device's own are
/// (Documentation/block/stat.rst).
const SECTOR: f64 = 512.0;

/// Every device of `table`, in its order; one without a name where it tells of one only.
fn devices_of(table: &Table) -> Vec<&str> {
    let mut all: Vec<&str> = Vec::new();
    for column in &table.columns {
        let device = column.name.rsplit_once('.').map_or("", |(device, _)| device);
        if !all.contains(&device) {
            all.push(device);
        }
    }
    all
}

/// The storage's own device: the first of `devices` that `table` has, else its first.
pub(super) fn own_device<'a>(table: &'a Table, devices: &[&str]) -> Option<&'a str> {
    let all = devices_of(table);
    devices.iter().find_map(|d| all.iter().find(|own| *own == d)).or(all.first()).copied()
}

/// Throughput, operations, latency, queue and use of every device under the data; all but the
/// storage's own are details.
pub(super) fn diskstats(table: &Table, devices: &[&str]) -> Vec<RateTable> {
    let all = devices_of(table);
    let own = own_device(table, devices);
    all.iter().flat_map(|device| of_device(table, device, Some(*device) != own)).collect()
}

fn of_device(table: &Table, device: &str, detail: bool) -> Vec<RateTable> {
    let prefixed =
        |name: &str| if device.is_empty() { name.to_owned() } else { format!("{device}.{name}") };
    let rate = |name: &str, scale: f64| -> Option<Vec<Option<f64>>> {
        Some(per_second(table, column(table, &prefixed(name))?, scale))
    };
    let line = |name: &str, values: Option<Vec<Option<f64>>>| {
        values.map(|values| RateLine { name: name.to_owned(), values })
    };
    // Time that requests took over requests that completed, as iostat's await.
    let latency = |name: &str, kind: &str| {
        let growth = |field: &str| {
            Some(differences(table, column(table, &prefixed(&[kind, field].concat()))?))
        };
        let mean = |(ticks, ios): (Option<f64>, Option<f64>)| {
            let ios = ios.filter(|ios| *ios > 0.0)?;
            Some(short(ticks? / ios))
        };
        let each: Vec<_> = growth("_ticks")?.into_iter().zip(growth("_ios")?).map(mean).collect();
        each.iter().any(Option::is_some).then(|| RateLine { name: name.to_owned(), values: each })
    };
    let named = if device.is_empty() { "device".to_owned() } else { device.to_owned() };
    let throughput = [
        line("written", rate("wr_sectors", SECTOR / MEGABYTE)),
        line("read", rate("rd_sectors", SECTOR / MEGABYTE)),
    ];
    let operations = [
        line("writes", rate("wr_ios", 1.0)),
        line("reads", rate("rd_ios", 1.0)),
        line("flushes", rate("fl_ios", 1.0)),
    ];
    let latencies = [latency("read", "rd"), latency("write", "wr"), latency("flush", "fl")];
    // Milliseconds that requests under way spent, all together.
    let queue = [line("requests", rate("time_in_queue", 1e-3))];
    // Milliseconds in which at least one request was under way: 1000 a second is 100%.
    let busy = [line("busy", rate("io_ticks", 0.1))];
    let groups: [(_, _, _, Vec<Option<RateLine>>); 5] = [
        ("device_throughput", format!("{named}: throughput"), "MB/s", throughput.into()),
        ("device_operations", format!("{named}: operations"), "1/s", operations.into()),
        ("device_latency", format!("{named}: latency of an operation"), "ms", latencies.into()),
        ("device_queue", format!("{named}: requests under way"), "requests", queue.into()),
        ("device_busy", format!("{named}: time with a request under way"), "%", busy.into()),
    ];
    groups
        .into_iter()
        .filter_map(|(group, title, unit, lines)| {
            table_of(table, group, title, unit, detail, lines.into_iter().flatten().collect())
        })
        .collect()
}
