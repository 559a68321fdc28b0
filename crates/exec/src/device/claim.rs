//! The last look at a named device before it is written, and what is removed from it afterwards.

use std::fmt;
use std::path::PathBuf;

use rustix::fs::OFlags;

use super::edge;
use super::held::{self, Held};
use super::identity::BlockDevice;
use super::safety::{self, Found, SafetyError, Wipe};
use crate::step::{StepError, io_error, quote};
use crate::tool as program;

/// A named device that is about to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The device as it was looked at; none in a plan that has looked at no machine.
    pub looked_at: Option<BlockDevice>,
    /// Its path.
    pub device: PathBuf,
    /// What the user gave up.
    pub wipe: Wipe,
}

impl Claim {
    /// Checks it once more, and that it is still the same device.
    pub fn check(&self) -> Result<(), StepError> {
        let now = safety::check(&self.device, &self.wipe)?;
        match &self.looked_at {
            Some(was) if !was.is_same(&now) => {
                let found = Found::Changed { was: was.numbers(), is: now.numbers() };
                Err(SafetyError { device: self.device.clone(), found }.into())
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "look that {} is unused and may be overwritten", quote(self.device.as_os_str()))?;
        self.looked_at
            .as_ref()
            .map_or(Ok(()), |device| write!(f, ", and still is {}", device.numbers()))
    }
}

/// A named device that pgdyno put its own filesystem or volume on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labelled {
    /// The device.
    pub device: PathBuf,
    /// The device as it was looked at; none in a plan that has looked at no machine.
    pub looked_at: Option<BlockDevice>,
    /// The label, or name, of what pgdyno made there.
    pub label: String,
}

impl Labelled {
    /// Removes every signature and clears both ends, if a signature bears the label. Until the
    /// machine is restarted it does so too if none is left and the label stands in the first MiB,
    /// where LVM's own programs leave it. A device that is gone, or holds nothing of pgdyno's, is
    /// left alone.
    pub fn erase(&self) -> Result<(), StepError> {
        let failed = |found| SafetyError { device: self.device.clone(), found };
        let Some(held) = self.held() else { return Ok(()) };
        let node = held.device().node();
        let signatures = safety::signatures(&node).map_err(|e| failed(Found::NotTold(e)))?;
        // mdadm puts the host's name before its own: `host:name`.
        let ours = |label: &str| label.rsplit(':').next() == Some(self.label.as_str());
        let is_known = self.looked_at.as_ref().is_some_and(BlockDevice::is_of_this_boot);
        let is_labelled = if signatures.is_empty() && is_known {
            edge::holds(held.file(), &self.label).map_err(|e| failed(Found::Unreadable(e)))?
        } else {
            signatures.iter().any(|s| s.label.as_deref().is_some_and(ours))
        };
        if !is_labelled {
            return Ok(());
        }
        // A mkfs that outlived its killed pgdyno would write it anew.
        drop(held.exclusive(OFlags::empty()).map_err(failed)?);
        program::output("wipefs", &["--all".as_ref(), node.as_os_str()])?;
        // Else the next run would take what is left for somebody's data.
        let device = held.exclusive(OFlags::RDWR).map_err(failed)?;
        edge::clear(&device).map_err(|e| io_error("clear both ends of", &self.device, e))?;
        Ok(held.check()?)
    }

    /// The device itself as long as the machine runs; after a restart what its name leads to, where
    /// the label decides.
    fn held(&self) -> Option<Held> {
        match self.looked_at.as_ref().filter(|device| device.is_of_this_boot()) {
            Some(device) => held::hold(std::slice::from_ref(device)).ok()?.pop(),
            None => Held::open(&held::resolve(&self.device).ok()?).ok(),
        }
    }
}

impl fmt::Display for Labelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let node = self.looked_at.as_ref().map_or_else(|| self.device.clone(), BlockDevice::node);
        let device = quote(node.as_os_str());
        write!(
            f,
            "run, if {device} bears the label {}: wipefs --all {device}, then clear its first and last MiB",
            self.label
        )
    }
}
