//! Whether a block device that a user named may be written: it holds nothing, and nobody uses it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use super::held::{self, HeldDevice};
use super::identity::{BlockDevice, Identity};
use super::refusal::{Refusal, SafetyError, SignatureError};
use super::{edge, writers};
use crate::tool::run_tool;
use crate::{mountinfo, trust};
use pgdyno_model::advice::with_causes;

/// The user's consent to erase devices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wipe {
    /// `--wipe /dev/X`, as often as it was given.
    pub devices: Vec<PathBuf>,
    /// `--overwrite-signature`: devices with a filesystem or a partition table may be erased too.
    pub overwrite_signature: bool,
}

impl Wipe {
    fn names(&self, device: &BlockDevice) -> bool {
        self.devices
            .iter()
            .any(|path| BlockDevice::at(path).is_ok_and(|d| d.number == device.number))
    }
}

/// Checks that `path` may be written: a block device that nobody uses, that `wipe` names, and that
/// is empty unless `wipe` allows to overwrite signatures.
///
/// The device is held with `O_EXCL` during the check. Nothing is written.
///
/// # Errors
/// [`SafetyError`] with the first reason against it.
pub fn check(path: &Path, wipe: &Wipe) -> Result<BlockDevice, SafetyError> {
    look(path, wipe).map_err(|found| SafetyError { device: path.to_owned(), found })
}

fn look(path: &Path, wipe: &Wipe) -> Result<BlockDevice, Refusal> {
    way_is_trusted(path)?;
    let device = &held::resolve(path)?;
    if fs::read_to_string(device.sysfs().join("ro")).is_ok_and(|ro| ro.trim() == "1") {
        return Err(Refusal::ReadOnly);
    }
    if device.name == device.disk()
        && disks_of_root().map_err(Refusal::Unreadable)?.contains(&device.name)
    {
        return Err(Refusal::RootDisk);
    }
    let held = HeldDevice::open(device)?;
    let parts: Vec<BlockDevice> = std::iter::once(Ok(device.clone()))
        .chain(
            device.partitions().iter().map(|name| BlockDevice::at(&Path::new("/dev").join(name))),
        )
        .collect::<io::Result<_>>()
        .map_err(Refusal::Unreadable)?;
    parts.iter().try_for_each(in_use)?;
    if device.name != device.disk() {
        // What is written to the disk around a partition goes through it.
        let disk =
            BlockDevice::at(&Path::new("/dev").join(device.disk())).map_err(Refusal::Unreadable)?;
        written(&disk)?;
    }
    let exclusive = held.exclusive(OFlags::empty())?;
    if !wipe.names(device) {
        return Err(Refusal::NotNamed(Box::new(Identity::from_device(device, false))));
    }
    for part in &parts {
        contents(part, &exclusive, wipe, part == device)?;
    }
    if !wipe.overwrite_signature
        && let Some(edge) = edge::not_zeros(&exclusive).map_err(Refusal::Unreadable)?
    {
        return Err(Refusal::NotZeros(edge));
    }
    held.compare()?;
    Ok(device.clone())
}

/// Refuses a device or partition that somebody uses.
fn in_use(part: &BlockDevice) -> Result<(), Refusal> {
    if let Some(found) = mounted(part).map_err(Refusal::Unreadable)? {
        return Err(found);
    }
    if is_swap(part).map_err(Refusal::Unreadable)? {
        return Err(Refusal::Swap(part.name.clone()));
    }
    let holders = part.holders();
    if !holders.is_empty() {
        return Err(Refusal::Held { name: part.name.clone(), holders });
    }
    written(part)
}

/// Refuses a device that a process or a loop device may write.
fn written(device: &BlockDevice) -> Result<(), Refusal> {
    let (name, numbers) = (device.name.clone(), [device.number.as_str()]);
    let holders =
        writers::loops(&numbers).map_err(|(node, cause)| Refusal::LoopUnknown { node, cause })?;
    if !holders.is_empty() {
        return Err(Refusal::Held { name, holders });
    }
    match writers::process(&numbers) {
        Some(by) => Err(Refusal::Open { name, by }),
        None => Ok(()),
    }
}

/// Refuses a path that accounts other than root and the caller can redirect: they could choose the
/// device that the user consented to erase.
fn way_is_trusted(path: &Path) -> Result<(), Refusal> {
    /// As many as the kernel follows in one path.
    const MOST_LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let metadata = fs::symlink_metadata(&path).map_err(Refusal::Unreadable)?;
        let parent = path.parent().unwrap_or(Path::new("/")).to_owned();
        trust::check_parent(&parent).map_err(|e| Refusal::Untrusted(Box::new(e)))?;
        if ![0, rustix::process::geteuid().as_raw()].contains(&metadata.uid()) {
            // In a directory with the sticky bit its owner can rename it.
            trust::check(&parent).map_err(|e| Refusal::Untrusted(Box::new(e)))?;
        }
        if !metadata.is_symlink() {
            return Ok(());
        }
        path = parent.join(fs::read_link(&path).map_err(Refusal::Unreadable)?);
    }
    Err(Refusal::Unreadable(io::Error::other("too many symbolic links")))
}

/// Refuses a device that somebody uses as mount does. Another mount namespace that still has its
/// filesystem mounted is named.
pub fn unused(path: &Path) -> Result<(), SafetyError> {
    let failed = |found| SafetyError { device: path.to_owned(), found };
    let held = held::resolve(path).and_then(|device| HeldDevice::open(&device)).map_err(failed)?;
    match held.exclusive(OFlags::empty()) {
        Ok(_) => Ok(()),
        Err(found) => Err(failed(mounted(held.device()).ok().flatten().unwrap_or(found))),
    }
}

/// One signature, as `wipefs --json` tells.
#[derive(Debug, Deserialize)]
pub struct Signature {
    /// `ext4`, `gpt`, `zfs_member`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// The name that its maker gave, where the format has one.
    pub label: Option<String>,
}

/// Returns every signature on `device`.
///
/// # Errors
/// [`SignatureError`]: `wipefs` fails, or its answer is no JSON.
pub fn signatures(device: &Path) -> Result<Vec<Signature>, SignatureError> {
    #[derive(Default, Deserialize)]
    struct WipefsOutput {
        signatures: Vec<Signature>,
    }
    let args = ["--json".as_ref(), device.as_os_str()];
    let text = run_tool("wipefs", &args).map_err(|e| SignatureError::Wipefs(with_causes(&e)))?;
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    serde_json::from_str::<WipefsOutput>(&text)
        .map(|told| told.signatures)
        .map_err(SignatureError::Json)
}

/// Signatures as a person reads them, each kind once; empty without any.
fn listed(signatures: &[Signature]) -> String {
    let each = |s: &Signature| match &s.label {
        Some(label) => format!("{} (labelled {label})", s.kind),
        None => s.kind.clone(),
    };
    signatures
        .iter()
        .map(each)
        .collect::<BTreeSet<String>>()
        .into_iter()
        .collect::<Vec<_>>()
        .join(", ")
}

/// Describes the device `path` and its contents, for a dry run.
///
/// # Errors
/// [`SafetyError`]: it cannot be looked at.
pub fn describe(path: &Path, keep_serial: bool) -> Result<String, SafetyError> {
    let failed = |found| SafetyError { device: path.to_owned(), found };
    let device = held::resolve(path).map_err(failed)?;
    let mut held = Vec::new();
    for name in std::iter::once(device.name.clone()).chain(device.partitions()) {
        let told = listed(
            &signatures(&Path::new("/dev").join(&name)).map_err(|e| failed(Refusal::NotTold(e)))?,
        );
        if told.is_empty() && name == device.name {
            let open = HeldDevice::open(&device).map_err(failed)?;
            let edge = edge::not_zeros(open.file()).map_err(|e| failed(Refusal::Unreadable(e)))?;
            let data =
                edge.map_or_else(String::new, |edge| format!(", but its {edge} are not zeros"));
            held.push(format!("{name} holds no signature{data}"));
        } else {
            held.push(format!(
                "{name} holds {}",
                if told.is_empty() { "no signature" } else { &told }
            ));
        }
    }
    Ok(format!("{}: {}", Identity::from_device(&device, keep_serial), held.join("; ")))
}

/// Refuses `part` if it is a member of a volume, or has signatures that `wipe` does not allow to
/// overwrite.
fn contents(part: &BlockDevice, held: &File, wipe: &Wipe, whole: bool) -> Result<(), Refusal> {
    let signatures = signatures(&part.node()).map_err(Refusal::NotTold)?;
    for signature in &signatures {
        let volume = match signature.kind.as_str() {
            "LVM2_member" | "LVM1_member" => Some("LVM"),
            "linux_raid_member" => Some("md"),
            "zfs_member" => Some("zfs"),
            "bcache" => Some("bcache"),
            "ceph_bluestore" => Some("ceph"),
            "btrfs" if whole && btrfs_devices(held).map_err(Refusal::Unreadable)? > 1 => {
                Some("btrfs")
            }
            kind if kind.ends_with("_raid_member") => Some("a RAID"),
            _ => None,
        };
        if let Some(volume) = volume {
            return Err(Refusal::Member(volume.into()));
        }
    }
    let told = listed(&signatures);
    if told.is_empty() || wipe.overwrite_signature {
        return Ok(());
    }
    Err(Refusal::Signature(if whole { told } else { format!("{told} in {}", part.name) }))
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

/// Returns the disks that the root filesystem lies on, through mappings and RAIDs.
fn disks_of_root() -> io::Result<BTreeSet<String>> {
    let mut disks = BTreeSet::new();
    // A root on no block device, as in containers, is on no disk that could be named.
    let Ok(root) = BlockDevice::under(Path::new("/")) else { return Ok(disks) };
    let mut open = vec![root.name];
    while let Some(name) = open.pop() {
        let disk = super::identity::disk_of(&name);
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
fn mounted(device: &BlockDevice) -> io::Result<Option<Refusal>> {
    let own = fs::read_link("/proc/self/ns/mnt")?;
    let mut seen = BTreeSet::new();
    let processes =
        fs::read_dir("/proc")?.flatten().filter_map(|p| p.file_name().into_string().ok());
    for process in
        std::iter::once("self".to_owned()).chain(processes.filter(|p| p.parse::<u32>().is_ok()))
    {
        let folder = Path::new("/proc").join(&process);
        // Processes come and go; one that cannot be asked has a namespace that others are in, or is
        // a kernel thread.
        let Ok(namespace) = fs::read_link(folder.join("ns/mnt")) else { continue };
        if !seen.insert(namespace.clone()) {
            continue;
        }
        let Ok(mounts) = fs::read_to_string(folder.join("mountinfo")) else { continue };
        for mount in mountinfo::parse(&mounts) {
            // Filesystems over several devices have no number of their own; their source names one
            // of them.
            let source = Path::new(&mount.source);
            let by_source = || {
                source.starts_with("/dev/")
                    && BlockDevice::at(source).is_ok_and(|d| d.number == device.number)
            };
            if mount.numbers == device.number || by_source() {
                let at = mount.point.display().to_string();
                let namespace = if namespace == own {
                    String::new()
                } else {
                    format!(" (seen by process {process})")
                };
                return Ok(Some(Refusal::Mounted { name: device.name.clone(), at, namespace }));
            }
        }
    }
    Ok(None)
}

fn is_swap(device: &BlockDevice) -> io::Result<bool> {
    let swaps = fs::read_to_string("/proc/swaps")?;
    Ok(swaps
        .lines()
        .skip(1)
        .filter_map(|line| line.split_whitespace().next())
        .any(|path| BlockDevice::at(Path::new(path)).is_ok_and(|d| d.number == device.number)))
}
