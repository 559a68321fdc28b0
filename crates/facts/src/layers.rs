//! Names of all block devices under a directory, layer by layer.
//!
//! A loop device leads to the devices of its file, a RAID, LVM or other mapped device to its
//! members, a partition to its disk, and a ZFS pool to its vdevs.

use std::path::{Path, PathBuf};

use pgdyno_exec::tool::run_tool;
use pgdyno_model::facts::StorageFacts;
use pgdyno_model::units::Bytes;

use crate::filesystem::is_zfs;

/// The block devices under one or several directories.
#[derive(Debug, Default)]
pub struct Layers {
    /// Kernel names, upper layers first, none twice.
    pub devices: Vec<String>,
    /// Paths that could not be followed further, each with the reason.
    pub unknown: Vec<String>,
}

impl Layers {
    /// Adds the devices under `path`.
    pub fn add_path(&mut self, path: &Path) {
        match crate::storage("", path) {
            Ok(facts) if is_zfs(&facts.filesystem) => self.add_pool(&facts.source),
            Ok(facts) if facts.devices.is_empty() => self.unknown.push(format!(
                "{} lies on {}, which has no block device",
                path.display(),
                facts.filesystem
            )),
            Ok(facts) => self.add_devices(&facts),
            Err(e) => self.unknown.push(e.to_string()),
        }
    }

    /// Adds the devices of `facts`. A loop device's file may lie on a filesystem over several.
    fn add_devices(&mut self, facts: &StorageFacts) {
        for device in facts.layers() {
            if !self.devices.contains(&device.name) {
                self.devices.push(device.name.clone());
                device.backing.iter().for_each(|backing| self.add_path(Path::new(&backing.file)));
            }
        }
    }

    /// Adds the vdevs of the ZFS pool of `dataset`.
    fn add_pool(&mut self, dataset: &str) {
        let pool = pool_of(dataset);
        let status = match run_tool("zpool", &["status", pool]) {
            Ok(status) => status,
            Err(e) => {
                return self.unknown.push(format!("the devices of pool {pool} are unknown: {e}"));
            }
        };
        for name in vdevs(&status) {
            let path = if name.starts_with('/') {
                PathBuf::from(name)
            } else {
                Path::new("/dev").join(name)
            };
            let real = path.canonicalize().unwrap_or(path);
            match real.strip_prefix("/dev").ok() {
                // mirror-0, raidz1-0 and the like are no devices: their members follow.
                Some(_) => self.add_devices(&crate::device(&real, Bytes(0))),
                None => self.add_path(&real),
            }
        }
    }
}

/// Returns the pool of a dataset, such as `tank` for `tank/data/set`.
pub fn pool_of(dataset: &str) -> &str {
    dataset.split('/').next().unwrap_or(dataset)
}

/// Parses the vdevs, without the pool itself, from the output of `zpool status`.
fn vdevs(status: &str) -> Vec<&str> {
    status
        .lines()
        .skip_while(|line| !line.trim_start().starts_with("NAME "))
        .skip(2)
        .take_while(|line| !line.trim().is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pools_members_are_read_from_its_status() {
        let status = "  pool: tank\n state: ONLINE\n scrub: none requested\nconfig:\n\n\
            \tNAME                STATE     READ WRITE CKSUM\n\
            \ttank                ONLINE       0     0     0\n\
            \t  mirror-0          ONLINE       0     0     0\n\
            \t    /srv/a.img      ONLINE       0     0     0\n\
            \t    vdb             ONLINE       0     0     0\n\nerrors: No known data errors\n";
        assert_eq!(vdevs(status), ["mirror-0", "/srv/a.img", "vdb"]);
        assert_eq!(pool_of("tank/pgdyno/x"), "tank");
    }

    #[test]
    fn what_lies_under_a_path_ends_at_a_disk_or_says_why_not() {
        let mut layers = Layers::default();
        layers.add_path(Path::new("/proc"));
        assert!(
            layers.devices.is_empty() && layers.unknown[0].contains("no block device"),
            "{layers:?}"
        );
        let mut layers = Layers::default();
        layers.add_path(Path::new("/does/not/exist"));
        assert_eq!(layers.unknown.len(), 1);
    }
}
