//! Which block device a path means, and how a person recognises it.

use std::fs::{self, File, Metadata};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::{fmt, io};

use pgdyno_model::storage::DeviceFacts;
use pgdyno_model::units::Bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::mountinfo;
use crate::random::hex;

/// A block device as the kernel knows it now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockDevice {
    /// The path that the user named.
    pub path: PathBuf,
    /// The kernel's name: `nvme0n1`, `sda1`.
    pub name: String,
    /// Major and minor number: `8:1`.
    pub number: String,
    /// The disk's sequence number, which no other disk of this boot has; none before Linux 5.15.
    pub sequence: Option<u64>,
    /// The boot in which number and sequence mean this device; none in plans of earlier versions.
    pub boot_id: Option<String>,
}

/// The marks by which a person recognises a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The device that the marks are of.
    pub device: BlockDevice,
    /// Path in `/dev/disk/by-id`, where udev made one.
    pub by_id: Option<PathBuf>,
    /// The disk's model.
    pub model: Option<String>,
    /// The disk's serial number, or the first 12 hexadecimal digits of its SHA-256.
    pub serial: Option<String>,
    /// Size of the device.
    pub size: Bytes,
}

impl BlockDevice {
    /// Returns the block device at `path`, through symbolic links.
    ///
    /// # Errors
    /// It cannot be looked at, or is no block device (`InvalidInput`).
    pub fn at(path: &Path) -> io::Result<Self> {
        Self::from_metadata(path, &fs::metadata(path)?)
    }

    /// Returns the block device that `file` is open on. It was opened by the name `path`.
    ///
    /// # Errors
    /// It cannot be looked at, or is no block device (`InvalidInput`).
    pub fn opened(path: &Path, file: &File) -> io::Result<Self> {
        Self::from_metadata(path, &file.metadata()?)
    }

    /// Tells whether `other` is this very device: number, disk sequence and boot are equal, where
    /// they are known.
    pub fn is_same(&self, other: &Self) -> bool {
        self.number == other.number
            && self.sequence == other.sequence
            && (self.boot_id.is_none() || self.boot_id == other.boot_id)
    }

    /// Tells whether it was looked at since the machine was started. If not, its number may be
    /// another device's.
    pub fn is_of_this_boot(&self) -> bool {
        self.boot_id.is_some() && self.boot_id == crate::process::boot_id().ok()
    }

    /// Returns its size, as the kernel has it.
    pub fn size(&self) -> Option<Bytes> {
        let sectors = read(&self.sysfs().join("size")).and_then(|s| s.parse::<u64>().ok());
        // sysfs counts in 512 bytes whatever the sector size
        // (Documentation/ABI/stable/sysfs-block).
        sectors.map(|sectors| Bytes(sectors * 512))
    }

    /// Returns the block device that carries the filesystem of the directory `directory`.
    ///
    /// # Errors
    /// It cannot be looked at, or its filesystem lies on no block device.
    pub fn under(directory: &Path) -> io::Result<Self> {
        let real = directory.canonicalize()?;
        let mounts = mountinfo::mounts()?;
        let mount = mountinfo::holding(&mounts, &real).ok_or(io::ErrorKind::NotFound)?;
        let name = mount.device().ok_or_else(|| {
            io::Error::other(format!(
                "its filesystem ({}) lies on no block device",
                mount.filesystem
            ))
        })?;
        Self::at(&Path::new("/dev").join(name))
    }

    fn from_metadata(path: &Path, metadata: &Metadata) -> io::Result<Self> {
        if !metadata.file_type().is_block_device() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no block device"));
        }
        let rdev = metadata.rdev();
        let number = format!("{}:{}", rustix::fs::major(rdev), rustix::fs::minor(rdev));
        let sysfs = fs::canonicalize(Path::new("/sys/dev/block").join(&number))?;
        let name = sysfs.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let boot_id = crate::process::boot_id().ok();
        let mut device = Self { path: path.to_owned(), name, number, sequence: None, boot_id };
        device.sequence = read(&device.disk_sysfs().join("diskseq")).and_then(|s| s.parse().ok());
        Ok(device)
    }

    /// Returns its directory in sysfs.
    pub fn sysfs(&self) -> PathBuf {
        Path::new("/sys/class/block").join(&self.name)
    }

    /// Returns the disk that it is a partition of, or itself.
    pub fn disk(&self) -> String {
        disk_of(&self.name)
    }

    /// Returns the sysfs directory of [`Self::disk`].
    pub fn disk_sysfs(&self) -> PathBuf {
        Path::new("/sys/class/block").join(self.disk())
    }

    /// Returns the node in `/dev` that the kernel gave it.
    pub fn node(&self) -> PathBuf {
        Path::new("/dev").join(self.name.replace('!', "/"))
    }

    /// Returns the kernel's names of its partitions.
    pub fn partitions(&self) -> Vec<String> {
        names(&self.sysfs())
            .into_iter()
            .filter(|name| self.sysfs().join(name).join("partition").exists())
            .collect()
    }

    /// Returns the kernel's names of the RAIDs and mappings that lie on it.
    pub fn holders(&self) -> Vec<String> {
        names(&self.sysfs().join("holders"))
    }
}

impl Identity {
    /// Returns the marks by which a person recognises `device`. The serial number is hashed unless
    /// `keep_serial` is set.
    pub fn from_device(device: &BlockDevice, keep_serial: bool) -> Self {
        let disk = device.disk_sysfs();
        let serial = ["device/serial", "serial", "device/vpd_pg80", "device/wwid", "wwid"]
            .iter()
            .find_map(|file| read(&disk.join(file)))
            .map(|serial| if keep_serial { serial } else { hashed(&serial) });
        Self {
            by_id: by_id(device),
            model: read(&disk.join("device/model")),
            serial,
            size: device.size().unwrap_or_default(),
            device: device.clone(),
        }
    }
}

impl From<Identity> for DeviceFacts {
    fn from(Identity { device, by_id, model, serial, size }: Identity) -> Self {
        let by_id = by_id.map(|p| p.display().to_string());
        Self {
            path: device.path.display().to_string(),
            name: device.name,
            by_id,
            model,
            serial,
            size,
        }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".into());
        write!(f, "{} ({}", self.device.path.display(), self.size)?;
        match &self.by_id {
            Some(path) => write!(f, ", {}", path.display())?,
            None => write!(f, ", no by-id name")?,
        }
        write!(f, ", model {}, serial {})", told(&self.model), told(&self.serial))
    }
}

/// Returns the kernel's name of the whole disk that `device` is a partition of, or `device` itself.
pub fn disk_of(device: &str) -> String {
    let sysfs = Path::new("/sys/class/block").join(device);
    let disk = || {
        let real = sysfs.join("partition").exists().then(|| sysfs.canonicalize().ok())??;
        Some(real.parent()?.file_name()?.to_str()?.to_owned())
    };
    disk().unwrap_or_else(|| device.to_owned())
}

/// Returns the names in a directory, sorted; none where there is no such directory.
fn names(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.flatten().filter_map(|e| e.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names
}

fn hashed(serial: &str) -> String {
    hex(&Sha256::digest(serial.as_bytes())[..6])
}

impl BlockDevice {
    /// Returns its name and numbers, for a person.
    pub fn numbers(&self) -> String {
        let sequence = self.sequence.map_or_else(String::new, |s| format!(" (disk sequence {s})"));
        format!("{} {}{sequence}", self.name, self.number)
    }
}

/// Returns the name below `/dev/disk/by-id` that leads to the device; `wwn-` names, which say
/// least, come last.
fn by_id(device: &BlockDevice) -> Option<PathBuf> {
    let folder = Path::new("/dev/disk/by-id");
    let mut names: Vec<PathBuf> = names(folder)
        .into_iter()
        .map(|name| folder.join(name))
        .filter(|path| fs::canonicalize(path).is_ok_and(|real| real == device.node()))
        .collect();
    names.sort_by_key(|p| (p.to_string_lossy().contains("/wwn-"), p.clone()));
    names.into_iter().next()
}

fn read(path: &Path) -> Option<String> {
    let bytes = fs::read(path).ok()?;
    let text: String =
        String::from_utf8_lossy(&bytes).chars().filter(|c| !c.is_control()).collect();
    Some(text.trim().to_owned()).filter(|t| !t.is_empty())
}
