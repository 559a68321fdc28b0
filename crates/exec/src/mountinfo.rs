//! The mounts of this machine, from `/proc/PID/mountinfo` (see proc(5)).
//!
//! The crate `procfs` reads the file too. It neither takes escapes back in paths nor keeps the
//! order of options, which reports show.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// One line of `mountinfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountEntry {
    /// `major:minor` of the device, for filesystems over one device.
    pub numbers: String,
    /// The part of the filesystem that is mounted.
    pub root: PathBuf,
    /// Where it is mounted.
    pub point: PathBuf,
    /// The type, as `mount -t` wants it.
    pub filesystem: String,
    /// The source, by the name that it was mounted by.
    pub source: String,
    /// The options of this mount: `rw`, `noatime`, …
    pub mount_options: Vec<String>,
    /// The options of the filesystem, equal for all its mounts.
    pub super_options: Vec<String>,
}

impl MountEntry {
    fn parse(line: &str) -> Option<Self> {
        let (own, filesystem) = line.split_once(" - ")?;
        let own: Vec<&str> = own.split(' ').collect();
        let mut filesystem = filesystem.splitn(3, ' ');
        let (kind, source, superblock) =
            (filesystem.next()?, filesystem.next()?, filesystem.next()?);
        let list = |text: &str| text.split(',').map(unescape).collect();
        Some(Self {
            numbers: (*own.get(2)?).to_owned(),
            root: PathBuf::from(unescape(own.get(3)?)),
            point: PathBuf::from(unescape(own.get(4)?)),
            filesystem: kind.to_owned(),
            source: unescape(source),
            mount_options: list(own.get(5)?),
            super_options: list(superblock),
        })
    }

    /// Tells whether it is `filesystem` from `source`. zfs-fuse counts as zfs.
    pub fn is(&self, filesystem: &str, source: &Path) -> bool {
        self.filesystem.strip_prefix("fuse.").unwrap_or(&self.filesystem) == filesystem
            && real_source(Path::new(&self.source)) == real_source(source)
    }

    /// Returns the options of the mount, then the options that only the filesystem has.
    pub fn options(&self) -> Vec<String> {
        let mut all = self.mount_options.clone();
        all.extend(self.super_options.iter().filter(|o| !self.mount_options.contains(o)).cloned());
        all
    }

    /// Returns the file of the loop device that it lies on, where it lies on one.
    pub fn loop_file(&self) -> Option<PathBuf> {
        let backing = Path::new("/sys/block").join(self.device()?).join("loop/backing_file");
        let file = fs::read_to_string(backing).ok()?;
        Some(PathBuf::from(file.trim_end_matches('\n')))
    }

    /// Returns the directory in which an overlay's files lie, if it is one and the directory can be
    /// seen: a container does not see it, and one that was named relative to a directory is lost.
    pub fn upper_directory(&self) -> Option<PathBuf> {
        if self.filesystem != "overlay" {
            return None;
        }
        let upper = self.super_options.iter().find_map(|o| o.strip_prefix("upperdir="))?;
        let upper = Path::new(upper);
        upper.is_absolute().then(|| upper.canonicalize().ok()).flatten()
    }

    /// Returns the kernel's name of the block device (`vda1`), where there is one.
    pub fn device(&self) -> Option<String> {
        let by_number = fs::canonicalize(Path::new("/sys/dev/block").join(&self.numbers)).ok();
        // Filesystems over several devices (btrfs) have no number of their own; their source names
        // the first.
        let by_source = || {
            // Its path may be a symbolic link, which btrfs keeps as it was told.
            let source = Path::new(&self.source);
            let real = source.is_absolute().then(|| fs::canonicalize(source).ok())??;
            let name = real.strip_prefix("/dev").ok()?.file_name()?;
            Path::new("/sys/class/block").join(name).exists().then_some(real)
        };
        if self.filesystem == "overlay" {
            let upper = self.upper_directory()?;
            let mounts = mounts().ok()?;
            return holding(&mounts, &upper).filter(|m| m.filesystem != "overlay")?.device();
        }
        let path = by_number.or_else(by_source)?;
        Some(path.file_name()?.to_str()?.to_owned())
    }
}

/// Returns the path of a device without symbolic links. A source that is no path stays as it is.
///
/// mountinfo shows the name that the device was mounted by, and that link may vanish before the
/// mount does.
pub fn real_source(source: &Path) -> PathBuf {
    if source.is_absolute() {
        source.canonicalize().unwrap_or_else(|_| source.to_owned())
    } else {
        source.to_owned()
    }
}

/// Returns all mounts in a `mountinfo` file's text, in its order: later ones cover earlier ones at
/// the same point.
pub fn parse(text: &str) -> Vec<MountEntry> {
    text.lines().filter_map(MountEntry::parse).collect()
}

/// Returns the mounts that this process sees.
///
/// # Errors
/// `/proc` is not readable.
pub fn mounts() -> io::Result<Vec<MountEntry>> {
    fs::read_to_string("/proc/self/mountinfo").map(|text| parse(&text))
}

/// Returns the mount right at the absolute path `point`; of several the last, which covers the
/// others.
///
/// # Errors
/// `/proc` is not readable.
pub fn mounted_at(point: &Path) -> io::Result<Option<MountEntry>> {
    let point = as_listed(point);
    Ok(mounts()?.into_iter().rfind(|m| m.point == point))
}

/// Returns the path without symbolic links, as the kernel lists it. The last name is not looked at:
/// a mount whose server has died answers nothing.
pub fn as_listed(point: &Path) -> PathBuf {
    let real = || Some(point.parent()?.canonicalize().ok()?.join(point.file_name()?));
    real().unwrap_or_else(|| point.to_owned())
}

/// Returns the mounts at `directory` and beneath it, in the order of unmounting.
///
/// # Errors
/// `/proc` is not readable.
pub fn mounted_beneath(directory: &Path) -> io::Result<Vec<MountEntry>> {
    let directory = as_listed(directory);
    let mut beneath: Vec<MountEntry> =
        mounts()?.into_iter().filter(|m| m.point.starts_with(&directory)).collect();
    beneath.reverse();
    Ok(beneath)
}

/// Returns the mount that holds the absolute path `path`: the longest mount point, and of several
/// there the last.
pub fn holding<'a>(mounts: &'a [MountEntry], path: &Path) -> Option<&'a MountEntry> {
    mounts
        .iter()
        .filter(|m| path.starts_with(&m.point))
        .max_by_key(|m| m.point.components().count())
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

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw,discard\n\
        30 22 0:25 / /mnt/a\\040b rw,nosuid - tmpfs tmpfs rw,size=4k\n\
        31 22 254:16 / /data rw,noatime - xfs /dev/vdb rw,logbufs=8\n\
        32 22 254:32 / /data rw - ext4 /dev/vdc rw,data=journal\n";

    #[test]
    fn the_last_of_the_innermost_mounts_holds_a_path() {
        let mounts = parse(MOUNTS);
        let mount = |path: &str| holding(&mounts, Path::new(path)).unwrap();
        assert_eq!(mount("/data/x").source, "/dev/vdc");
        assert_eq!(mount("/database").source, "/dev/vda1");
        assert_eq!(mount("/mnt/a b/c").filesystem, "tmpfs");
        assert_eq!(mount("/data").options(), ["rw", "data=journal"]);
        assert_eq!(mount("/").options(), ["rw", "relatime", "discard"]);
    }
}
