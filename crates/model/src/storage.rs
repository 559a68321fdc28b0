//! A storage stack as an experiment file describes it: the backing that carries the bytes, the
//! filesystem on it, and the settings of its device. `pgdyno-storage` makes it; [`crate::facts`]
//! tells what was obtained.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::facts::SmartType;
use crate::names::names;
use crate::raid::{RaidVolume, WritePolicy};
use crate::units::{Bytes, Span};

/// `[storage.<name>]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Storage {
    /// Backing that carries the bytes.
    pub backing: Backing,
    /// Limit on the device's speed; none leaves it as it is.
    pub limit: Option<Limit>,
    /// Filesystem to make. None for a directory, which is used as it is, and for a RAM disk, which
    /// is a tmpfs.
    pub filesystem: Option<FilesystemChoice>,
    /// Name of the storage that holds `pg_wal`; none leaves it in PGDATA.
    pub wal: Option<String>,
    /// Tables that lie on other storages: the storage's name, and the tables in a tablespace on it.
    pub tablespaces: BTreeMap<String, Vec<String>>,
    /// Settings of the device under it while trials run; put back afterwards.
    pub device: DeviceSettings,
    /// Whether trials judge each commit by the flushes of the disk under `pg_wal`, which must be
    /// emulated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub flush_accounting: bool,
    /// Device type by which smartctl reaches the disk; none lets smartctl find out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smart: Option<SmartType>,
}

/// Carrier of a storage's bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Backing {
    /// An existing directory, used as it is; none means pgdyno's own.
    Directory(Option<PathBuf>),
    /// A file of pgdyno's behind a loop device.
    Loop(LoopFile),
    /// A block device or partition, whose contents are lost.
    Device(PathBuf),
    /// Main memory: a tmpfs, or with a filesystem a loop device over a file in a tmpfs.
    Ram(Bytes),
    /// A disk that pgdyno emulates, behind a loop device.
    Emulated(EmulatedDisk),
    /// Several backings as one volume, striped.
    Raid0(Raid0),
}

impl Default for Backing {
    fn default() -> Self {
        Self::Directory(None)
    }
}

/// A file behind a loop device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoopFile {
    /// The directory that the file is made in; none means pgdyno's own.
    pub directory: Option<PathBuf>,
    /// The loop device's size. The file is larger by `offset`, and allocated in full.
    pub size: Bytes,
    /// Logical sector size of the loop device (bytes): 512 or 4096; none means the kernel's
    /// default.
    pub sector_size: Option<u32>,
    /// Whether the loop device bypasses the page cache of the filesystem that holds the file.
    pub direct_io: bool,
    /// Offset of the loop device in the file (bytes); none: 0, which is aligned. Old partition
    /// tables began the first partition at 63 sectors of 512 bytes, so that each block of the
    /// filesystem lies on two of the disk's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<Bytes>,
}

/// A disk that pgdyno emulates, with a volatile cache, known latencies and a power that can be cut.
/// No figure measured on it is a real device's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EmulatedDisk {
    /// Directory that the disk's files are made in; none means pgdyno's own.
    pub directory: Option<PathBuf>,
    /// Size. Durable data lies in a sparse file.
    pub size: Bytes,
    /// Logical sector size of the loop device (bytes): 512 or 4096; none means the kernel's
    /// default.
    pub sector_size: Option<u32>,
    /// Room for unflushed writes in main memory. Beyond it, the oldest go to the medium, as a drive
    /// does it.
    pub cache: Bytes,
    /// Latency of requests.
    pub latency: DiskLatency,
    /// Whether every write is kept, so that the disk can be shown as it was after any of them.
    pub log: bool,
    /// Seed of everything drawn at random: writes that survive a cut, places of tears, requests
    /// that fail.
    #[cfg_attr(feature = "schema", schemars(with = "crate::page_schema::Seed"))]
    pub seed: u64,
}

impl Default for EmulatedDisk {
    fn default() -> Self {
        Self {
            directory: None,
            size: Bytes(4 << 30),
            sector_size: None,
            cache: Bytes(64 << 20),
            latency: DiskLatency::default(),
            log: false,
            seed: 1,
        }
    }
}

/// Latency that an emulated disk adds to a request of any size, beside the cost of the emulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiskLatency {
    /// Latency of a read.
    pub read: Span,
    /// Latency of a write into the cache.
    pub write: Span,
    /// Latency of a cache flush.
    pub flush: Span,
    /// Requests served at a time (count), 1 for a hard disk's arm; the others wait for their turn.
    /// None: no limit.
    pub parallel: Option<NonZeroU32>,
}

impl fmt::Display for DiskLatency {
    /// Writes the latencies in words; nothing if none is set.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each = [("read", self.read), ("write", self.write), ("flush", self.flush)];
        let mut told: Vec<String> = each
            .into_iter()
            .filter(|(_, span)| !span.0.is_zero())
            .map(|(what, span)| format!("{span} a {what}"))
            .collect();
        told.extend(self.parallel.map(|n| match n.get() {
            1 => "one request at a time".into(),
            n => format!("{n} requests at a time"),
        }));
        f.write_str(&told.join(", "))
    }
}

/// Striping over several backings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Raid0 {
    /// The members: loop files, devices and emulated disks.
    pub members: Vec<Backing>,
    /// Program or filesystem that stripes; none: the filesystem where it can (btrfs, zfs), else
    /// mdadm, else LVM.
    pub by: Option<Striper>,
    /// Bytes on one member before the next has its turn; none means the striper's default.
    pub chunk: Option<Bytes>,
}

/// Program or filesystem that joins the members of a RAID-0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Striper {
    /// Linux software RAID.
    Mdadm,
    /// A striped logical volume.
    Lvm,
    /// btrfs itself, `-d raid0`.
    Btrfs,
    /// A zpool of several vdevs.
    Zfs,
}

names!(Striper);

/// Upper bounds for a device's traffic, set through a control group. They let bursts through and
/// are no stand-in for a slow disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Limit {
    /// Reads a second.
    pub read_iops: Option<u64>,
    /// Writes a second.
    pub write_iops: Option<u64>,
    /// Bytes read a second.
    pub read_bps: Option<u64>,
    /// Bytes written a second.
    pub write_bps: Option<u64>,
}

impl fmt::Display for Limit {
    /// `500 writes/s, 1000000 bytes written/s`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each = [
            (self.read_iops, "reads/s"),
            (self.write_iops, "writes/s"),
            (self.read_bps, "bytes read/s"),
            (self.write_bps, "bytes written/s"),
        ];
        let told = each.iter().filter_map(|(most, unit)| Some(format!("{} {unit}", (*most)?)));
        f.write_str(&told.collect::<Vec<_>>().join(", "))
    }
}

/// A filesystem to be made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FilesystemChoice {
    /// Name for `mount -t`: `ext4`, `xfs`, `zfs`, …; `overlay` over a directory; `none` is as if no
    /// filesystem were asked for.
    pub name: String,
    /// Further arguments for the filesystem's mkfs program.
    pub mkfs: Vec<String>,
    /// Mount options, beside pgdyno's defaults for it.
    pub mount: Vec<String>,
    /// ZFS: properties of the pool (`zpool create -o`).
    pub pool: BTreeMap<String, String>,
    /// ZFS: properties of the dataset (`zfs create -o`).
    pub dataset: BTreeMap<String, String>,
}

/// A made filesystem, as the kernel and the filesystem's own programs describe it once it is
/// mounted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FilesystemFacts {
    /// Type as mounted, from `/proc/self/mountinfo`: `ext3`, `xfs`, `fuse.zfs`, …
    pub kind: String,
    /// Driver that serves it: the kernel's (`ext4` for an ext2), `OpenZFS 2.1.11`, `zfs-fuse`.
    pub driver: String,
    /// Programs that made it, as they call themselves: `mke2fs 1.47.0 (5-Feb-2023)`.
    pub tools: String,
    /// Mount point.
    pub mount_point: String,
    /// The mount's source as the kernel names it.
    pub source: String,
    /// Mount and superblock options, from `/proc/self/mountinfo` and, where the driver has such a
    /// file, from its own list, which names the defaults too.
    pub options: Vec<String>,
    /// Geometry, features and properties, named as the filesystem's own programs name them.
    pub properties: BTreeMap<String, String>,
}

/// A storage stack as it was obtained.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StackFacts {
    /// Block devices that carry it.
    pub devices: Vec<DeviceFacts>,
    /// Striper that joins them, if there are several.
    pub striper: Option<Striper>,
    /// The filesystem that was made; none where a directory is used as it is, or a tmpfs.
    pub filesystem: Option<FilesystemFacts>,
    /// Settings of the devices that were changed: name, and value as it reads now.
    pub settings: Vec<(String, String)>,
    /// Remarks for readers of the figures.
    pub notes: Vec<String>,
}

/// A block device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceFacts {
    /// Path.
    pub path: String,
    /// The kernel's name: `nvme0n1`.
    pub name: String,
    /// Name in `/dev/disk/by-id`, where it has one.
    pub by_id: Option<String>,
    /// The disk's model, where sysfs tells.
    pub model: Option<String>,
    /// The disk's serial number, or the first 12 hexadecimal digits of its SHA-256.
    pub serial: Option<String>,
    /// Size of the device.
    pub size: Bytes,
}

/// Values of kernel modules' parameters, by the module's name and the parameter's.
pub type ModuleParameters = BTreeMap<String, BTreeMap<String, String>>;

fn overlaid(under: &ModuleParameters, over: &ModuleParameters) -> ModuleParameters {
    let mut both = under.clone();
    for (module, parameters) in over {
        both.entry(module.clone()).or_default().extend(parameters.clone());
    }
    both
}

/// Settings of a block device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceSettings {
    /// `queue/scheduler`: `none`, `mq-deadline`, `bfq`, `kyber`, …
    pub scheduler: Option<String>,
    /// `queue/read_ahead_kb` (KiB).
    pub read_ahead_kb: Option<u32>,
    /// `queue/nr_requests` (count).
    pub nr_requests: Option<u32>,
    /// The drive's volatile write cache, on or off (`hdparm -W`, `nvme set-feature`, else
    /// `queue/write_cache`).
    pub write_cache: Option<bool>,
    /// Whether free blocks are trimmed before every trial.
    pub trim: bool,
    /// Parameters of kernel modules, by module and name. They hold for the whole host.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub module_parameters: ModuleParameters,
    /// The volume of a RAID controller that carries the storage; none where there is none, or where
    /// its cache is left as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raid_volume: Option<RaidVolume>,
    /// Policy of that volume's write cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raid_cache: Option<WritePolicy>,
    /// Commands of the user, for settings that pgdyno does not know.
    pub hook: Option<Hook>,
}

impl DeviceSettings {
    /// Returns these settings, replaced by those of `over` where it has any.
    pub fn overlaid(&self, over: &Self) -> Self {
        Self {
            scheduler: over.scheduler.clone().or_else(|| self.scheduler.clone()),
            read_ahead_kb: over.read_ahead_kb.or(self.read_ahead_kb),
            nr_requests: over.nr_requests.or(self.nr_requests),
            write_cache: over.write_cache.or(self.write_cache),
            trim: self.trim || over.trim,
            module_parameters: overlaid(&self.module_parameters, &over.module_parameters),
            raid_volume: over.raid_volume.or(self.raid_volume),
            raid_cache: over.raid_cache.or(self.raid_cache),
            hook: over.hook.clone().or_else(|| self.hook.clone()),
        }
    }
}

/// Commands of the user that set something pgdyno does not know. Program and arguments, no shell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hook {
    /// Command that applies the setting.
    pub set: Vec<String>,
    /// Command that prints the setting; its output is stored with every trial.
    pub read_back: Vec<String>,
    /// Expected output of `read_back` once `set` has run (surrounding blanks do not matter); none:
    /// any output is right.
    pub expect: Option<String>,
    /// Command that puts the setting back as it was.
    pub restore: Vec<String>,
}

impl Storage {
    /// Creates the storage of an existing directory, used as it is; without a path, pgdyno's own.
    pub fn directory(path: Option<PathBuf>) -> Self {
        Self { backing: Backing::Directory(path), ..Self::default() }
    }

    /// Whether anything is made at all; a plain directory is there already.
    pub fn is_made(&self) -> bool {
        !matches!(self.backing, Backing::Directory(_)) || self.filesystem.is_some()
    }

    /// Returns the directory that the user named for data or loop files, if any.
    pub fn named_directory(&self) -> Option<&Path> {
        match &self.backing {
            Backing::Directory(path) => path.as_deref(),
            Backing::Loop(file) => file.directory.as_deref(),
            Backing::Emulated(disk) => disk.directory.as_deref(),
            Backing::Device(_) | Backing::Ram(_) | Backing::Raid0(_) => None,
        }
    }

    /// Returns every block device of the user that is written to.
    pub fn devices(&self) -> Vec<&Path> {
        self.backing.devices()
    }

    /// Returns the names of the other storages that a cluster on this one uses.
    pub fn others(&self) -> BTreeSet<&str> {
        self.wal.iter().chain(self.tablespaces.keys()).map(String::as_str).collect()
    }
}

impl Backing {
    /// Returns every block device of the user in the backing.
    pub fn devices(&self) -> Vec<&Path> {
        match self {
            Self::Device(path) => vec![path],
            Self::Raid0(raid) => raid.members.iter().flat_map(Self::devices).collect(),
            Self::Directory(_) | Self::Loop(_) | Self::Ram(_) | Self::Emulated(_) => Vec::new(),
        }
    }

    /// Returns every emulated disk in the backing.
    pub fn emulated(&self) -> Vec<&EmulatedDisk> {
        match self {
            Self::Emulated(disk) => vec![disk],
            Self::Raid0(raid) => raid.members.iter().flat_map(Self::emulated).collect(),
            Self::Directory(_) | Self::Loop(_) | Self::Ram(_) | Self::Device(_) => Vec::new(),
        }
    }
}

impl Limit {
    /// Whether nothing is limited.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
