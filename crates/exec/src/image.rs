//! Files of a given size, and loop devices over them.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fmt, io};

use pgdyno_model::units::Bytes;
use serde::{Deserialize, Serialize};

use crate::error::{StepError, io_error};
use crate::files::{nofollow, sync_directory};
use crate::mount::holders;
use crate::quote::quote;
use crate::tool::run_tool;

/// How long the kernel may take to let go of a loop device.
/// On a busy disk the last writes of its filesystem may take a while.
const DETACH_LIMIT: Duration = Duration::from_secs(30);

/// A file to be made, all its blocks allocated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Size of the file once it is made.
    pub size: Bytes,
}

impl ImageFile {
    /// Makes the file. One that exists is somebody else's, and is left alone.
    ///
    /// # Errors
    /// [`StepError`]: the file exists, or the filesystem has no room.
    pub fn allocate(&self) -> Result<(), StepError> {
        let file = File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .custom_flags(nofollow())
            .open(&self.path)
            .map_err(|e| io_error("make", &self.path, e))?;
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, self.size.0)
            .map_err(|e| io_error("allocate all blocks of", &self.path, e.into()))?;
        file.sync_all()
            .and_then(|()| self.path.parent().map_or(Ok(()), sync_directory))
            .map_err(|e| io_error("sync", &self.path, e))
    }
}

impl fmt::Display for ImageFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = quote(self.path.as_os_str());
        write!(
            f,
            "make file {path} of {} ({} bytes), all blocks allocated (mode 0600)",
            self.size, self.size.0
        )
    }
}

/// A loop device over a file of pgdyno's. Which one the kernel gives is known only then: later
/// steps use the link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopDevice {
    /// The file.
    pub image: PathBuf,
    /// The symbolic link that will lead to `/dev/loopN`.
    pub link: PathBuf,
    /// Logical sector size (bytes); none means the kernel's default.
    pub sector_size: Option<u32>,
    /// Whether it bypasses the page cache of the filesystem that holds the file.
    pub direct_io: bool,
    /// Where it begins in the file (bytes); none: at the file's begin.
    pub offset: Option<Bytes>,
}

impl LoopDevice {
    fn args(&self) -> Vec<OsString> {
        let mut args: Vec<OsString> = vec!["--find".into(), "--show".into()];
        if let Some(size) = self.sector_size {
            args.extend(["--sector-size".into(), size.to_string().into()]);
        }
        if let Some(offset) = self.offset {
            args.extend(["--offset".into(), offset.0.to_string().into()]);
        }
        args.push(if self.direct_io { "--direct-io=on" } else { "--direct-io=off" }.into());
        args.push(self.image.clone().into());
        args
    }

    /// Attaches it, and compares the kernel's values with the wanted ones.
    ///
    /// # Errors
    /// [`StepError`]: `losetup` fails, or the kernel shows other values.
    pub fn attach(&self) -> Result<(), StepError> {
        let device = PathBuf::from(run_tool("losetup", &self.args())?.trim());
        let sysfs = sysfs_of(&device);
        let backing = read(&sysfs.join("loop/backing_file"))?;
        if backing != self.image.display().to_string() {
            let told = io::Error::other(format!("{} is over {backing}", device.display()));
            return Err(io_error("attach a loop device to", &self.image, told));
        }
        symlink(&device, &self.link).map_err(|e| io_error("make the link", &self.link, e))?;
        let shown = |file: &str, asked: String| match read(&sysfs.join(file))? {
            value if value == asked => Ok(()),
            value => {
                let told = format!("asked for {asked} and got {value}");
                Err(io_error("set", &sysfs.join(file), io::Error::other(told)))
            }
        };
        shown("loop/dio", u8::from(self.direct_io).to_string())?;
        shown("loop/offset", self.offset.map_or(0, |offset| offset.0).to_string())?;
        self.sector_size.map_or(Ok(()), |size| shown("queue/logical_block_size", size.to_string()))
    }
}

impl fmt::Display for LoopDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("run: losetup")?;
        self.args().iter().try_for_each(|arg| write!(f, " {}", quote(arg)))?;
        write!(f, "\nlink {} to the device that it names", quote(self.link.as_os_str()))
    }
}

/// Detaches every loop device over `image`, waits until the kernel has let go of them, and removes
/// `link`.
///
/// # Errors
/// [`StepError`]: a device stays in use, or the link cannot be removed.
pub fn detach_loops(image: &Path, link: &Path) -> Result<(), StepError> {
    let until = Instant::now() + DETACH_LIMIT;
    while let Some(device) = loops_over(|file| file == image)?.into_iter().next() {
        // A device that is still open is let go of when it is closed; a second request does no
        // harm.
        if let Err(e) = run_tool("losetup", &[OsString::from("--detach"), device.clone().into()])
            && is_attached(&device)
        {
            return Err(e);
        }
        while is_attached(&device) {
            if Instant::now() >= until {
                let users = holders::named(&holders::processes(&device));
                let told = format!("{} is still in use: {users}", device.display());
                return Err(io_error("detach the loop device from", image, io::Error::other(told)));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    match fs::remove_file(link) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(io_error("remove", link, e)),
        _ => Ok(()),
    }
}

/// Returns the loop devices whose backing file `wanted` accepts.
///
/// # Errors
/// [`StepError`]: sysfs is not readable.
pub fn loops_over(wanted: impl Fn(&Path) -> bool) -> Result<Vec<PathBuf>, StepError> {
    let block = Path::new("/sys/block");
    let mut devices = Vec::new();
    for device in fs::read_dir(block).map_err(|e| io_error("list", block, e))?.flatten() {
        let Ok(file) = fs::read_to_string(device.path().join("loop/backing_file")) else {
            continue;
        };
        let file = file.trim_end_matches('\n');
        if wanted(Path::new(file.strip_suffix(" (deleted)").unwrap_or(file))) {
            devices.push(Path::new("/dev").join(device.file_name()));
        }
    }
    Ok(devices)
}

fn is_attached(device: &Path) -> bool {
    sysfs_of(device).join("loop/backing_file").exists()
}

fn sysfs_of(device: &Path) -> PathBuf {
    Path::new("/sys/block").join(device.file_name().unwrap_or_default())
}

fn read(path: &Path) -> Result<String, StepError> {
    let text = fs::read_to_string(path).map_err(|e| io_error("read", path, e))?;
    Ok(text.trim().to_owned())
}
