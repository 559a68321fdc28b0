//! Holding a device down through a control group. The bound lets bursts through and adds no latency
//! of its own: it is no stand-in for a slow disk.

use std::fs;
use std::path::{Path, PathBuf};

use pgdyno_model::storage::Limit;

use super::error::SettingError;
use crate::cgroup;
use crate::device::identity::BlockDevice;
use crate::mountinfo::{self, MountEntry};
use crate::undo::KernelFileChange;

/// Returns the bounds that are set, as (v2's word, v1's file, value).
fn bounds(limit: &Limit) -> Vec<(&'static str, &'static str, u64)> {
    [
        ("rbps", "blkio.throttle.read_bps_device", limit.read_bps),
        ("wbps", "blkio.throttle.write_bps_device", limit.write_bps),
        ("riops", "blkio.throttle.read_iops_device", limit.read_iops),
        ("wiops", "blkio.throttle.write_iops_device", limit.write_iops),
    ]
    .into_iter()
    .filter_map(|(word, file, value)| Some((word, file, value?)))
    .collect()
}

/// Returns the control group's files that bound the traffic of `device`, each with its text before
/// and the text to write. The group is this process's own, and so its servers'.
///
/// # Errors
/// [`SettingError::NoController`]: neither version of control groups can bound block devices here.
pub fn files(limit: &Limit, device: &BlockDevice) -> Result<Vec<KernelFileChange>, SettingError> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mounts = mountinfo::mounts().unwrap_or_default();
    let (v2, v1) = (group(&groups, &mounts, None), group(&groups, &mounts, Some("blkio")));
    // Only whole disks can be held down.
    let number =
        fs::read_to_string(device.disk_sysfs().join("dev")).unwrap_or_default().trim().to_owned();
    let current =
        |file: &Path, set: &str| line_of(&fs::read_to_string(file).unwrap_or_default(), set);
    if let Some(file) = v2.as_ref().map(|g| g.join("io.max")).filter(|f| f.exists()) {
        let was = current(&file, &number);
        let value = |word: &str| {
            let asked =
                bounds(limit).into_iter().find(|(w, ..)| *w == word).map(|(.., v)| v.to_string());
            let kept = was
                .split(' ')
                .find_map(|w| w.strip_prefix(word)?.strip_prefix('='))
                .unwrap_or("max");
            format!("{word}={}", asked.unwrap_or_else(|| kept.to_owned()))
        };
        let set = format!("{number} {}", ["rbps", "wbps", "riops", "wiops"].map(value).join(" "));
        return Ok(vec![KernelFileChange { was: current(&file, &set), set: Some(set), file }]);
    }
    match &v1 {
        Some(group) if group.join("blkio.throttle.write_iops_device").exists() => Ok(bounds(limit)
            .into_iter()
            .map(|(_, name, value)| {
                let (file, set) = (group.join(name), format!("{number} {value}"));
                KernelFileChange { was: current(&file, &set), set: Some(set), file }
            })
            .collect()),
        _ => Err(SettingError::NoController { v2, v1 }),
    }
}

/// Tells whether the file is a control group's list with a line for each device.
pub fn is_list(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name == "io.max" || name.starts_with("blkio.throttle.")
}

/// Returns the line of the device that `set` begins with. A device without one gets the line that
/// lifts each of its bounds.
pub fn line_of(text: &str, set: &str) -> String {
    let number = set.split(' ').next().unwrap_or_default();
    let line = text.lines().find(|line| line.split(' ').next() == Some(number));
    let none = if set.contains("rbps=") { "rbps=max wbps=max riops=max wiops=max" } else { "0" };
    line.map_or_else(|| format!("{number} {none}"), |l| l.trim().to_owned())
}

/// Returns the folder of this process's group: of version 2, or of the version 1 hierarchy with
/// `controller`.
fn group(groups: &str, mounts: &[MountEntry], controller: Option<&str>) -> Option<PathBuf> {
    cgroup::groups(groups, mounts, controller).into_iter().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "30 23 0:26 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n\
        42 23 0:39 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    #[test]
    fn both_versions_of_control_groups_are_found() {
        let groups = "7:blkio:/a\n0::/user.slice/x.scope\n";
        let mounts = &mountinfo::parse(MOUNTS);
        assert_eq!(
            group(groups, mounts, Some("blkio")).unwrap(),
            Path::new("/sys/fs/cgroup/blkio/a")
        );
        assert_eq!(
            group(groups, mounts, None).unwrap(),
            Path::new("/sys/fs/cgroup/unified/user.slice/x.scope")
        );
        assert_eq!(group("0::/\n", mounts, Some("blkio")), None);
    }

    #[test]
    fn a_device_without_a_line_is_held_by_no_bound() {
        let v2 = "8:16 rbps=max wbps=1048576 riops=max wiops=120\n";
        assert_eq!(line_of(v2, "8:16 rbps=1 wbps=1 riops=1 wiops=1"), v2.trim());
        assert_eq!(
            line_of(v2, "8:1 rbps=1 wbps=1 riops=1 wiops=1"),
            "8:1 rbps=max wbps=max riops=max wiops=max"
        );
        assert_eq!(line_of("7:0 100\n", "7:0 50"), "7:0 100");
        assert_eq!(line_of("", "7:0 50"), "7:0 0");
    }
}
