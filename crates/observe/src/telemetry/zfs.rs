//! ZFS: its cache (`/proc/spl/kstat/zfs/arcstats`), and `zpool iostat` of the pool under the data.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Child;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use pgdyno_exec::tool::Program;
use pgdyno_facts::layers::pool_of;
use pgdyno_model::telemetry::{Column, Kind};

use super::probe::{
    EACH_SAMPLE, Probe, ProbeError, ProbeResult, column, fixed_columns, float, read,
};

const ARCSTATS: &str = "/proc/spl/kstat/zfs/arcstats";

/// Sizes in bytes, then counts of look-ups.
const FIELDS: &[(&str, &str, Kind)] = &[
    ("size", "bytes", Kind::Gauge),
    ("c", "bytes", Kind::Gauge),
    ("c_max", "bytes", Kind::Gauge),
    ("hits", "count", Kind::Counter),
    ("misses", "count", Kind::Counter),
    ("demand_data_hits", "count", Kind::Counter),
    ("demand_data_misses", "count", Kind::Counter),
    ("prefetch_data_hits", "count", Kind::Counter),
    ("prefetch_data_misses", "count", Kind::Counter),
    ("l2_hits", "count", Kind::Counter),
    ("l2_misses", "count", Kind::Counter),
    ("memory_throttle_count", "count", Kind::Counter),
];

/// Returns none where the kernel has no ZFS.
pub(super) fn arcstats(_: Option<&Path>) -> ProbeResult {
    if !Path::new(ARCSTATS).exists() {
        return Ok(None);
    }
    let columns = FIELDS.iter().map(|(name, unit, kind)| column(*name, unit, *kind)).collect();
    Ok(fixed_columns(EACH_SAMPLE, columns, || {
        let text = read(ARCSTATS)?;
        Ok(FIELDS.iter().map(|(name, ..)| arc_value(&text, name).map(float)).collect())
    }))
}

/// Parses a line `name type value`.
fn arc_value(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some(name)).then(|| words.nth(1))??.parse().ok()
    })
}

/// `zpool iostat POOL 1`, which runs beside the load, and its last line: means over a second.
struct Iostat {
    columns: Vec<Column>,
    child: Child,
    reader: Option<JoinHandle<()>>,
    last: Arc<Mutex<Option<Vec<Option<f64>>>>>,
}

/// Returns none if the data is not on ZFS.
pub(super) fn iostat(data: Option<&Path>) -> ProbeResult {
    let Some(data) = data else { return Ok(None) };
    let facts = pgdyno_facts::storage("", data).map_err(|e| ProbeError::Directory(Arc::new(e)))?;
    if !matches!(facts.filesystem.as_str(), "zfs" | "fuse.zfs") {
        return Ok(None);
    }
    let pool = pool_of(&facts.source).to_owned();
    let failed = || ProbeError::start(format!("`zpool iostat {pool} 1`"));
    let (out, log) = std::io::pipe().map_err(failed())?;
    let args = ["iostat", &pool, "1"];
    let program = Program { path: Path::new("zpool"), args: &args, account: None };
    let child = program.start(File::from(OwnedFd::from(log))).map_err(failed())?;
    let last = Arc::new(Mutex::new(None));
    let reader = {
        let (last, pool) = (Arc::clone(&last), pool.clone());
        std::thread::spawn(move || {
            let lines = BufReader::new(out).lines().map_while(Result::ok);
            // The first line is the mean since the pool's import.
            for values in lines.filter_map(|line| pool_line(&line, &pool)).skip(1) {
                *last.lock().unwrap_or_else(PoisonError::into_inner) = Some(values);
            }
        })
    };
    let columns = ["alloc", "free", "read_ops", "write_ops", "read_bytes", "write_bytes"]
        .into_iter()
        .map(|name| {
            let unit = match name {
                "read_ops" | "write_ops" => "1/s",
                "read_bytes" | "write_bytes" => "bytes/s",
                _ => "bytes",
            };
            column(format!("{pool}.{name}"), unit, Kind::Gauge)
        })
        .collect();
    Ok(Some(Box::new(Iostat { columns, child, reader: Some(reader), last })))
}

/// Parses `tank  1.50G  8.4G  0  12  102  1.2M` into six numbers. A dash is none.
fn pool_line(line: &str, pool: &str) -> Option<Vec<Option<f64>>> {
    let mut words = line.split_whitespace();
    if words.next() != Some(pool) {
        return None;
    }
    let values: Vec<Option<f64>> = words.map(amount).collect();
    (values.len() == 6).then_some(values)
}

/// Parses a number such as `1.2M`, in units of 1024.
fn amount(word: &str) -> Option<f64> {
    let split = word.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(word.len());
    let value: f64 = word.get(..split)?.parse().ok()?;
    let power = match word.get(split..)? {
        "" | "B" => 0,
        "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        "P" => 5,
        _ => return None,
    };
    Some(value * 1024f64.powi(power))
}

impl Probe for Iostat {
    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn sample(&mut self) -> Result<Vec<Option<f64>>, ProbeError> {
        if let Ok(Some(status)) = self.child.try_wait() {
            return Err(ProbeError::ProgramEnded { program: "zpool iostat", status });
        }
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(last.clone().unwrap_or_else(|| vec![None; self.columns.len()]))
    }
}

impl Drop for Iostat {
    fn drop(&mut self) {
        // A child that is not reaped keeps its pid, so the signal reaches no other process.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_in_units_of_1024_and_other_pools_are_not_ours() {
        let line = "tank        1.50G  8.40G      0     12    102  1.20M";
        let values = pool_line(line, "tank").unwrap();
        assert_eq!(values[0], Some(1.5 * 1024.0 * 1024.0 * 1024.0));
        assert_eq!((values[2], values[3]), (Some(0.0), Some(12.0)));
        assert_eq!(values[5], Some(1.2 * 1024.0 * 1024.0));
        assert_eq!(pool_line(line, "tan"), None);
        assert_eq!(pool_line("tank  -  -  0  0  0  0", "tank").unwrap()[0], None);
    }

    #[test]
    fn arcstats_lines_are_found_by_their_whole_name() {
        let text = "12 1 0x01 98 26656 5187 95\nname type data\nhits 4 12\ndemand_data_hits 4 9\n\
            size 4 1048576\n";
        assert_eq!((arc_value(text, "hits"), arc_value(text, "size")), (Some(12), Some(1_048_576)));
        assert_eq!(arc_value(text, "misses"), None);
    }
}
