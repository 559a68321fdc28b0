//! Devices held open while they are written, so that what was checked is what is written
//! (docs/adr/0025).
//!
//! While a descriptor is open the kernel gives the device's number to no other disk, and lets
//! nobody detach a loop device. Programs open the node that the kernel made in `/dev`, which leads
//! to that number. Call [`hold`] right before a step and [`Held::check`] right after it.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

use super::identity::BlockDevice;
use super::refusal::{Found, SafetyError};

/// A block device that is open.
#[derive(Debug)]
pub struct Held {
    /// For reading, without `O_EXCL`, which the programs that write it want for themselves.
    file: File,
    device: BlockDevice,
}

/// Opens each of `devices` by its node in `/dev`, and looks whether it still is the same device.
///
/// # Errors
/// [`SafetyError`]: it cannot be opened, or another device has its place.
pub fn hold(devices: &[BlockDevice]) -> Result<Vec<Held>, SafetyError> {
    let failed = |device: &BlockDevice, found| SafetyError { device: device.path.clone(), found };
    devices.iter().map(|device| Held::open(device).map_err(|found| failed(device, found))).collect()
}

/// The device that `path` leads to now. The name is resolved this once, and the device is not
/// opened: a name may lead to a tape or a pipe, which an opening moves or blocks.
///
/// # Errors
/// [`Found`]: it cannot be looked at, or is no block device.
pub fn resolve(path: &Path) -> Result<BlockDevice, Found> {
    let seen = open(path, OFlags::PATH)?;
    BlockDevice::opened(path, &seen).map_err(|e| match e.kind() {
        std::io::ErrorKind::InvalidInput => Found::NotABlockDevice,
        _ => Found::Unreadable(e),
    })
}

impl Held {
    /// Opens `device` by its node in `/dev`, and looks whether it still is the same device.
    ///
    /// # Errors
    /// [`Found`]: it cannot be opened, or another device has its place.
    pub fn open(device: &BlockDevice) -> Result<Self, Found> {
        let held = Self { file: open(&device.node(), OFlags::empty())?, device: device.clone() };
        held.compare()?;
        Ok(held)
    }

    /// Looks whether descriptor and node still are the device that they were opened for.
    ///
    /// # Errors
    /// [`SafetyError`]: another device has its place.
    pub fn check(&self) -> Result<(), SafetyError> {
        self.compare().map_err(|found| SafetyError { device: self.device.path.clone(), found })
    }

    /// As [`Self::check`], for one who names the device.
    ///
    /// # Errors
    /// [`Found`]: another device has its place.
    pub fn compare(&self) -> Result<(), Found> {
        let changed = |is: String| Found::Changed { was: self.device.numbers(), is };
        let gone = |e: std::io::Error| changed(format!("nothing that can be looked at ({e})"));
        let opened = BlockDevice::opened(&self.device.path, &self.file).map_err(gone)?;
        let named = BlockDevice::at(&self.device.node()).map_err(gone)?;
        match [opened, named].into_iter().find(|now| !self.device.is_same(now)) {
            Some(other) => Err(changed(other.numbers())),
            None => Ok(()),
        }
    }

    /// The device.
    pub fn device(&self) -> &BlockDevice {
        &self.device
    }

    /// Its descriptor, for reading.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Opens it once more as mount and swapon do, for `access`. Whatever use other looks missed
    /// shows here.
    ///
    /// # Errors
    /// [`Found`]: somebody uses it; it cannot be opened.
    pub fn exclusive(&self, access: OFlags) -> Result<File, Found> {
        let file = open(&self.device.node(), access | OFlags::EXCL)?;
        let now = BlockDevice::opened(&self.device.path, &file).map_err(Found::Unreadable)?;
        if self.device.is_same(&now) {
            return Ok(file);
        }
        Err(Found::Changed { was: self.device.numbers(), is: now.numbers() })
    }
}

fn open(path: &Path, flags: OFlags) -> Result<File, Found> {
    let write = flags.contains(OFlags::RDWR);
    let flags = flags.difference(OFlags::RDWR) | OFlags::CLOEXEC;
    let opened =
        File::options().read(true).write(write).custom_flags(flags.bits().cast_signed()).open(path);
    opened.map_err(|e| {
        if e.kind() == std::io::ErrorKind::ResourceBusy {
            Found::InUse
        } else {
            Found::Unreadable(e)
        }
    })
}
