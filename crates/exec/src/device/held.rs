//! Holds devices open while they are written, so that the checked device is the written one
//! (docs/adr/0025).
//!
//! While a descriptor is open the kernel gives the device's number to no other disk, and lets
//! nobody detach a loop device. Programs open the node that the kernel made in `/dev`, which leads
//! to that number. Call [`hold`] right before a step and [`HeldDevice::check`] right after it.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use super::identity::BlockDevice;
use super::refusal::{Refusal, SafetyError};
use crate::error::StepError;

/// A block device that is open.
#[derive(Debug)]
pub struct HeldDevice {
    /// For reading, without `O_EXCL`, which the programs that write it want for themselves.
    file: File,
    device: BlockDevice,
}

/// Opens each of `devices` by its node in `/dev`, and checks that the device did not change.
///
/// # Errors
/// [`SafetyError`]: it cannot be opened, or another device has its place.
pub fn hold(devices: &[BlockDevice]) -> Result<Vec<HeldDevice>, SafetyError> {
    let failed = |device: &BlockDevice, found| SafetyError { device: device.path.clone(), found };
    devices
        .iter()
        .map(|device| HeldDevice::open(device).map_err(|found| failed(device, found)))
        .collect()
}

/// Returns the device that `path` leads to now. The name is resolved this once, and the device is
/// not opened: a name may lead to a tape or a pipe, which an opening moves or blocks.
///
/// # Errors
/// [`Refusal`]: it cannot be looked at, or is no block device.
pub fn resolve(path: &Path) -> Result<BlockDevice, Refusal> {
    let seen = open(path, OFlags::PATH)?;
    BlockDevice::opened(path, &seen).map_err(|e| match e.kind() {
        std::io::ErrorKind::InvalidInput => Refusal::NotABlockDevice,
        _ => Refusal::Unreadable(e),
    })
}

impl HeldDevice {
    /// Opens `device` by its node in `/dev`, and checks that the device did not change.
    ///
    /// # Errors
    /// [`Refusal`]: it cannot be opened, or another device has its place.
    pub fn open(device: &BlockDevice) -> Result<Self, Refusal> {
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

    /// As [`Self::check`], with an error that does not name the device.
    ///
    /// # Errors
    /// [`Refusal`]: another device has its place.
    pub fn compare(&self) -> Result<(), Refusal> {
        let changed = |is: String| Refusal::Changed { was: self.device.numbers(), is };
        let gone = |e: std::io::Error| changed(format!("nothing that can be looked at ({e})"));
        let opened = BlockDevice::opened(&self.device.path, &self.file).map_err(gone)?;
        let named = BlockDevice::at(&self.device.node()).map_err(gone)?;
        match [opened, named].into_iter().find(|now| !self.device.is_same(now)) {
            Some(other) => Err(changed(other.numbers())),
            None => Ok(()),
        }
    }

    /// Returns the device.
    pub fn device(&self) -> &BlockDevice {
        &self.device
    }

    /// Returns its descriptor, for reading.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Opens it once more as mount and swapon do, for `access`. Whatever use other looks missed
    /// shows here.
    ///
    /// A use that ends within half a second is waited for. A program that another thread starts
    /// holds copies of this process's descriptors until it is executed, and other programs look at
    /// a device as it appears.
    ///
    /// # Errors
    /// [`Refusal`]: somebody uses it; it cannot be opened.
    pub fn exclusive(&self, access: OFlags) -> Result<File, Refusal> {
        self.exclusive_within(Duration::from_millis(500), access)
    }

    /// As [`Self::exclusive`], and waits for a use that ends within `limit`.
    pub(crate) fn exclusive_within(
        &self,
        limit: Duration,
        access: OFlags,
    ) -> Result<File, Refusal> {
        let is_used = |found: &Refusal| matches!(found, Refusal::InUse);
        let file = once_free(limit, is_used, || open(&self.device.node(), access | OFlags::EXCL))?;
        let now = BlockDevice::opened(&self.device.path, &file).map_err(Refusal::Unreadable)?;
        if self.device.is_same(&now) {
            return Ok(file);
        }
        Err(Refusal::Changed { was: self.device.numbers(), is: now.numbers() })
    }
}

/// How long a step that meets a device in use is tried again.
pub(crate) const BUSY_FOR: Duration = Duration::from_secs(5);

/// Failures that pass, after which nothing was changed.
///
/// `wipefs` opens its device for itself alone. Whoever looks at a device in passing, such as a
/// volume manager, lets go of it soon; one that is really in use was refused before. `mkfs.btrfs`
/// looks at all that is mounted, and fails if the server of a filesystem dies meanwhile; the next
/// time it does without that one.
pub(crate) fn passes(error: &StepError) -> bool {
    const PASSING: [(&str, &str); 2] =
        [("wipefs", "resource busy"), ("mkfs.btrfs", "cannot check mount status")];
    matches!(error, StepError::Failed { program, output, .. }
        if PASSING.iter().any(|(name, said)| program == Path::new(name) && output.contains(said)))
}

/// Makes an `attempt` on a device, and makes it again for up to `limit` while its error is one that
/// `is_busy` tells. Returns how the last one ended.
pub(crate) fn once_free<T, E>(
    limit: Duration,
    is_busy: impl Fn(&E) -> bool,
    mut attempt: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    let until = Instant::now() + limit;
    loop {
        match attempt() {
            Err(e) if is_busy(&e) && Instant::now() < until => {
                thread::sleep(Duration::from_millis(50));
            }
            ended => return ended,
        }
    }
}

fn open(path: &Path, flags: OFlags) -> Result<File, Refusal> {
    let write = flags.contains(OFlags::RDWR);
    let flags = flags.difference(OFlags::RDWR) | OFlags::CLOEXEC;
    let opened =
        File::options().read(true).write(write).custom_flags(flags.bits().cast_signed()).open(path);
    opened.map_err(|e| {
        if e.kind() == std::io::ErrorKind::ResourceBusy {
            Refusal::InUse
        } else {
            Refusal::Unreadable(e)
        }
    })
}
