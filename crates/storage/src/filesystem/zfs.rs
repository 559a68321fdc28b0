//! ZFS: OpenZFS in the kernel, or zfs-fuse in user space, whichever answers; the record tells which
//! it was.
//!
//! A pool of the volume's devices with one dataset in it, `data`, which is mounted by ZFS itself.
//! The pool is entered in no cache file, so that nothing imports it again at the next boot.

use std::collections::BTreeMap;
use std::fs;

use pgdyno_exec::mount::Mount;
use pgdyno_exec::pool::is_in_kernel;
use pgdyno_exec::tool::run_tool;
use pgdyno_exec::undo::Undo;
use pgdyno_exec::{Step, StepError, mountinfo};
use pgdyno_model::storage::FilesystemFacts;
use pgdyno_model::units::Bytes;

use super::options::size;
use super::{Filesystem, FilesystemError, Tool, Volume, installed};

/// ZFS.
pub(super) struct Zfs;

/// Returns the dataset that PostgreSQL lies on.
fn dataset(volume: &Volume<'_>) -> String {
    format!("{}/data", volume.label)
}

/// Returns the user's properties, and before them pgdyno's where the user names none of its own.
fn properties<'a>(
    own: &[(&'a str, &'a str)],
    user: &'a BTreeMap<String, String>,
) -> Vec<(&'a str, &'a str)> {
    let kept = own.iter().copied().filter(|(name, _)| !user.contains_key(*name));
    kept.chain(user.iter().map(|(name, value)| (name.as_str(), value.as_str()))).collect()
}

fn pool_properties<'a>(volume: &Volume<'a>) -> Vec<(&'a str, &'a str)> {
    properties(&[("cachefile", "none")], &volume.choice.pool)
}

fn dataset_properties<'a>(volume: &Volume<'a>) -> Vec<(&'a str, &'a str)> {
    properties(&[("atime", "off")], &volume.choice.dataset)
}

fn flags(properties: Vec<(&str, &str)>) -> impl Iterator<Item = String> {
    properties.into_iter().flat_map(|(name, value)| ["-o".to_owned(), format!("{name}={value}")])
}

fn mount_of(volume: &Volume<'_>) -> Mount {
    Mount {
        filesystem: "zfs".into(),
        source: dataset(volume).into(),
        target: volume.mount_point.to_owned(),
        options: Vec::new(),
    }
}

impl Filesystem for Zfs {
    fn name(&self) -> &'static str {
        "zfs"
    }

    fn tools(&self) -> &'static [Tool] {
        const {
            &[
                Tool::new("zpool", "zfsutils-linux", None, "makes the pool"),
                Tool::new("zfs", "zfsutils-linux", None, "makes the dataset"),
            ]
        }
    }

    fn stripes(&self) -> bool {
        true
    }

    /// `SPA_MINDEVSIZE`.
    fn least(&self, _: &Volume<'_>) -> Bytes {
        Bytes(64 << 20)
    }

    fn check(&self, volume: &Volume<'_>) -> Result<(), FilesystemError> {
        for (field, words) in [("mkfs", &volume.choice.mkfs), ("mount", &volume.choice.mount)] {
            if let Some(word) = words.first() {
                let help =
                    "set properties in `pool` (zpool create -o) and `dataset` (zfs create -o)";
                return Err(self.refuse(field, word, "ZFS is told by properties", help));
            }
        }
        for (field, names, properties) in [
            ("pool", &["cachefile", "altroot", "readonly"][..], &volume.choice.pool),
            (
                "dataset",
                &["mountpoint", "canmount", "readonly", "sharenfs", "sharesmb", "zoned"][..],
                &volume.choice.dataset,
            ),
        ] {
            if let Some(name) = properties.keys().find(|name| names.contains(&name.as_str())) {
                return Err(self.refuse(field, name, "pgdyno sets it itself", "leave it out"));
            }
        }
        match volume.chunk.filter(|_| volume.devices.len() > 1) {
            Some(chunk) => {
                let why = "it stripes record by record";
                let help =
                    "set `recordsize` in `dataset`, or stripe `by = \"mdadm\"` or `by = \"lvm\"`";
                Err(self.refuse("chunk", &chunk.to_string(), why, help))
            }
            None => Ok(()),
        }
    }

    fn check_machine(&self) -> Result<(), FilesystemError> {
        installed::installed("zfs", self.tools())?;
        match run_tool("zpool", &["list", "-H", "-o", "name"]) {
            Ok(_) => Ok(()),
            Err(StepError::Failed { output, .. }) => {
                let answer = output.lines().map(str::trim).collect::<Vec<_>>().join("; ");
                Err(FilesystemError::NoZfs { answer })
            }
            Err(e) => Err(e.into()),
        }
    }

    fn make(&self, volume: &Volume<'_>) -> Vec<Step> {
        let mut pool = vec!["create".to_owned()];
        pool.extend(flags(pool_properties(volume)));
        pool.extend(["-O", "mountpoint=none", volume.label].map(str::to_owned));
        pool.extend(volume.devices.iter().map(|d| d.display().to_string()));
        let mut data = vec!["create".to_owned()];
        let point = format!("mountpoint={}", volume.mount_point.display());
        data.extend(["-o".to_owned(), point]);
        data.extend(flags(dataset_properties(volume)));
        data.push(dataset(volume));
        vec![super::contract::run("zpool", pool, volume), super::contract::run("zfs", data, volume)]
    }

    fn take_down(&self, volume: &Volume<'_>) -> Vec<Step> {
        // The unmount first: it says who still uses it, and it also ends the mount of a zfs-fuse
        // that has died.
        vec![
            super::unmount(&mount_of(volume)),
            Step::Undo(Undo::DestroyPool { name: volume.label.to_owned() }),
        ]
    }

    fn read_back(&self, volume: &Volume<'_>) -> Result<FilesystemFacts, FilesystemError> {
        let dataset = dataset(volume);
        let table = |source| FilesystemError::Io { path: "/proc/self/mountinfo".into(), source };
        let mounted = mountinfo::mounted_at(volume.mount_point).map_err(table)?;
        let mounted = mounted
            .filter(|m| m.source == dataset && m.filesystem.ends_with("zfs"))
            .ok_or_else(|| FilesystemError::NotMounted {
                filesystem: "zfs",
                mount_point: volume.mount_point.to_owned(),
                found: format!("the dataset {dataset} is not mounted there"),
            })?;
        for (name, asked) in dataset_properties(volume) {
            let found = run_tool("zfs", &["get", "-H", "-p", "-o", "value", name, &dataset])?;
            if !same(found.trim(), asked) {
                let shown = format!("`zfs get` shows {name}={}", found.trim());
                return Err(self.not_obtained(volume, format!("{name}={asked}"), shown));
            }
        }
        for (name, asked) in pool_properties(volume) {
            let text = run_tool("zpool", &["get", name, volume.label])?;
            let found = pool_values(&text).into_values().next().unwrap_or_default();
            if !same(&found, asked) {
                let shown = format!("`zpool get` shows {name}={found}");
                return Err(self.not_obtained(volume, format!("{name}={asked}"), shown));
            }
        }
        Ok(FilesystemFacts {
            kind: mounted.filesystem.clone(),
            driver: driver(),
            tools: tools_version(),
            mount_point: mounted.point.display().to_string(),
            source: mounted.source.clone(),
            options: mounted.options(),
            properties: read_properties(volume.label, &dataset)?,
        })
    }
}

/// `OpenZFS` and the module's version, or `zfs-fuse`, which tells none.
fn driver() -> String {
    if !is_in_kernel() {
        return "zfs-fuse".into();
    }
    let version = fs::read_to_string("/sys/module/zfs/version").unwrap_or_default();
    format!("OpenZFS {}", version.trim())
}

/// As `zfs version` says; zfs-fuse's programs know no such command.
fn tools_version() -> String {
    let text = run_tool("zfs", &["version"]).unwrap_or_else(|_| "zfs-fuse".into());
    text.lines().next().unwrap_or_default().trim().to_owned()
}

/// Returns all properties of dataset and pool but those that tell what is in them; the pool's as
/// `pool.<name>`.
fn read_properties(pool: &str, dataset: &str) -> Result<BTreeMap<String, String>, FilesystemError> {
    const VOLATILE: &[&str] = &[
        "allocated",
        "available",
        "capacity",
        "compressratio",
        "createtxg",
        "creation",
        "dedupratio",
        "fragmentation",
        "free",
        "guid",
        "health",
        "leaked",
        "load_guid",
        "logicalreferenced",
        "logicalused",
        "mounted",
        "mountpoint",
        "objsetid",
        "refcompressratio",
        "referenced",
        "size",
        "snapshot_count",
        "type",
        "used",
        "written",
    ];
    let stays = |name: &str| !VOLATILE.contains(&name) && !name.starts_with("usedby");
    let text = run_tool("zfs", &["get", "-H", "-p", "-o", "property,value", "all", dataset])?;
    let of_dataset = text.lines().filter_map(|line| line.split_once('\t'));
    let mut all: BTreeMap<String, String> = of_dataset
        .filter(|(name, _)| stays(name))
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    let text = run_tool("zpool", &["get", "all", pool])?;
    let of_pool = pool_values(&text).into_iter().filter(|(name, _)| stays(name));
    all.extend(of_pool.map(|(name, value)| (format!("pool.{name}"), value)));
    Ok(all)
}

/// Returns the table of `zpool get`: pool, property, value, source, with a header; zfs-fuse knows
/// no `-H` for it.
fn pool_values(table: &str) -> BTreeMap<String, String> {
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [_pool, name, value @ .., _source] => Some(((*name).to_owned(), value.join(" "))),
            _ => None,
        }
    };
    table.lines().skip(1).filter_map(row).collect()
}

/// Tells whether a property has the value that was asked for: sizes count as numbers, no quota is
/// 0, and a feature in use is also enabled.
fn same(found: &str, asked: &str) -> bool {
    let sizes = || Some(size(found)? == size(asked.trim_end_matches(['B', 'b']))?);
    found == asked
        || sizes().unwrap_or(false)
        || matches!((found, asked), ("0", "none") | ("active", "enabled"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_zpool_get_is_read() {
        let table = "NAME  PROPERTY  VALUE  SOURCE\n\
                     pgdyno-1  ashift  12  local\n\
                     pgdyno-1  altroot  -  default\n\
                     pgdyno-1  comment  two words  local\n";
        let values = pool_values(table);
        assert_eq!(values["ashift"], "12");
        assert_eq!(values["comment"], "two words");
        assert_eq!(values.len(), 3);
    }

    #[test]
    fn a_property_in_another_spelling_is_obtained() {
        for (found, asked, equal) in [
            ("8192", "8K", true),
            ("8192", "8KB", true),
            ("off", "off", true),
            ("0", "none", true),
            ("active", "enabled", true),
            ("131072", "8K", false),
            ("on", "off", false),
            ("lzjb", "lz4", false),
        ] {
            assert_eq!(same(found, asked), equal, "{found} for {asked}");
        }
    }
}
