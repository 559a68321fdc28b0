//! Counters of all block devices under the data, the write-ahead log and the tablespaces, from
//! `/proc/diskstats`.

use std::path::{Path, PathBuf};

use pgdyno_facts::layers::Layers;
use pgdyno_model::telemetry::{Column, Kind};
use procfs::DiskStat;

use super::probe::{Probe, ProbeError, ProbeResult, column, float};

/// The fields after the device's name, in the order of the kernel's `Documentation/block/stat.rst`.
/// Sectors have 512 bytes on every device.
const FIELDS: &[(&str, &str, Kind)] = &[
    ("rd_ios", "count", Kind::Counter),
    ("rd_merges", "count", Kind::Counter),
    ("rd_sectors", "sectors", Kind::Counter),
    ("rd_ticks", "ms", Kind::Counter),
    ("wr_ios", "count", Kind::Counter),
    ("wr_merges", "count", Kind::Counter),
    ("wr_sectors", "sectors", Kind::Counter),
    ("wr_ticks", "ms", Kind::Counter),
    ("in_flight", "count", Kind::Gauge),
    ("io_ticks", "ms", Kind::Counter),
    ("time_in_queue", "ms", Kind::Counter),
    ("dc_ios", "count", Kind::Counter),
    ("dc_merges", "count", Kind::Counter),
    ("dc_sectors", "sectors", Kind::Counter),
    ("dc_ticks", "ms", Kind::Counter),
    ("fl_ios", "count", Kind::Counter),
    ("fl_ticks", "ms", Kind::Counter),
];

struct Diskstats {
    devices: Vec<String>,
    columns: Vec<Column>,
    /// The last value and the sum of wraps, by column.
    unwrapped: Vec<(f64, f64)>,
    unknown: Vec<String>,
    gone: Vec<String>,
}

pub(super) fn make(data: Option<&Path>) -> ProbeResult {
    let data = data.ok_or(ProbeError::UnknownData)?;
    let mut layers = Layers::default();
    layers.add_path(data);
    match elsewhere(data) {
        Ok(places) => places.iter().for_each(|place| layers.add_path(place)),
        Err(e) => layers.unknown.push(e.to_string()),
    }
    if layers.devices.is_empty() {
        return Err(ProbeError::NoDevice(layers.unknown));
    }
    let Layers { devices, unknown } = layers;
    let columns: Vec<Column> = devices
        .iter()
        .flat_map(|d| {
            FIELDS.iter().map(move |(name, unit, kind)| column(format!("{d}.{name}"), unit, *kind))
        })
        .collect();
    let unwrapped = vec![(0.0, 0.0); columns.len()];
    Ok(Some(Box::new(Diskstats { devices, columns, unwrapped, unknown, gone: Vec::new() })))
}

/// Returns the targets of the links in PGDATA: the write-ahead log and the tablespaces.
fn elsewhere(data: &Path) -> Result<Vec<PathBuf>, ProbeError> {
    let mut links = Vec::new();
    for (name, inside) in [("pg_wal", false), ("pg_tblspc", true)] {
        let path = data.join(name);
        // Another directory on the same device may stand for PGDATA, and has neither.
        if !path.try_exists().map_err(ProbeError::read(&path))? {
            continue;
        }
        if inside {
            for entry in std::fs::read_dir(&path).map_err(ProbeError::read(&path))? {
                links.push(entry.map_err(ProbeError::read(&path))?.path());
            }
        } else {
            links.push(path);
        }
    }
    links.into_iter().map(|link| link.canonicalize().map_err(ProbeError::read(&link))).collect()
}

impl Probe for Diskstats {
    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn sample(&mut self) -> Result<Vec<Option<f64>>, ProbeError> {
        let stats = procfs::diskstats().map_err(ProbeError::procfs("/proc/diskstats"))?;
        let mut values = Vec::with_capacity(self.columns.len());
        for device in &self.devices {
            if let Some(stat) = stats.iter().find(|stat| stat.name == *device) {
                values.extend(fields(stat));
            } else {
                values.extend(FIELDS.iter().map(|_| None));
                if !self.gone.contains(device) {
                    self.gone.push(device.clone());
                }
            }
        }
        for ((value, column), (last, wrapped)) in
            values.iter_mut().zip(&self.columns).zip(&mut self.unwrapped)
        {
            if let Some(value) = value.as_mut().filter(|_| column.unit == "ms") {
                *value = unwrap(*value, last, wrapped);
            }
        }
        Ok(values)
    }

    fn missing_data(&self) -> Option<String> {
        let gone = self.gone.iter().map(|d| format!("{d} was gone from /proc/diskstats at times"));
        let all: Vec<String> = self.unknown.iter().cloned().chain(gone).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

/// Adds the wraps of a counter of milliseconds, which the kernel prints as 32 bits (block/genhd.c).
/// They overflow after 49.7 days.
///
/// A fall from the upper quarter to the lower counts as a wrap. Any other fall is a device that was
/// created anew.
fn unwrap(value: f64, last: &mut f64, wrapped: &mut f64) -> f64 {
    const FULL: f64 = 4_294_967_296.0;
    if *last > 0.75 * FULL && value < 0.25 * FULL {
        *wrapped += FULL;
    }
    *last = value;
    value + *wrapped
}

/// Returns the values of one device, in the order of [`FIELDS`]. Kernels before 5.5 have fewer.
fn fields(stat: &DiskStat) -> [Option<f64>; FIELDS.len()] {
    [
        Some(stat.reads),
        Some(stat.merged),
        Some(stat.sectors_read),
        Some(stat.time_reading),
        Some(stat.writes),
        Some(stat.writes_merged),
        Some(stat.sectors_written),
        Some(stat.time_writing),
        Some(stat.in_progress),
        Some(stat.time_in_progress),
        Some(stat.weighted_time_in_progress),
        stat.discards,
        stat.discards_merged,
        stat.sectors_discarded,
        stat.time_discarding,
        stat.flushes,
        stat.time_flushing,
    ]
    .map(|value| value.map(float))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_kernels_line_leaves_the_newer_fields_empty() {
        let fields = |line| fields(&DiskStat::from_line(line).unwrap());
        let old = fields(" 254 0 vda 1 2 3 4 5 6 7 8 9 10 11");
        assert_eq!((old[4], old[10], old[11], old[16]), (Some(5.0), Some(11.0), None, None));
        let new = fields(" 254 1 vda1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 16 17");
        assert_eq!(new[16], Some(17.0));
    }

    #[test]
    fn a_32_bit_counter_that_wraps_goes_on_growing_and_one_that_starts_anew_falls() {
        let (mut last, mut wrapped) = (0.0, 0.0);
        let read: Vec<f64> = [4_294_967_000.0, 4.0, 1_004.0, 0.0]
            .into_iter()
            .map(|v| unwrap(v, &mut last, &mut wrapped))
            .collect();
        assert_eq!(read[1] - read[0], 300.0);
        assert_eq!(read[2] - read[1], 1000.0);
        assert!(read[3] < read[2], "a device made anew is no wrap");
    }
}
