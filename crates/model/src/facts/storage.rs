//! Facts about a storage: the filesystem of its directory, and the block devices down to the disks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{SmartReport, SmartType};
use crate::storage::{StackFacts, Storage};
use crate::units::Bytes;

/// A storage's directory, with the filesystem and the devices that hold it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StorageFacts {
    /// Name in the experiment file.
    pub name: String,
    /// Directory of the storage.
    pub directory: String,
    /// The mount's filesystem type, from `/proc/self/mountinfo`.
    pub filesystem: String,
    /// Mount point of the filesystem.
    pub mount_point: String,
    /// Mount and superblock options.
    pub mount_options: String,
    /// The mount's source as the kernel names it.
    pub source: String,
    /// The block device's kernel name (`vda1`), where there is one.
    pub device: Option<String>,
    /// The whole disk that the device is part of (`vda`), or the device itself.
    pub disk: Option<String>,
    /// The disk's model, where sysfs tells.
    pub model: Option<String>,
    /// `true` for spinning media, as the kernel believes.
    pub rotational: Option<bool>,
    /// The I/O scheduler in use.
    pub scheduler: Option<String>,
    /// `write back` or `write through`, as the kernel believes.
    pub write_cache: Option<String>,
    /// The filesystem's size.
    pub size: Bytes,
    /// Room that an unprivileged user may still fill.
    pub available: Bytes,
    /// The filesystem's block size (bytes), from statvfs.
    pub block_bytes: Option<u64>,
    /// Whether new files in the directory are written in place on a copy-on-write filesystem
    /// (`chattr +C`).
    pub no_copy_on_write: Option<bool>,
    /// Further attributes that new files in the directory inherit: those of chattr(1) (`+S`), and
    /// btrfs's properties (`compression=zstd`).
    #[serde(default)]
    pub attributes: Vec<String>,
    /// Other properties of the filesystem, by its own names: ZFS's properties, btrfs's profiles.
    #[serde(default)]
    pub geometry: BTreeMap<String, String>,
    /// Facts that could not be found out, and why.
    #[serde(default)]
    pub unavailable: Vec<String>,
    /// Devices that the filesystem lies on, each with the devices under it.
    #[serde(default)]
    pub devices: Vec<BlockDevice>,
    /// Filesystems beneath the directory's own, upper ones first; none in records of earlier
    /// versions.
    #[serde(default)]
    pub beneath: Vec<FilesystemBeneath>,
    /// Stack that the experiment asked for; none in records from before pgdyno knew stacks, and
    /// where no experiment asks.
    pub asked: Option<Storage>,
    /// Stack that was made, as read once it stood.
    pub obtained: Option<StackFacts>,
    /// Why the storage could not be made; nothing else is known of it then.
    pub failure: Option<String>,
    /// Whether it failed because this machine lacks something (kernel, program, root): its trials
    /// are left out instead of failed.
    #[serde(default)]
    pub not_available_here: bool,
}

/// A filesystem beneath another one: it holds an overlay's upper directory, or a loop device's
/// file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FilesystemBeneath {
    /// The upper directory or the file.
    pub holds: String,
    /// Filesystem type, from `/proc/self/mountinfo`.
    pub filesystem: String,
    /// Mount point.
    pub mount_point: String,
    /// Mount and superblock options.
    pub mount_options: String,
}

/// A mounted filesystem that has a directory's files: the directory's own, or one beneath it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MountedFilesystem<'a> {
    /// Filesystem type.
    pub filesystem: &'a str,
    /// Mount point.
    pub mount_point: &'a str,
    /// Mount and superblock options.
    pub mount_options: &'a str,
}

impl<'a> MountedFilesystem<'a> {
    /// Whether it keeps its files in main memory.
    pub fn is_memory(&self) -> bool {
        matches!(self.filesystem, "tmpfs" | "ramfs")
    }

    /// Returns the mount option by which it passes no flush on to what it lies on.
    pub fn unflushed_by(&self) -> Option<&'a str> {
        // ext4(5), btrfs(5), xfs(5) before Linux 4.19; overlayfs, whose kernels from 6.18 on show
        // `volatile` as `fsync=volatile`.
        const OPTIONS: [&str; 5] =
            ["barrier=0", "nobarrier", "barrier=none", "volatile", "fsync=volatile"];
        self.mount_options.split(',').find(|option| OPTIONS.contains(option))
    }
}

/// Kind of a block device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum DeviceKind {
    /// A disk, or what a hypervisor or controller shows as one.
    #[default]
    Disk,
    /// A part of a disk.
    Partition,
    /// Linux software RAID.
    Md,
    /// A logical volume.
    Lvm,
    /// Encrypted by dm-crypt.
    Crypt,
    /// Several paths to one disk.
    Multipath,
    /// Another device-mapper target.
    Dm,
    /// A file behind a loop device.
    Loop,
    /// Main memory: brd or zram.
    Ram,
}

impl DeviceKind {
    /// Returns the kind's name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Disk => "disk",
            Self::Partition => "partition",
            Self::Md => "software RAID",
            Self::Lvm => "logical volume",
            Self::Crypt => "encrypted",
            Self::Multipath => "multipath",
            Self::Dm => "device mapper",
            Self::Loop => "loop device",
            Self::Ram => "memory",
        }
    }
}

/// A block device, from `/sys/class/block`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct BlockDevice {
    /// The kernel's name: `nvme0n1p1`.
    pub name: String,
    /// Kind of device: disk, partition, RAID, …
    pub kind: DeviceKind,
    /// Name that users gave the device: device mapper's (`vg0-data`).
    pub label: Option<String>,
    /// Size of the device.
    pub size: Bytes,
    /// Transport: `nvme`, `virtio`, `ata`, `usb`, `scsi`, …
    pub transport: Option<String>,
    /// Vendor and model.
    pub model: Option<String>,
    /// Firmware revision.
    pub firmware: Option<String>,
    /// Serial number: `sha256:` and the first 16 hexadecimal digits, unless serials are kept.
    pub serial: Option<String>,
    /// World-wide name, treated as the serial number is.
    pub wwn: Option<String>,
    /// `true` for spinning media, as the kernel believes.
    pub rotational: Option<bool>,
    /// The I/O scheduler in use.
    pub scheduler: Option<String>,
    /// `queue/read_ahead_kb` (KiB).
    pub read_ahead_kb: Option<u64>,
    /// `queue/nr_requests` (count).
    pub nr_requests: Option<u64>,
    /// `write back` or `write through`, as the kernel believes.
    pub write_cache: Option<String>,
    /// Whether single writes can be forced to the medium (`queue/fua`).
    pub fua: Option<bool>,
    /// Logical block size (bytes).
    pub logical_block_bytes: Option<u64>,
    /// Physical block size (bytes).
    pub physical_block_bytes: Option<u64>,
    /// Smallest preferred request (bytes): a RAID's chunk.
    pub minimum_io_bytes: Option<u64>,
    /// Preferred request (bytes): a RAID's stripe; none where the device does not say.
    pub optimal_io_bytes: Option<u64>,
    /// Whether unused blocks can be discarded.
    pub discard: Option<bool>,
    /// A partition's first byte on its disk.
    pub offset: Option<Bytes>,
    /// Bytes by which its start misses the physical blocks, as the kernel computes.
    pub alignment_offset: Option<i64>,
    /// Software RAID.
    pub raid: Option<RaidFacts>,
    /// The file behind a loop device.
    pub backing: Option<LoopFacts>,
    /// A disk's health.
    pub health: Option<Health>,
    /// Devices under this one.
    pub on: Vec<BlockDevice>,
}

/// Linux software RAID, from `md/`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct RaidFacts {
    /// `raid0`, `raid1`, …
    pub level: String,
    /// Members that it should have (count).
    pub disks: Option<u32>,
    /// Members that it lacks (count).
    pub degraded: Option<u32>,
    /// Bytes on one member before the next has its turn.
    pub chunk: Option<Bytes>,
    /// `array_state`.
    pub state: Option<String>,
    /// `sync_action`: `idle`, `resync`, `recover`, `check`, …
    pub sync_action: Option<String>,
}

/// A loop device's file, from `loop/`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LoopFacts {
    /// The file.
    pub file: String,
    /// Whether the loop device bypasses the page cache of the file's filesystem.
    pub direct_io: Option<bool>,
    /// The file's own filesystem type.
    pub filesystem: Option<String>,
    /// Mount options of that filesystem.
    pub mount_options: Option<String>,
}

/// A disk's own word on its health, through `smartctl`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Health {
    /// Why the health is unknown, in smartctl's own words if it ran.
    pub unavailable: Option<String>,
    /// Overall verdict of the disk on itself.
    pub passed: Option<bool>,
    /// NVMe: bits of `critical_warning`; zero is good.
    pub critical_warning: Option<u64>,
    /// NVMe: `percentage_used` of the rated endurance; may exceed 100.
    pub percentage_used: Option<u64>,
    /// NVMe: `available_spare` (%).
    pub available_spare: Option<u64>,
    /// NVMe: level below which spare blocks are short (%).
    pub available_spare_threshold: Option<u64>,
    /// NVMe: `media_errors`.
    pub media_errors: Option<u64>,
    /// ATA: attribute 5, `Reallocated_Sector_Ct`.
    pub reallocated_sectors: Option<u64>,
    /// ATA: attribute 197, `Current_Pending_Sector`.
    pub pending_sectors: Option<u64>,
    /// Temperature (°C).
    pub temperature: Option<i64>,
    /// Hours powered on.
    pub power_on_hours: Option<u64>,
    /// Errors that the disk's own log has counted.
    pub errors_logged: Option<u64>,
    /// Device type that smartctl was told, for a disk behind a RAID controller.
    pub device_type: Option<SmartType>,
    /// Everything that smartctl says of the disk; none in records of earlier versions.
    pub report: Option<SmartReport>,
}

impl StorageFacts {
    /// Returns every device under the filesystem, the uppermost first. A device that carries
    /// several others comes once.
    pub fn layers(&self) -> Vec<&BlockDevice> {
        fn walk<'a>(devices: &'a [BlockDevice], out: &mut Vec<&'a BlockDevice>) {
            for device in devices {
                if !out.iter().any(|known| known.name == device.name) {
                    out.push(device);
                    walk(&device.on, out);
                }
            }
        }
        let mut out = Vec::new();
        walk(&self.devices, &mut out);
        out
    }

    /// Whether the storage lies on a disk that pgdyno emulates: no figure measured on it is a real
    /// device's.
    pub fn is_emulated(&self) -> bool {
        let served = |device: &BlockDevice| {
            device.backing.as_ref().is_some_and(|file| {
                file.filesystem.as_deref() == Some("fuse") && file.file.contains("/emulated-")
            })
        };
        self.asked.as_ref().is_some_and(|asked| !asked.backing.emulated().is_empty())
            || self.layers().into_iter().any(served)
    }

    /// Iterates over every filesystem that has the directory's files, the directory's own first.
    pub fn filesystems(&self) -> impl Iterator<Item = MountedFilesystem<'_>> {
        let own = MountedFilesystem {
            filesystem: &self.filesystem,
            mount_point: &self.mount_point,
            mount_options: &self.mount_options,
        };
        let beneath = self.beneath.iter().map(|beneath| MountedFilesystem {
            filesystem: &beneath.filesystem,
            mount_point: &beneath.mount_point,
            mount_options: &beneath.mount_options,
        });
        std::iter::once(own).chain(beneath)
    }

    /// Returns the filesystem or device that keeps the directory in main memory, if one does.
    pub fn memory(&self) -> Option<&str> {
        let filesystem = self.filesystems().find(MountedFilesystem::is_memory);
        let device = || self.layers().into_iter().find(|device| device.kind == DeviceKind::Ram);
        // Records of earlier versions know the disk alone.
        let is_ram = |disk: &&str| disk.starts_with("ram") || disk.starts_with("zram");
        let disk = || self.disk.as_deref().filter(is_ram);
        filesystem.map(|f| f.filesystem).or_else(|| Some(device()?.name.as_str())).or_else(disk)
    }

    /// Iterates over the filesystems that pass no flush on, each with the mount option that causes
    /// it.
    pub fn unflushed(&self) -> impl Iterator<Item = (MountedFilesystem<'_>, &str)> {
        self.filesystems().filter_map(|mounted| Some((mounted, mounted.unflushed_by()?)))
    }

    /// Returns the attributes that new files in the directory inherit, in words.
    pub fn taken_over(&self) -> Vec<String> {
        let in_place = self.no_copy_on_write.filter(|no| *no);
        let in_place = in_place.map(|_| "written in place (chattr +C)".to_owned());
        let words = |attribute: &String| match attribute.as_str() {
            "+S" => "every write synchronous (chattr +S)".to_owned(),
            "+D" => "directories synchronous (chattr +D)".to_owned(),
            "+j" => "contents through the journal (chattr +j)".to_owned(),
            "+c" => "compressed (chattr +c)".to_owned(),
            other => other.to_owned(),
        };
        in_place.into_iter().chain(self.attributes.iter().map(words)).collect()
    }

    /// Whether the mount has `option`, as a word (`noatime`) or with its value (`barrier=0`).
    pub fn has_option(&self, option: &str) -> bool {
        self.mount_options.split(',').any(|o| o == option)
    }

    /// The value of the mount option `name=value`.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.mount_options.split(',').find_map(|o| o.strip_prefix(name)?.strip_prefix('='))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_under_two_partitions_is_one_layer() {
        let device = |name: &str, on: Vec<BlockDevice>| BlockDevice {
            name: name.into(),
            on,
            ..BlockDevice::default()
        };
        let disk = || device("sda", Vec::new());
        let raid = device("md0", vec![device("sda1", vec![disk()]), device("sda2", vec![disk()])]);
        let storage = StorageFacts { devices: vec![raid], ..StorageFacts::default() };
        let names: Vec<&str> = storage.layers().iter().map(|d| d.name.as_str()).collect();
        assert_eq!(names, ["md0", "sda1", "sda", "sda2"]);
    }

    #[test]
    fn options_are_whole_words() {
        let storage = StorageFacts {
            mount_options: "rw,relatime,data=ordered".into(),
            ..StorageFacts::default()
        };
        assert!(storage.has_option("relatime") && !storage.has_option("atime"));
        assert_eq!((storage.option("data"), storage.option("dat")), (Some("ordered"), None));
    }

    #[test]
    fn a_storage_stored_by_an_older_pgdyno_still_opens() {
        let old = r#"{"name":"here","directory":"/d","filesystem":"ext4","mount_point":"/",
            "mount_options":"rw","source":"/dev/vda1","device":"vda1","disk":"vda","model":null,
            "rotational":false,"scheduler":"none","write_cache":"write back","size":10,
            "available":5}"#;
        let storage: StorageFacts = serde_json::from_str(old).unwrap();
        assert!(storage.devices.is_empty() && storage.disk.as_deref() == Some("vda"));
    }
}
