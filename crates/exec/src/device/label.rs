//! Removes pgdyno's signatures from a named device.

use std::path::Path;

use rustix::fs::OFlags;

use super::held::{self, BUSY_FOR, HeldDevice, once_free};
use super::identity::BlockDevice;
use super::refusal::{Refusal, SafetyError};
use super::{edge, safety};
use crate::error::{StepError, io_error};
use crate::tool::run_tool;

/// Removes every signature from `device` and clears both ends, if a signature bears `label`.
///
/// LVM's own programs remove the signature and leave the label in the first MiB. So a label there
/// counts too, if no signature is left and the machine was not restarted since `looked_at`, the
/// device before it was written. A device that is gone, or holds nothing of pgdyno's, is left
/// alone.
///
/// # Errors
/// [`StepError`]: the device is in use, or cannot be read or written.
pub fn erase_labelled(
    device: &Path,
    label: &str,
    looked_at: Option<&BlockDevice>,
) -> Result<(), StepError> {
    let failed = |found| SafetyError { device: device.to_owned(), found };
    let Some(held) = hold(device, looked_at) else { return Ok(()) };
    let node = held.device().node();
    let signatures = safety::signatures(&node).map_err(|e| failed(Refusal::NotTold(e)))?;
    // mdadm puts the host's name before its own: `host:name`.
    let is_ours = |found: &str| found.rsplit(':').next() == Some(label);
    let is_known = looked_at.is_some_and(BlockDevice::is_of_this_boot);
    let is_labelled = if signatures.is_empty() && is_known {
        edge::holds(held.file(), label).map_err(|e| failed(Refusal::Unreadable(e)))?
    } else {
        signatures.iter().any(|s| s.label.as_deref().is_some_and(is_ours))
    };
    if !is_labelled {
        return Ok(());
    }
    // Somebody may look at it in passing, or have a copy of the mount that was just taken away.
    let exclusive = |access| held.exclusive_within(BUSY_FOR, access).map_err(failed);
    // A mkfs that outlived its killed pgdyno would write it anew.
    drop(exclusive(OFlags::empty())?);
    let args = ["--all".as_ref(), node.as_os_str()];
    once_free(BUSY_FOR, held::passes, || run_tool("wipefs", &args))?;
    // Else the next run would take what is left for somebody's data.
    let file = exclusive(OFlags::RDWR)?;
    edge::clear(&file).map_err(|e| io_error("clear both ends of", device, e))?;
    Ok(held.check()?)
}

/// Holds the device itself as long as the machine runs; after a restart what its name leads to,
/// where the label decides.
fn hold(device: &Path, looked_at: Option<&BlockDevice>) -> Option<HeldDevice> {
    match looked_at.filter(|device| device.is_of_this_boot()) {
        Some(device) => held::hold(std::slice::from_ref(device)).ok()?.pop(),
        None => HeldDevice::open(&held::resolve(device).ok()?).ok(),
    }
}
