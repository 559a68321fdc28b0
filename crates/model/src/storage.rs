//! A storage stack as an experiment file describes it: what carries the bytes, which filesystem
//! lies on it, and how its device is set. `pgdyno-storage` makes it; what was obtained is in
//! [`crate::facts`].

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::facts::SmartType;
use crate::raid::{RaidVolume, WritePolicy};
use crate::units::{Bytes, Span};

/// `[storage.<name>]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Storage {
    /// What carries the bytes.
    pub backing: Backing,
    /// Its speed is held down to this; none leaves it as it is.
    pub limit: Option<Limit>,
    /// The filesystem to make on it. None is right for a directory, which is used as it is, and for
    /// a RAM disk, which is a tmpfs.
    pub filesystem: Option<FilesystemChoice>,
    /// The name of the storage that holds `pg_wal`; none leaves it in PGDATA.
    pub wal: Option<String>,
    /// Tables that lie on other storages: the storage's name, and the tables in a tablespace on it.
    pub tablespaces: BTreeMap<String, Vec<String>>,
    /// How the device under it is set while trials run, put back afterwards.
    pub device: DeviceSettings,
    /// Whether trials of clusters on it judge each commit by the flushes of the disk under `pg_wal`,
    /// which is emulated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub flush_accounting: bool,
    /// How smartctl reaches the disk; none lets smartctl find out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smart: Option<SmartType>,
}

/// What carries a storage's bytes.
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
    /// Where the loop device begins in the file (bytes); none: at the file's begin, which is
    /// aligned. At 63 sectors of 512 bytes old partition tables began the first partition, so that
    /// each block of the filesystem lies on two of the disk's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<Bytes>,
}

/// A disk that pgdyno emulates: with a volatile cache, whose power can be cut, and with latencies
/// that are known. It is no real device, and what is measured on it is no real device's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EmulatedDisk {
    /// The directory that its files are made in; none means pgdyno's own.
    pub directory: Option<PathBuf>,
    /// Its size. What is durable lies in a sparse file.
    pub size: Bytes,
    /// Logical sector size of the loop device (bytes): 512 or 4096; none means the kernel's
    /// default.
    pub sector_size: Option<u32>,
    /// Room for writes that were not flushed, in main memory; over it, the oldest go to the medium,
    /// as a drive does it.
    pub cache: Bytes,
    /// How long requests take.
    pub latency: DiskLatency,
    /// Whether every write is kept, so that the disk can be had as it was after any of them.
    pub log: bool,
    /// Of all that is drawn: what survives a cut, where a write tears, which request fails.
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

/// How long an emulated disk takes for a request, however large, beside what the emulation itself
/// costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiskLatency {
    /// For a read.
    pub read: Span,
    /// For a write to come into the cache.
    pub write: Span,
    /// For making durable what was written: a cache flush.
    pub flush: Span,
    /// How many requests are served at a time, the others waiting for their turn: 1 as a hard
    /// disk's arm. None: all of them, as many as there are.
    pub parallel: Option<NonZeroU32>,
}

impl fmt::Display for DiskLatency {
    /// In words; nothing where nothing is said.
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
    /// Who stripes; none means the filesystem where it can (btrfs, zfs), else mdadm, else LVM.
    pub by: Option<Striper>,
    /// Bytes on one member before the next has its turn; none means the striper's default.
    pub chunk: Option<Bytes>,
}

/// Who joins the members of a RAID-0.
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

impl Striper {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

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

/// A filesystem to be made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FilesystemChoice {
    /// Its name, as `mount -t` wants it: `ext4`, `xfs`, `zfs`, …; `overlay` over a directory;
    /// `none` is as if none were asked for.
    pub name: String,
    /// Further arguments for the program that makes it.
    pub mkfs: Vec<String>,
    /// Mount options, beside pgdyno's defaults for it.
    pub mount: Vec<String>,
    /// ZFS: properties of the pool (`zpool create -o`).
    pub pool: BTreeMap<String, String>,
    /// ZFS: properties of the dataset (`zfs create -o`).
    pub dataset: BTreeMap<String, String>,
}

/// A made filesystem, as the kernel and its own programs told of it once it was mounted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FilesystemFacts {
    /// Its type as mounted, from `/proc/self/mountinfo`: `ext3`, `xfs`, `fuse.zfs`, …
    pub kind: String,
    /// Who serves it: the kernel's driver (`ext4` for an ext2), `OpenZFS 2.1.11`, `zfs-fuse`.
    pub driver: String,
    /// The programs that made it, as they call themselves: `mke2fs 1.47.0 (5-Feb-2023)`.
    pub tools: String,
    /// Where it is mounted.
    pub mount_point: String,
    /// The mount's source as the kernel names it.
    pub source: String,
    /// Its mount and superblock options, from `/proc/self/mountinfo` and, where the driver has such
    /// a file, from its own list, which names the defaults too.
    pub options: Vec<String>,
    /// Its geometry, features and properties, named as the filesystem's own programs name them.
    pub properties: BTreeMap<String, String>,
}

/// A storage stack as it was obtained.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StackFacts {
    /// The block devices that carry it.
    pub devices: Vec<DeviceFacts>,
    /// Who joins them, where they are several.
    pub striper: Option<Striper>,
    /// The filesystem that was made; none where a directory is used as it is, or a tmpfs.
    pub filesystem: Option<FilesystemFacts>,
    /// What was set on the devices and how it reads now: name and value.
    pub settings: Vec<(String, String)>,
    /// What a reader of the figures should know.
    pub notes: Vec<String>,
}

/// A block device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeviceFacts {
    /// Its path.
    pub path: String,
    /// The kernel's name: `nvme0n1`.
    pub name: String,
    /// Its name in `/dev/disk/by-id`, where it has one.
    pub by_id: Option<String>,
    /// The disk's model, where sysfs tells.
    pub model: Option<String>,
    /// The disk's serial number, or the first 12 hexadecimal digits of its SHA-256.
    pub serial: Option<String>,
    /// Its size.
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

/// How a block device is set.
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raid_volume: Option<RaidVolume>,
    /// The policy of that volume's write cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raid_cache: Option<WritePolicy>,
    /// The user's own commands, for what pgdyno does not know.
    pub hook: Option<Hook>,
}

impl DeviceSettings {
    /// These, and where `over` says something, what it says.
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

/// Commands of the user's that set something pgdyno knows nothing of. Program and arguments, no
/// shell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hook {
    /// Sets it.
    pub set: Vec<String>,
    /// Prints what is set; stored with every trial.
    pub read_back: Vec<String>,
    /// What `read_back` must print once `set` has run (surrounding blanks do not matter); none: it
    /// is only stored.
    pub expect: Option<String>,
    /// Puts it back as it was.
    pub restore: Vec<String>,
}

impl Storage {
    /// A directory that is used as it is.
    pub fn directory(path: Option<PathBuf>) -> Self {
        Self { backing: Backing::Directory(path), ..Self::default() }
    }

    /// Tells whether anything is made at all; a plain directory is there already.
    pub fn is_made(&self) -> bool {
        !matches!(self.backing, Backing::Directory(_)) || self.filesystem.is_some()
    }

    /// The directory that the user named to hold data or loop files, if one was.
    pub fn named_directory(&self) -> Option<&Path> {
        match &self.backing {
            Backing::Directory(path) => path.as_deref(),
            Backing::Loop(file) => file.directory.as_deref(),
            Backing::Emulated(disk) => disk.directory.as_deref(),
            Backing::Device(_) | Backing::Ram(_) | Backing::Raid0(_) => None,
        }
    }

    /// Every block device of the user's that is written to.
    pub fn devices(&self) -> Vec<&Path> {
        self.backing.devices()
    }

    /// The names of the other storages that a cluster on this one lies on as well.
    pub fn others(&self) -> BTreeSet<&str> {
        self.wal.iter().chain(self.tablespaces.keys()).map(String::as_str).collect()
    }
}

impl Backing {
    /// Every block device of the user's in it.
    pub fn devices(&self) -> Vec<&Path> {
        match self {
            Self::Device(path) => vec![path],
            Self::Raid0(raid) => raid.members.iter().flat_map(Self::devices).collect(),
            Self::Directory(_) | Self::Loop(_) | Self::Ram(_) | Self::Emulated(_) => Vec::new(),
        }
    }

    /// Every emulated disk in it.
    pub fn emulated(&self) -> Vec<&EmulatedDisk> {
        match self {
            Self::Emulated(disk) => vec![disk],
            Self::Raid0(raid) => raid.members.iter().flat_map(Self::emulated).collect(),
            Self::Directory(_) | Self::Loop(_) | Self::Ram(_) | Self::Device(_) => Vec::new(),
        }
    }
}

impl Limit {
    /// Whether it holds anything down.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
