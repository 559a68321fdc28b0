//! Whether a block device that a user named may be written: it holds nothing, and nobody uses it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::identity::{BlockDevice, Identity};
use super::image::loops_over;
use super::program;

/// The devices whose contents the user gave up, beside naming them in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wipe {
    /// `--wipe /dev/X`, as often as it was given.
    pub devices: Vec<PathBuf>,
    /// `--overwrite-signature`: also those that hold a filesystem or a partition table.
    pub overwrite_signature: bool,
}

impl Wipe {
    fn names(&self, device: &BlockDevice) -> bool {
        self.devices.iter().any(|path| BlockDevice::at(path).is_ok_and(|d| d.number == device.number))
    }
}

/// A device that must not be written.
#[derive(Debug, thiserror::Error)]
#[error("will not write to {}: {found}", device.display())]
pub struct SafetyError {
    /// The path that was named.
    pub device: PathBuf,
    /// Why not.
    pub found: Found,
}

/// What stands against writing to a device.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum Found {
    #[error("it cannot be looked at: {0}")]
    Unreadable(io::Error),
    #[error("it is no block device")]
    NotABlockDevice,
    #[error("it is read-only")]
    ReadOnly,
    #[error("the root filesystem is on this disk")]
    RootDisk,
    #[error("{name} is mounted at {at}{namespace}")]
    Mounted { name: String, at: String, namespace: String },
    #[error("{0} is in use as swap")]
    Swap(String),
    #[error("{name} is part of {}", holders.join(", "))]
    Held { name: String, holders: Vec<String> },
    #[error("{by} has {name} open for writing")]
    Open { name: String, by: String },
    #[error("somebody has it open for their own use (O_EXCL is refused)")]
    InUse,
    #[error("it is a member of {0}")]
    Member(String),
    #[error("it holds {0}")]
    Signature(String),
    #[error("{0}; --wipe does not name it")]
    NotNamed(Box<Identity>),
    #[error("it is another device than the one looked at: {was}, now {is}")]
    Changed { was: String, is: String },
    #[error("what it holds cannot be told: {0}")]
    NotTold(String),
}

impl SafetyError {
    /// What to do.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        let device = self.device.display();
        let another = "or name another device in `storage.<name>.backing`";
        match &self.found {
            Found::NotNamed(identity) => {
                let path = identity.by_id.as_ref().map_or(device.to_string(), |p| p.display().to_string());
                Some(format!("everything on it will be lost; if that is meant, add `--wipe {path}`"))
            }
            Found::Signature(_) => Some(format!(
                "if that may be lost, add `--overwrite-signature` to `--wipe {device}`, {another}"
            )),
            Found::Member(kind) => Some(format!("take it out with {kind}'s own program, {another}")),
            Found::Mounted { at, .. } => Some(format!("unmount {at}, {another}")),
            Found::Swap(name) => Some(format!("`swapoff /dev/{name}`, {another}")),
            Found::Held { .. } | Found::InUse | Found::Open { .. } => Some(format!("end its use, {another}")),
            Found::NotTold(_) => Some("install util-linux, which has `wipefs`".into()),
            _ => Some("name another device in `storage.<name>.backing`".into()),
        }
    }
}

/// Looks whether `path` may be written: a block device, used by nobody, named in `wipe`, and empty unless `wipe`
/// gives up what is on it. It is held with `O_EXCL` meanwhile. Nothing is written.
///
/// # Errors
/// [`SafetyError`] with the first thing that stands against it.
pub fn check(path: &Path, wipe: &Wipe) -> Result<BlockDevice, SafetyError> {
    look(path, wipe).map_err(|found| SafetyError { device: path.to_owned(), found })
}

fn look(path: &Path, wipe: &Wipe) -> Result<BlockDevice, Found> {
    let metadata = fs::metadata(path).map_err(Found::Unreadable)?;
    if !metadata.file_type().is_block_device() {
        return Err(Found::NotABlockDevice);
    }
    let device = BlockDevice::at(path).map_err(Found::Unreadable)?;
    if fs::read_to_string(device.sysfs().join("ro")).is_ok_and(|ro| ro.trim() == "1") {
        return Err(Found::ReadOnly);
    }
    let parts: Vec<BlockDevice> = std::iter::once(Ok(device.clone()))
        .chain(device.partitions().iter().map(|name| BlockDevice::at(&Path::new("/dev").join(name))))
        .collect::<io::Result<_>>()
        .map_err(Found::Unreadable)?;
    if device.name == device.disk() && disks_of_root().map_err(Found::Unreadable)?.contains(&device.name) {
        return Err(Found::RootDisk);
    }
    for part in &parts {
        if let Some(found) = mounted(part).map_err(Found::Unreadable)? {
            return Err(found);
        }
        if is_swap(part).map_err(Found::Unreadable)? {
            return Err(Found::Swap(part.name.clone()));
        }
        let mut holders = part.holders();
        // A loop device is no holder in the kernel's eyes, and does not open what it lies on exclusively.
        let loops =
            loops_over(|file| file == part.node()).map_err(|e| Found::NotTold(super::with_causes(&e)))?;
        holders.extend(loops.iter().map(|device| device.display().to_string()));
        if !holders.is_empty() {
            return Err(Found::Held { name: part.name.clone(), holders });
        }
        if let Some(by) = writer(&part.node()) {
            return Err(Found::Open { name: part.name.clone(), by });
        }
    }
    let held = exclusive(&device)?;
    if held.metadata().map_err(Found::Unreadable)?.rdev() != metadata.rdev() {
        return Err(Found::Changed { was: device.number, is: "another number".into() });
    }
    if !wipe.names(&device) {
        return Err(Found::NotNamed(Box::new(Identity::of(&device, false))));
    }
    for part in &parts {
        contents(part, &held, wipe, *part == device)?;
    }
    Ok(device)
}

/// Opens the device as mount and swapon do: whatever use other looks missed shows here.
pub(crate) fn exclusive(device: &BlockDevice) -> Result<File, Found> {
    File::options()
        .read(true)
        .custom_flags(rustix::fs::OFlags::EXCL.bits().cast_signed())
        .open(device.node())
        .map_err(
            |e| if e.kind() == io::ErrorKind::ResourceBusy { Found::InUse } else { Found::Unreadable(e) },
        )
}

/// Refuses a device that somebody uses as mount does. Another mount namespace that still has its filesystem mounted is named.
pub(crate) fn unused(path: &Path) -> Result<(), SafetyError> {
    let failed = |found| SafetyError { device: path.to_owned(), found };
    let device = BlockDevice::at(path).map_err(|e| failed(Found::Unreadable(e)))?;
    match exclusive(&device) {
        Ok(_) => Ok(()),
        Err(found) => Err(failed(mounted(&device).ok().flatten().unwrap_or(found))),
    }
}

/// One signature, as `wipefs --json` tells.
#[derive(Debug, Deserialize)]
pub(crate) struct Signature {
    /// `ext4`, `gpt`, `zfs_member`, …
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// The name that its maker gave, where the format has one.
    pub(crate) label: Option<String>,
}

/// Every signature on `device`.
///
/// # Errors
/// What `wipefs` said.
pub(crate) fn signatures(device: &Path) -> Result<Vec<Signature>, String> {
    #[derive(Default, Deserialize)]
    struct Told {
        signatures: Vec<Signature>,
    }
    let args = ["--json".as_ref(), device.as_os_str()];
    let text = program::output("wipefs", &args).map_err(|e| super::with_causes(&e))?;
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    serde_json::from_str::<Told>(&text).map(|told| told.signatures).map_err(|e| format!("wipefs: {e}"))
}

/// Signatures as a person reads them, each kind once; empty without any.
fn listed(signatures: &[Signature]) -> String {
    let each = |s: &Signature| match &s.label {
        Some(label) => format!("{} (labelled {label})", s.kind),
        None => s.kind.clone(),
    };
    signatures.iter().map(each).collect::<BTreeSet<String>>().into_iter().collect::<Vec<_>>().join(", ")
}

/// What a person recognises the device `path` by, and what is on it: for a dry run, before consent is given.
///
/// # Errors
/// [`SafetyError`]: it cannot be looked at.
pub fn describe(path: &Path, keep_serial: bool) -> Result<String, SafetyError> {
    let failed = |found| SafetyError { device: path.to_owned(), found };
    let device = BlockDevice::at(path).map_err(|e| failed(Found::Unreadable(e)))?;
    let mut held = Vec::new();
    for name in std::iter::once(device.name.clone()).chain(device.partitions()) {
        let told =
            listed(&signatures(&Path::new("/dev").join(&name)).map_err(|e| failed(Found::NotTold(e)))?);
        held.push(format!("{name} holds {}", if told.is_empty() { "no signature" } else { &told }));
    }
    Ok(format!("{}: {}", Identity::of(&device, keep_serial), held.join("; ")))
}

/// Refuses what is on `part`: members of volumes always, anything else unless `wipe` gives it up.
fn contents(part: &BlockDevice, held: &File, wipe: &Wipe, whole: bool) -> Result<(), Found> {
    let signatures = signatures(&part.node()).map_err(Found::NotTold)?;
    for signature in &signatures {
        let volume = match signature.kind.as_str() {
            "LVM2_member" | "LVM1_member" => Some("LVM"),
            "linux_raid_member" => Some("md"),
            "zfs_member" => Some("zfs"),
            "bcache" => Some("bcache"),
            "ceph_bluestore" => Some("ceph"),
            "btrfs" if whole && btrfs_devices(held).map_err(Found::Unreadable)? > 1 => Some("btrfs"),
            kind if kind.ends_with("_raid_member") => Some("a RAID"),
            _ => None,
        };
        if let Some(volume) = volume {
            return Err(Found::Member(volume.into()));
        }
    }
    let told = listed(&signatures);
    if told.is_empty() || wipe.overwrite_signature {
        return Ok(());
    }
    Err(Found::Signature(if whole { told } else { format!("{told} in {}", part.name) }))
}

/// How many devices the btrfs on `device` has: `num_devices` of its superblock
/// (<https://btrfs.readthedocs.io/en/latest/dev/On-disk-format.html#superblock>).
fn btrfs_devices(device: &File) -> io::Result<u64> {
    const SUPERBLOCK: u64 = 0x1_0000;
    const NUM_DEVICES: u64 = 0x88;
    let mut number = [0; 8];
    device.read_exact_at(&mut number, SUPERBLOCK + NUM_DEVICES)?;
    Ok(u64::from_le_bytes(number))
}

/// The disks that the root filesystem lies on, through mappings and RAIDs.
fn disks_of_root() -> io::Result<BTreeSet<String>> {
    let mut disks = BTreeSet::new();
    // A root on no block device, as in containers, is on no disk that could be named.
    let Ok(root) = BlockDevice::under(Path::new("/")) else { return Ok(disks) };
    let mut open = vec![root.name];
    while let Some(name) = open.pop() {
        let disk = crate::facts::disk_of(&name);
        for sysfs in [&name, &disk].map(|n| Path::new("/sys/class/block").join(n)) {
            if let Ok(slaves) = fs::read_dir(sysfs.join("slaves")) {
                open.extend(slaves.flatten().map(|s| s.file_name().to_string_lossy().into_owned()));
            }
        }
        disks.insert(disk);
    }
    Ok(disks)
}

/// Where `device` is mounted, in any mount namespace that can be read.
fn mounted(device: &BlockDevice) -> io::Result<Option<Found>> {
    let own = fs::read_link("/proc/self/ns/mnt")?;
    let mut seen = BTreeSet::new();
    let processes = fs::read_dir("/proc")?.flatten().filter_map(|p| p.file_name().into_string().ok());
    for process in std::iter::once("self".to_owned()).chain(processes.filter(|p| p.parse::<u32>().is_ok())) {
        let folder = Path::new("/proc").join(&process);
        // Processes come and go; one that cannot be asked has a namespace that others are in, or is a kernel thread.
        let Ok(namespace) = fs::read_link(folder.join("ns/mnt")) else { continue };
        if !seen.insert(namespace.clone()) {
            continue;
        }
        let Ok(mounts) = fs::read_to_string(folder.join("mountinfo")) else { continue };
        for line in mounts.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let source =
                line.split_once(" - ").and_then(|(_, rest)| rest.split(' ').nth(1)).unwrap_or_default();
            // Filesystems over several devices have no number of their own; their source names one of them.
            let by_source = || {
                source.starts_with("/dev/")
                    && BlockDevice::at(Path::new(source)).is_ok_and(|d| d.number == device.number)
            };
            if words.get(2) == Some(&device.number.as_str()) || by_source() {
                let at = (*words.get(4).unwrap_or(&"?")).to_owned();
                let namespace =
                    if namespace == own { String::new() } else { format!(" (seen by process {process})") };
                return Ok(Some(Found::Mounted { name: device.name.clone(), at, namespace }));
            }
        }
    }
    Ok(None)
}

/// A process that has the device open for writing, as virtual machines and databases on raw devices do.
fn writer(node: &Path) -> Option<String> {
    let processes = fs::read_dir("/proc").ok()?.flatten().map(|p| p.path());
    let numbered = |p: &PathBuf| p.file_name().is_some_and(|n| n.to_string_lossy().parse::<u32>().is_ok());
    for process in processes.filter(numbered) {
        // One that is gone by now, or closed to us, tells nothing; the exclusive opening comes on top.
        for fd in fs::read_dir(process.join("fd")).into_iter().flatten().flatten() {
            if fs::read_link(fd.path()).is_ok_and(|to| to == node) {
                let info =
                    fs::read_to_string(process.join("fdinfo").join(fd.file_name())).unwrap_or_default();
                let flags = info.lines().find_map(|l| l.strip_prefix("flags:"));
                let flags = flags.and_then(|f| u32::from_str_radix(f.trim(), 8).ok()).unwrap_or_default();
                if flags & rustix::fs::OFlags::ACCMODE.bits() != rustix::fs::OFlags::RDONLY.bits() {
                    let program = fs::read_to_string(process.join("comm")).unwrap_or_default();
                    let pid = process.file_name()?.to_string_lossy();
                    return Some(format!("process {pid} ({})", program.trim()));
                }
            }
        }
    }
    None
}

fn is_swap(device: &BlockDevice) -> io::Result<bool> {
    let swaps = fs::read_to_string("/proc/swaps")?;
    Ok(swaps
        .lines()
        .skip(1)
        .filter_map(|line| line.split_whitespace().next())
        .any(|path| BlockDevice::at(Path::new(path)).is_ok_and(|d| d.number == device.number)))
}
