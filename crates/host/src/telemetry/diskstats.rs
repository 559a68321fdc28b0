//! The block device under the data and the disk it is part of, from `/proc/diskstats`.

use super::{Column, Kind, Probe, Watched, column, float};

/// The fields after the device's name, as the kernel's `Documentation/block/stat.rst` orders them. Sectors have 512
/// bytes, whatever the device's own are.
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
}

pub(super) fn make(watched: &Watched) -> Result<Option<Box<dyn Probe>>, String> {
    let data = watched.data.as_deref().ok_or("the data lies on another machine")?;
    let facts = crate::facts::storage("", data).map_err(|e| e.to_string())?;
    let (Some(device), Some(disk)) = (facts.device, facts.disk) else {
        return Err(format!("{} lies on {}, which has no block device", data.display(), facts.filesystem));
    };
    let mut devices = vec![device];
    if devices[0] != disk {
        devices.push(disk);
    }
    let columns = devices
        .iter()
        .flat_map(|d| FIELDS.iter().map(move |(name, unit, kind)| column(format!("{d}.{name}"), unit, *kind)))
        .collect();
    Ok(Some(Box::new(Diskstats { devices, columns })))
}

impl Probe for Diskstats {
    fn name(&self) -> &'static str {
        "diskstats"
    }

    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn sample(&mut self) -> Result<Vec<Option<f64>>, String> {
        let text = std::fs::read_to_string("/proc/diskstats")
            .map_err(|e| format!("cannot read /proc/diskstats: {e}"))?;
        self.devices.iter().try_fold(Vec::with_capacity(self.columns.len()), |mut values, device| {
            values.extend(
                fields_of(&text, device).ok_or_else(|| format!("{device} is gone from /proc/diskstats"))?,
            );
            Ok(values)
        })
    }
}

/// The values of one device; kernels before 5.5 have fewer.
fn fields_of(text: &str, device: &str) -> Option<Vec<Option<f64>>> {
    let line = text.lines().find(|l| l.split_whitespace().nth(2) == Some(device))?;
    let mut values = line.split_whitespace().skip(3).map(|v| v.parse().ok().map(float));
    Some(FIELDS.iter().map(|_| values.next().flatten()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_kernels_line_leaves_the_newer_fields_empty() {
        let text = " 254 0 vda 1 2 3 4 5 6 7 8 9 10 11\n 254 1 vda1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 16 17\n";
        let old = fields_of(text, "vda").unwrap();
        assert_eq!((old[4], old[10], old[11], old[16]), (Some(5.0), Some(11.0), None, None));
        assert_eq!(fields_of(text, "vda1").unwrap()[16], Some(17.0));
        assert_eq!(fields_of(text, "vdb"), None);
    }
}
