//! What this machine is, and what lies under a directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use pgdyno_model::facts::{HostFacts, StorageFacts};
use pgdyno_model::units::Bytes;

use crate::directory::DirectoryError;

/// This machine. What it does not tell stays empty.
#[must_use]
pub fn host() -> HostFacts {
    let kernel = |file: &str| read(&Path::new("/proc/sys/kernel").join(file)).unwrap_or_default();
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let cpus = stat
        .lines()
        .filter(|l| l.strip_prefix("cpu").is_some_and(|r| r.starts_with(|c: char| c.is_ascii_digit())))
        .count();
    HostFacts {
        os: os_name(),
        kernel: format!("{} {} {}", kernel("ostype"), kernel("osrelease"), std::env::consts::ARCH),
        cpu_model: field(&cpuinfo, "model name").or_else(|| field(&cpuinfo, "CPU part")).unwrap_or_default(),
        cpus: u32::try_from(cpus).unwrap_or(u32::MAX),
        memory: Bytes(kilobytes(&meminfo, "MemTotal").unwrap_or_default()),
    }
}

/// The value of `name : value` in a file of `/proc`.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

/// A value of `/proc/meminfo`, in bytes.
pub(crate) fn kilobytes(meminfo: &str, name: &str) -> Option<u64> {
    let value: u64 = field(meminfo, name)?.strip_suffix("kB")?.trim().parse().ok()?;
    value.checked_mul(1024)
}

fn os_name() -> String {
    let text = fs::read_to_string("/etc/os-release")
        .or_else(|_| fs::read_to_string("/usr/lib/os-release"))
        .unwrap_or_default();
    text.lines()
        .find_map(|l| l.strip_prefix("PRETTY_NAME="))
        .map(|v| v.trim_matches('"').to_owned())
        .unwrap_or_default()
}

/// What lies under `directory`, which the experiment calls `name`.
///
/// # Errors
/// [`DirectoryError`]: the directory cannot be looked at.
pub fn storage(name: &str, directory: &Path) -> Result<StorageFacts, DirectoryError> {
    let failed = |what, source| DirectoryError::Io { what, path: directory.to_owned(), source };
    let real = directory.canonicalize().map_err(|e| failed("resolve", e))?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").map_err(|e| failed("find the mount of", e))?;
    let mount = mount_of(&mounts, &real)
        .ok_or_else(|| failed("find the mount of", io::ErrorKind::NotFound.into()))?;
    let stat = rustix::fs::statvfs(&real).map_err(|e| failed("ask for the room in", e.into()))?;
    let device = mount.device();
    let disk = device.as_deref().map(disk_of);
    let queue = |file: &str| read(&sysfs(disk.as_ref()?).join("queue").join(file));
    Ok(StorageFacts {
        name: name.to_owned(),
        directory: directory.display().to_string(),
        filesystem: mount.filesystem.clone(),
        mount_point: mount.point.display().to_string(),
        mount_options: mount.options.clone(),
        source: mount.source.clone(),
        model: disk.as_ref().and_then(|d| read(&sysfs(d).join("device/model"))).filter(|m| !m.is_empty()),
        rotational: queue("rotational").map(|r| r == "1"),
        scheduler: queue("scheduler").map(|s| in_brackets(&s)),
        write_cache: queue("write_cache"),
        device,
        disk,
        size: Bytes(stat.f_blocks.saturating_mul(stat.f_frsize)),
        available: Bytes(stat.f_bavail.saturating_mul(stat.f_frsize)),
    })
}

/// One line of `/proc/self/mountinfo`.
struct Mount {
    numbers: String,
    point: PathBuf,
    filesystem: String,
    source: String,
    options: String,
}

/// The mount that holds the absolute path `path`: the longest mount point, and of several there the last.
fn mount_of(mountinfo: &str, path: &Path) -> Option<Mount> {
    mountinfo
        .lines()
        .filter_map(parse_mount)
        .filter(|m| path.starts_with(&m.point))
        .max_by_key(|m| m.point.components().count())
}

fn parse_mount(line: &str) -> Option<Mount> {
    let (own, filesystem) = line.split_once(" - ")?;
    let own: Vec<&str> = own.split(' ').collect();
    let mut filesystem = filesystem.splitn(3, ' ');
    let (kind, source, superblock) = (filesystem.next()?, filesystem.next()?, filesystem.next()?);
    // Both lists begin with rw or ro: of the mount, and of the filesystem.
    let mut options: Vec<&str> = own.get(5)?.split(',').collect();
    for option in superblock.split(',') {
        if !options.contains(&option) {
            options.push(option);
        }
    }
    Some(Mount {
        numbers: (*own.get(2)?).to_owned(),
        point: PathBuf::from(unescape(own.get(4)?)),
        filesystem: kind.to_owned(),
        source: unescape(source),
        options: options.join(","),
    })
}

/// Takes back mountinfo's `\040` and the like.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, more)) = rest.split_first() {
        let octal = |digits: &[u8]| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok();
        match more.get(..3).filter(|_| first == b'\\').and_then(octal) {
            Some(byte) => {
                bytes.push(byte);
                rest = &more[3..];
            }
            None => {
                bytes.push(first);
                rest = more;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Mount {
    /// The kernel's name of the block device, where there is one.
    fn device(&self) -> Option<String> {
        let by_number = fs::canonicalize(Path::new("/sys/dev/block").join(&self.numbers)).ok();
        // Filesystems over several devices (btrfs) have no number of their own; their source names the first.
        let by_source = || {
            let real = Path::new(&self.source)
                .starts_with("/dev")
                .then(|| fs::canonicalize(&self.source).ok())??;
            let name = real.file_name()?;
            Path::new("/sys/class/block").join(name).exists().then_some(real)
        };
        let path = by_number.or_else(by_source)?;
        Some(path.file_name()?.to_str()?.to_owned())
    }
}

fn sysfs(device: &str) -> PathBuf {
    Path::new("/sys/class/block").join(device)
}

/// The whole disk that `device` is a partition of, or `device` itself.
fn disk_of(device: &str) -> String {
    let path = sysfs(device);
    let parent = || {
        let real = path.canonicalize().ok()?;
        Some(real.parent()?.file_name()?.to_str()?.to_owned())
    };
    if path.join("partition").exists() {
        parent().unwrap_or_else(|| device.to_owned())
    } else {
        device.to_owned()
    }
}

fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|t| t.trim().to_owned())
}

/// `none [mq-deadline] kyber` → `mq-deadline`.
fn in_brackets(text: &str) -> String {
    let chosen = text.split_once('[').and_then(|(_, r)| r.split_once(']')).map(|(c, _)| c);
    chosen.unwrap_or(text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw,discard\n\
        30 22 0:25 / /mnt/a\\040b rw,nosuid - tmpfs tmpfs rw,size=4k\n\
        31 22 254:16 / /data rw,noatime - xfs /dev/vdb rw,logbufs=8\n\
        32 22 254:32 / /data rw - ext4 /dev/vdc rw,data=journal\n";

    #[test]
    fn the_last_of_the_innermost_mounts_holds_a_path() {
        let mount = |path: &str| mount_of(MOUNTS, Path::new(path)).unwrap();
        assert_eq!(mount("/data/x").source, "/dev/vdc");
        assert_eq!(mount("/database").source, "/dev/vda1");
        assert_eq!(mount("/mnt/a b/c").filesystem, "tmpfs");
        assert_eq!(mount("/data").options, "rw,data=journal");
        assert_eq!(mount("/").options, "rw,relatime,discard");
    }

    #[test]
    fn this_machine_tells_of_itself() {
        let host = host();
        assert!(
            host.cpus > 0 && host.memory > Bytes(1 << 20) && host.kernel.starts_with("Linux "),
            "{host:?}"
        );
        let dir = tempfile::tempdir().unwrap();
        let storage = storage("here", dir.path()).unwrap();
        assert!(storage.size >= storage.available && !storage.filesystem.is_empty(), "{storage:?}");
        assert_eq!(storage.device.is_some(), storage.disk.is_some());
        assert!(super::storage("x", &dir.path().join("missing")).is_err());
    }

    #[test]
    fn the_scheduler_in_use_is_the_bracketed_one() {
        assert_eq!(in_brackets("none [mq-deadline] kyber"), "mq-deadline");
        assert_eq!(in_brackets("none"), "none");
    }
}
