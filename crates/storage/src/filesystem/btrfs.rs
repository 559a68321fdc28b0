//! btrfs, which stripes over several devices by itself.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use pgdyno_exec::mountinfo::MountEntry;
use pgdyno_exec::tool::run_tool;
use pgdyno_facts::Tree;

use super::block::{self, BlockFilesystem, Driver};
use super::block_size::BlockSize;
use super::options::{MountRule, Shown};
use super::{FilesystemError, FsckProgram, Tool};

const LABEL: &str = "by its label pgdyno knows again what it made";

pub(super) static BTRFS: BlockFilesystem = BlockFilesystem {
    name: "btrfs",
    tools: &[
        Tool::new("mkfs.btrfs", "btrfs-progs", Some("btrfs-progs"), "makes it"),
        Tool::new("btrfs", "btrfs-progs", Some("btrfs-progs"), "tells how its blocks are laid out"),
    ],
    runs_on: "a kernel with CONFIG_BTRFS_FS, as most distributions' have it",
    fsck: FsckProgram::new("btrfs", &["check", "--readonly"], "btrfs-progs"),
    block_size: BlockSize { flags: &["-s", "--sectorsize"], larger_since: None },
    // -K: does not discard. Metadata of a striped volume keeps btrfs's own default.
    mkfs: |volume| {
        let several = volume.devices.len() > 1;
        block::arguments(if several { &["-q", "-K", "-d", "raid0"] } else { &["-q", "-K"] }, volume)
    },
    label_flag: "-L",
    label_bytes: 255,
    refused: &[
        ("--label", LABEL),
        ("-V", "it only tells the version"),
        ("--version", "it only tells the version"),
        ("-f", "it overwrites what is there"),
        ("--force", "it overwrites what is there"),
    ],
    // mkfs.btrfs 6.2.
    least: |volume| match volume.devices.len() {
        // Other profiles take other sizes.
        _ if !volume.choice.mkfs.is_empty() => 0,
        1 => 109 << 20,
        _ => 125 << 20,
    },
    stripes_by: Some("device"),
    // Since Linux 6.2 btrfs discards freed blocks while it runs, as no other does unasked.
    mount: &["nodiscard"],
    rules: &[
        MountRule { asked: "barrier", shown: Shown::Unless(&["nobarrier"]) },
        MountRule { asked: "datacow", shown: Shown::Unless(&["nodatacow"]) },
        MountRule { asked: "datasum", shown: Shown::Unless(&["nodatasum"]) },
        MountRule { asked: "treelog", shown: Shown::Unless(&["notreelog"]) },
        MountRule { asked: "acl", shown: Shown::Unless(&["noacl"]) },
        MountRule { asked: "noautodefrag", shown: Shown::Unless(&["autodefrag"]) },
        MountRule { asked: "noflushoncommit", shown: Shown::Unless(&["flushoncommit"]) },
        MountRule { asked: "nodiscard", shown: Shown::Unless(&["discard", "discard=*"]) },
        MountRule { asked: "discard=sync", shown: Shown::As(&["discard"]) },
        MountRule {
            asked: "compress=no",
            shown: Shown::Unless(&["compress=*", "compress-force=*"]),
        },
        MountRule {
            asked: "compress=none",
            shown: Shown::Unless(&["compress=*", "compress-force=*"]),
        },
        MountRule { asked: "compress", shown: Shown::As(&["compress=zlib:3"]) },
        MountRule { asked: "compress-force", shown: Shown::As(&["compress-force=zlib:3"]) },
        MountRule { asked: "space_cache", shown: Shown::As(&["space_cache=v2"]) },
        MountRule { asked: "nossd", shown: Shown::Unless(&["ssd", "ssd_spread"]) },
        MountRule { asked: "nossd_spread", shown: Shown::Unless(&["ssd_spread"]) },
        MountRule { asked: "noenospc_debug", shown: Shown::Unless(&["enospc_debug"]) },
        MountRule { asked: "commit=30", shown: Shown::Unless(&["commit=*"]) },
        MountRule { asked: "max_inline=2048", shown: Shown::Unless(&["max_inline=*"]) },
    ],
    driver: Driver::of_its_name,
    properties,
    version: ("mkfs.btrfs", "-V"),
};

/// From the kernel's folder of the filesystem in `/sys/fs/btrfs`, and the profiles from
/// `btrfs filesystem usage`.
fn properties(mounted: &MountEntry) -> Result<BTreeMap<String, String>, FilesystemError> {
    let point = mounted.point.display().to_string();
    let mut properties = profiles(&run_tool("btrfs", &["filesystem", "usage", "-b", &point])?);
    let folder = folder_of(mounted)?;
    for name in ["nodesize", "sectorsize", "checksum"] {
        if let Ok(text) = fs::read_to_string(folder.join(name)) {
            properties.insert(name.into(), text.trim().to_owned());
        }
    }
    properties.insert("features".into(), Tree::here().names(folder.join("features")).join(" "));
    properties
        .insert("devices".into(), Tree::here().names(folder.join("devices")).len().to_string());
    Ok(properties)
}

/// Returns its folder is named by its UUID, and links to its devices.
fn folder_of(mounted: &MountEntry) -> Result<PathBuf, FilesystemError> {
    let all = Path::new("/sys/fs/btrfs");
    let device = mounted.device();
    let ours =
        |folder: &PathBuf| device.as_ref().is_some_and(|d| folder.join("devices").join(d).exists());
    Tree::here().names(all).into_iter().map(|name| all.join(name)).find(ours).ok_or_else(|| {
        FilesystemError::Io {
            path: all.join("*/devices").join(device.unwrap_or_else(|| mounted.source.clone())),
            source: std::io::ErrorKind::NotFound.into(),
        }
    })
}

/// `Data,RAID0: Size:…` as `Data` = `RAID0`; two profiles at a time are both named.
fn profiles(usage: &str) -> BTreeMap<String, String> {
    let mut properties: BTreeMap<String, String> = BTreeMap::new();
    for line in usage.lines() {
        let Some((kind, profile)) =
            line.split_once(": Size:").and_then(|(head, _)| head.split_once(','))
        else {
            continue;
        };
        properties
            .entry(kind.to_owned())
            .and_modify(|p| *p = format!("{p} {profile}"))
            .or_insert_with(|| profile.to_owned());
    }
    properties
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profiles_are_read() {
        let usage = concat!(
            "Overall:\n",
            "    Device size:\t\t 629145600\n\n",
            "Data,RAID0: Size:134217728, Used:0 (0.00%)\n",
            "   /dev/loop0\t  67108864\n\n",
            "Metadata,RAID1: Size:67108864, Used:131072 (0.20%)\n",
        );
        let told = profiles(usage);
        assert_eq!(told["Data"], "RAID0");
        assert_eq!(told["Metadata"], "RAID1");
        assert_eq!(told.len(), 2);
    }
}
