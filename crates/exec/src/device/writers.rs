//! Who writes to a block device without claiming it: virtual machines, databases on raw devices,
//! loop devices.
//!
//! All are found by the device's number. A node of any name leads to it, made anywhere by `mknod`,
//! removed since, or in another mount namespace.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, OFlags, StatxFlags};

/// Returns a process that has one of the devices `numbers` (`8:1`) open for writing or mapped so;
/// none if nobody has.
///
/// Processes that end meanwhile, or that are closed to us, tell nothing: the exclusive opening
/// comes on top.
pub fn process(numbers: &[&str]) -> Option<String> {
    let processes = fs::read_dir("/proc").ok()?.flatten().map(|p| p.path());
    let numbered =
        |p: &PathBuf| p.file_name().is_some_and(|n| n.to_string_lossy().parse::<u32>().is_ok());
    processes.filter(numbered).find_map(|process| {
        let how = if has_open(&process, numbers) {
            ""
        } else if has_mapped(&process, numbers) {
            ", in memory"
        } else {
            return None;
        };
        let program = fs::read_to_string(process.join("comm")).unwrap_or_default();
        let pid = process.file_name()?.to_string_lossy();
        Some(format!("process {pid} ({}{how})", program.trim()))
    })
}

/// Returns the loop devices over one of the devices `numbers`. To the kernel a loop device is no
/// holder, and it does not claim what it lies on.
///
/// # Errors
/// The path that cannot be read, with the cause: sysfs, or a loop device that cannot be asked.
pub fn loops(numbers: &[&str]) -> Result<Vec<String>, (PathBuf, io::Error)> {
    const BLOCK: &str = "/sys/block";
    let mut found = Vec::new();
    for entry in fs::read_dir(BLOCK).map_err(|e| (BLOCK.into(), e))?.flatten() {
        if !entry.path().join("loop/backing_file").exists() {
            continue;
        }
        let node = Path::new("/dev").join(entry.file_name());
        let number = match File::open(&node).and_then(pgdyno_ioctl::loop_backing_number) {
            Ok(number) => number,
            // Detached meanwhile.
            Err(_) if !entry.path().join("loop/backing_file").exists() => continue,
            Err(e) => return Err((node, e)),
        };
        let number = format!("{}:{}", rustix::fs::major(number), rustix::fs::minor(number));
        if numbers.contains(&number.as_str()) {
            found.push(node.display().to_string());
        }
    }
    Ok(found)
}

fn has_open(process: &Path, numbers: &[&str]) -> bool {
    fs::read_dir(process.join("fd")).into_iter().flatten().flatten().any(|fd| {
        number(&fd.path()).is_some_and(|n| numbers.contains(&n.as_str())) && {
            let info =
                fs::read_to_string(process.join("fdinfo").join(fd.file_name())).unwrap_or_default();
            let flags = info.lines().find_map(|l| l.strip_prefix("flags:"));
            let flags =
                flags.and_then(|f| u32::from_str_radix(f.trim(), 8).ok()).unwrap_or_default();
            flags & OFlags::ACCMODE.bits() != OFlags::RDONLY.bits()
        }
    })
}

/// Tells whether it has a writable mapping that others see too: what is written to it reaches the
/// device.
fn has_mapped(process: &Path, numbers: &[&str]) -> bool {
    let maps = fs::read_to_string(process.join("maps")).unwrap_or_default();
    maps.lines().any(|line| {
        let mut words = line.split_whitespace();
        let (Some(range), Some(rights)) = (words.next(), words.next()) else { return false };
        // `maps` fills small addresses up with zeros, `map_files` does not.
        let range: Vec<&str> =
            range.split('-').map(|address| address.trim_start_matches('0')).collect();
        let range = range.join("-");
        rights.contains('w')
            && rights.ends_with('s')
            && number(&process.join("map_files").join(range))
                .is_some_and(|n| numbers.contains(&n.as_str()))
    })
}

/// Returns the number of the block device that the link `path` of /proc leads to; none if it is
/// something else.
fn number(path: &Path) -> Option<String> {
    // Without asking a server: that of a network filesystem may be gone, and an answer waited for
    // forever.
    let found = rustix::fs::statx(CWD, path, AtFlags::STATX_DONT_SYNC, StatxFlags::TYPE).ok()?;
    let is_block = FileType::from_raw_mode(found.stx_mode.into()) == FileType::BlockDevice;
    is_block.then(|| format!("{}:{}", found.stx_rdev_major, found.stx_rdev_minor))
}
