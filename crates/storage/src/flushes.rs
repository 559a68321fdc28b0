//! Flushes that the kernel counts for a device.

use std::path::Path;

use pgdyno_exec::mountinfo::mounted_at;

/// Flushes that the device under the filesystem mounted at `point` has completed since it was
/// attached (count); none where the kernel counts none.
///
/// Source: the 16th field of `/sys/block/DEVICE/stat`, since Linux 5.5
/// (Documentation/block/stat.rst).
pub fn flushes_completed(point: &Path) -> Option<u64> {
    let device = mounted_at(point).ok()??.device()?;
    let text = std::fs::read_to_string(Path::new("/sys/block").join(device).join("stat")).ok()?;
    flushes(&text)
}

fn flushes(stat: &str) -> Option<u64> {
    stat.split_whitespace().nth(15)?.parse().ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_sixteenth_field_counts_flushes() {
        let stat = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 4711 17\n";
        assert_eq!(super::flushes(stat), Some(4711));
        assert_eq!(super::flushes("1 2 3 4 5 6 7 8 9 10 11"), None, "before Linux 5.5");
    }
}
