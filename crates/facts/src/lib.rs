//! Facts: what the host is, and what lies under a directory.
//!
//! Nothing is changed, and nothing is read over the network. Files of `/proc`
//! and `/sys` hold nearly all facts. Only [`fingerprint`] runs programs: `smartctl` and ZFS's.
//!
//! Call [`host`] once a run, and for each storage [`fingerprint`], or [`storage`] where no program
//! may be started. A fact that the machine does not show stays empty.
//!
//! ```
//! # use std::path::Path;
//! let host = pgdyno_facts::host();
//! assert!(host.cpus > 0 && host.load_average.is_some());
//! let storage = pgdyno_facts::storage("root", Path::new("/"))?;
//! assert_eq!(storage.mount_point, "/");
//! # Ok::<(), pgdyno_exec::DirectoryError>(())
//! ```

mod beneath;
mod cgroup;
mod cpu;
mod device;
mod filesystem;
mod health;
mod kernel;
pub mod layers;
mod memory;
mod serials;
mod text;
mod tree;
mod virtualization;

use std::io;
use std::path::Path;

use device::Devices;
pub use filesystem::is_zfs;
use health::TOOL_LIMIT;
use pgdyno_exec::directory::DirectoryError;
use pgdyno_exec::mountinfo::{self, MountEntry};
use pgdyno_exec::process::digest_of_machine_id;
use pgdyno_exec::tool::ask_tool;
use pgdyno_model::facts::{HostFacts, SmartType, StorageFacts};
use pgdyno_model::units::Bytes;
use rustix::fs::IFlags;
pub use serials::Serials;
pub use text::kilobytes;
use text::value_of;
pub use tree::Tree;

/// Reads the facts of this machine. A fact that it does not show stays empty.
pub fn host() -> HostFacts {
    machine(&Tree::here())
}

/// Returns the memory that is available without swapping, by the kernel's estimate.
pub fn memory_available() -> Option<Bytes> {
    kilobytes(&Tree::here().read("proc/meminfo")?, "MemAvailable").map(Bytes)
}

fn machine(tree: &Tree) -> HostFacts {
    let text = |path: &str| tree.read(path).unwrap_or_default();
    let (cpuinfo, meminfo, stat) = (text("proc/cpuinfo"), text("proc/meminfo"), text("proc/stat"));
    let cpus = stat
        .lines()
        .filter(|l| {
            l.strip_prefix("cpu").is_some_and(|r| r.starts_with(|c: char| c.is_ascii_digit()))
        })
        .count();
    let memory = Bytes(kilobytes(&meminfo, "MemTotal").unwrap_or_default());
    let mounts = mountinfo::parse(&text("proc/self/mountinfo"));
    HostFacts {
        name: tree.read("proc/sys/kernel/hostname"),
        id: digest_of_machine_id(&text("etc/machine-id")),
        os: os_name(tree),
        kernel: format!(
            "{} {} {}",
            text("proc/sys/kernel/ostype"),
            text("proc/sys/kernel/osrelease"),
            std::env::consts::ARCH
        ),
        cpu_model: value_of(&cpuinfo, "model name")
            .or_else(|| value_of(&cpuinfo, "CPU part"))
            .unwrap_or_default(),
        cpus: u32::try_from(cpus).unwrap_or(u32::MAX),
        memory,
        hardware: virtualization::hardware(tree),
        cpu: cpu::read(tree, &cpuinfo),
        paging: memory::read(tree, &meminfo),
        settings: kernel::read(tree),
        virtualization: virtualization::read(tree, &cpuinfo),
        cgroup: cgroup::read(tree, &mounts, memory),
        load_average: text("proc/loadavg").split_whitespace().next().and_then(|n| n.parse().ok()),
    }
}

fn os_name(tree: &Tree) -> String {
    let text =
        tree.read("etc/os-release").or_else(|| tree.read("usr/lib/os-release")).unwrap_or_default();
    text.lines()
        .find_map(|l| l.strip_prefix("PRETTY_NAME="))
        .map(|v| v.trim_matches('"').to_owned())
        .unwrap_or_default()
}

/// Reads the facts of the storage under `directory`, which the experiment calls `name`, from files
/// alone. No program is run.
///
/// # Errors
/// [`DirectoryError`]: the directory cannot be looked at.
pub fn storage(name: &str, directory: &Path) -> Result<StorageFacts, DirectoryError> {
    look(name, directory, Serials::Hashed, None)
}

/// Reads the facts of the storage under `directory`, which the experiment calls `name`.
///
/// As [`storage`], with the disks' health by `smartctl` and a pool's properties by ZFS's programs.
/// Takes seconds if a disk sleeps. `smart` is how smartctl reaches every disk under the directory;
/// none lets it find out.
///
/// # Errors
/// [`DirectoryError`]: the directory cannot be looked at.
pub fn fingerprint(
    name: &str,
    directory: &Path,
    serials: Serials,
    smart: Option<&SmartType>,
) -> Result<StorageFacts, DirectoryError> {
    look(name, directory, serials, Some(health::Question { device_type: smart, serials }))
}

fn look(
    name: &str,
    directory: &Path,
    serials: Serials,
    programs: Option<health::Question<'_>>,
) -> Result<StorageFacts, DirectoryError> {
    let failed = |what, source| DirectoryError::Io { what, path: directory.to_owned(), source };
    let real = directory.canonicalize().map_err(|e| failed("resolve", e))?;
    let tree = Tree::here();
    let mounts = mountinfo::parse(&tree.read("proc/self/mountinfo").unwrap_or_default());
    let mount = mountinfo::holding(&mounts, &real)
        .ok_or_else(|| failed("find the mount of", io::ErrorKind::NotFound.into()))?;
    let stat = rustix::fs::statvfs(&real).map_err(|e| failed("ask for the room in", e.into()))?;
    let mut facts = on_mount(&tree, &mounts, mount, serials, programs);
    name.clone_into(&mut facts.name);
    facts.directory = directory.display().to_string();
    facts.size = Bytes(stat.f_blocks.saturating_mul(stat.f_frsize));
    facts.available = Bytes(stat.f_bavail.saturating_mul(stat.f_frsize));
    facts.block_bytes = Some(stat.f_bsize);
    let flags = filesystem::flags(&real);
    if mount.filesystem == "btrfs" {
        facts.no_copy_on_write = flags.map(|flags| flags.contains(IFlags::NOCOW));
    }
    facts.attributes = filesystem::attributes(&real, flags);
    Ok(facts)
}

/// Reads the facts of `mount` and of the devices under it.
fn on_mount(
    tree: &Tree,
    mounts: &[MountEntry],
    mount: &MountEntry,
    serials: Serials,
    programs: Option<health::Question<'_>>,
) -> StorageFacts {
    let mut told = filesystem::details(tree, mounts, mount, programs.is_some());
    let lowest = beneath::under_overlays(mounts, mount);
    let device = device::of_mount(tree, lowest).or_else(|| told.devices.first().cloned());
    if told.devices.is_empty() {
        told.devices.extend(device.clone());
    }
    let devices = Devices { tree, mounts, serials, health: programs };
    let devices: Vec<_> = told.devices.iter().map(|name| devices.read(name)).collect();
    let disk = device.as_deref().map(|d| device::disk_of(tree, d));
    let facts = StorageFacts {
        filesystem: mount.filesystem.clone(),
        mount_point: mount.point.display().to_string(),
        mount_options: mount.options().join(","),
        source: mount.source.clone(),
        geometry: told.geometry,
        unavailable: told.unavailable,
        devices,
        device,
        disk,
        ..StorageFacts::default()
    };
    let beneath = beneath::beneath(mounts, mount, &facts.layers());
    with_its_disk(StorageFacts { beneath, ..facts })
}

/// Returns `facts` with model, scheduler and cache of their whole disk.
fn with_its_disk(mut facts: StorageFacts) -> StorageFacts {
    if let Some(found) =
        facts.layers().into_iter().find(|d| Some(&d.name) == facts.disk.as_ref()).cloned()
    {
        facts.model = found.model;
        facts.rotational = found.rotational;
        facts.scheduler = found.scheduler;
        facts.write_cache = found.write_cache;
    }
    facts
}

/// Returns the block device at `path` of `size`, without regard to what is on it. No program is
/// run.
pub fn device(path: &Path, size: Bytes) -> StorageFacts {
    let tree = Tree::here();
    let shown = path.display().to_string();
    let device = device::named(&tree, &shown);
    let devices = Devices { tree: &tree, mounts: &[], serials: Serials::Hashed, health: None };
    with_its_disk(StorageFacts {
        directory: shown.clone(),
        source: shown,
        devices: device.iter().map(|name| devices.read(name)).collect(),
        disk: device.as_deref().map(|name| device::disk_of(&tree, name)),
        device,
        size,
        ..StorageFacts::default()
    })
}

/// Returns the whole disk that `device` is a partition of, or `device` itself.
pub fn disk_of(device: &str) -> String {
    device::disk_of(&Tree::here(), device)
}

/// Tells whether smartmontools are here.
pub fn has_smartctl() -> bool {
    ask_tool("smartctl", &["--version"], TOOL_LIMIT).is_ok()
}

#[cfg(test)]
mod tests;
