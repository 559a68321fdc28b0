//! Profile of one trial's transactions: time by statement and by wait event, and their use of
//! device, WAL and CPU.

use std::collections::BTreeMap;

use pgdyno_model::Measurement;
use pgdyno_model::telemetry::Table;

use super::devices::own_device;
use super::rates::{column, growth};
use super::view::Part;

/// The kernel counts sectors of 512 bytes (Documentation/block/stat.rst).
const SECTOR: f64 = 512.0;

/// Names and units of all figures beside the latency, in the order in which they are shown.
pub(super) const FIGURES: [(&str, &str); 14] = [
    ("device writes", "1/s"),
    ("device reads", "1/s"),
    ("device flushes", "1/s"),
    ("device written", "MB/s"),
    ("device read", "MB/s"),
    ("device write latency", "ms"),
    ("device read latency", "ms"),
    ("device flush latency", "ms"),
    ("device queue", "requests"),
    ("device writes per transaction", "count"),
    ("WAL per transaction", "bytes"),
    ("full-page images per transaction", "count"),
    ("CPU per transaction, the whole machine's", "µs"),
    ("CPU per transaction, the load generator's", "µs"),
];

/// Profile of one completed trial.
pub(super) struct Profile {
    pub(super) block: u32,
    /// Mean latency of its transactions (microseconds).
    pub(super) latency: f64,
    /// Parts of `latency` (microseconds a transaction): they add up to it.
    pub(super) parts: BTreeMap<Part, f64>,
    /// Time of backends by wait event, or `CPU` (microseconds a transaction), without waiting for
    /// the load; none if it was not watched.
    pub(super) active: Option<BTreeMap<String, f64>>,
    /// Figures in the order of [`FIGURES`].
    pub(super) figures: [Option<f64>; FIGURES.len()],
    /// Parts that were not watched, each with the reason.
    pub(super) missing: Vec<String>,
}

impl Profile {
    /// Makes the profile of a trial; none without a transaction.
    pub(super) fn new(
        block: u32,
        m: &Measurement,
        telemetry: &[Table],
        devices: &[&str],
    ) -> Option<Self> {
        let latency = m.latency.mean_us()?;
        let tps = m.tps().filter(|tps| *tps > 0.0)?;
        let mut missing = Vec::new();
        let mut watched = |probe: &str, what: &str| {
            let table = telemetry.iter().find(|t| t.probe == probe);
            let found = table.filter(|t| t.samples.len() > 1);
            if found.is_none() {
                let why = table.and_then(|t| t.unavailable.clone());
                missing.push(format!(
                    "{what}: {}",
                    why.unwrap_or_else(|| format!("`{probe}` was not watched"))
                ));
            }
            found
        };
        let polled = watched("wait_events", "time by wait event");
        let active = polled.and_then(|table| active(table, tps));
        let is_unseen = polled.is_some() && active.is_none();
        let mut figures = [None; FIGURES.len()];
        if let Some(table) = watched("diskstats", "the device") {
            device(table, devices, tps, &mut figures);
        }
        if let Some(table) = watched("pg_stat_wal", "write-ahead log") {
            figures[10] = per_second(table, &["wal_bytes"]).map(|rate| rate / tps);
            figures[11] = per_second(table, &["wal_fpi"]).map(|rate| rate / tps);
        }
        if let Some(table) = watched("cpu", "CPU") {
            let busy = ["user", "nice", "system", "irq", "softirq"];
            figures[12] = per_second(table, &busy).map(|cores| cores * 1e6 / tps);
        }
        figures[13] =
            (m.generator_cpu_s > 0.0).then(|| m.generator_cpu_s / m.measured_s * 1e6 / tps);
        if is_unseen {
            missing.push("time by wait event: no poll saw a backend of the load".into());
        }
        Some(Self { block, latency, parts: parts(m, latency), active, figures, missing })
    }
}

fn parts(m: &Measurement, latency: f64) -> BTreeMap<Part, f64> {
    let mut parts = BTreeMap::new();
    let transactions = m.latency.count() as f64;
    for script in &m.scripts {
        for s in &script.statements {
            let Some(mean) = s.latency.mean_us() else { continue };
            let part =
                Part::Statement { script: script.name.clone(), line: s.line, text: s.text.clone() };
            *parts.entry(part).or_insert(0.0) += mean * s.latency.count() as f64 / transactions;
        }
    }
    if let Some(service) = m.service.as_ref().and_then(pgdyno_model::Latencies::mean_us) {
        parts.insert(Part::WaitToBeSent, latency - service);
    }
    let known: f64 = parts.values().sum();
    parts.insert(Part::BetweenStatements, latency - known);
    parts
}

/// Converts sightings to time. The mean number of backends in an event, divided by the transactions
/// per second, is each transaction's time in it (J. D. C. Little, Operations Research 9, 1961).
fn active(table: &Table, tps: f64) -> Option<BTreeMap<String, f64>> {
    let polls = growth(table, column(table, "polls")?).filter(|polls| *polls > 0.0)?;
    let mut out = BTreeMap::new();
    let mut is_seen = false;
    for (i, column) in table.columns.iter().enumerate() {
        let Some(event) = column.name.strip_prefix("load.") else { continue };
        let seen = growth(table, i).filter(|seen| *seen > 0.0);
        is_seen |= seen.is_some();
        // The load's own time: the server waits for nothing of its own.
        if let Some(seen) = seen.filter(|_| event != "Client:ClientRead") {
            out.insert(event.to_owned(), seen / polls / tps * 1e6);
        }
    }
    // Few polls of a light load may find its backends idle each time: their active time is 0.
    is_seen.then_some(out)
}

/// Adds up the growth per second of the `columns` that exist; none if none does.
fn per_second<S: AsRef<str>>(table: &Table, columns: &[S]) -> Option<f64> {
    let seconds = table.samples.last()?.t_s - table.samples.first()?.t_s;
    let grown = columns.iter().filter_map(|name| growth(table, column(table, name.as_ref())?));
    let grown = grown.reduce(|a, b| a + b)?;
    (seconds > 0.0).then(|| grown / seconds)
}

fn device(table: &Table, devices: &[&str], tps: f64, figures: &mut [Option<f64>; FIGURES.len()]) {
    let Some(own) = own_device(table, devices) else { return };
    let rate = |name: &str| {
        let name = if own.is_empty() { name.to_owned() } else { format!("{own}.{name}") };
        per_second(table, &[name])
    };
    // Milliseconds of requests by requests.
    let each = |ticks: &str, ios: &str| Some(rate(ticks)? / rate(ios).filter(|ios| *ios > 0.0)?);
    figures[0] = rate("wr_ios");
    figures[1] = rate("rd_ios");
    figures[2] = rate("fl_ios");
    figures[3] = rate("wr_sectors").map(|sectors| sectors * SECTOR / 1e6);
    figures[4] = rate("rd_sectors").map(|sectors| sectors * SECTOR / 1e6);
    figures[5] = each("wr_ticks", "wr_ios");
    figures[6] = each("rd_ticks", "rd_ios");
    figures[7] = each("fl_ticks", "fl_ios");
    figures[8] = rate("time_in_queue").map(|ms| ms / 1e3);
    figures[9] = figures[0].map(|writes| writes / tps);
}
