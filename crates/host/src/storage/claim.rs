//! The last look at a named device before it is written, and what is removed from it afterwards.

use std::fmt;
use std::path::PathBuf;

use super::identity::BlockDevice;
use super::program;
use super::safety::{self, Found, SafetyError, Wipe};
use crate::step::{StepError, quote};

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
    pub(crate) fn check(&self) -> Result<(), StepError> {
        let now = safety::check(&self.device, &self.wipe)?;
        match &self.looked_at {
            Some(was) if (&was.number, was.sequence) != (&now.number, now.sequence) => {
                let found = Found::Changed { was: told(was), is: told(&now) };
                Err(SafetyError { device: self.device.clone(), found }.into())
            }
            _ => Ok(()),
        }
    }
}

fn told(device: &BlockDevice) -> String {
    let sequence = device.sequence.map_or_else(String::new, |s| format!(" (disk sequence {s})"));
    format!("{} {}{sequence}", device.name, device.number)
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "look that {} is unused and may be overwritten", quote(self.device.as_os_str()))?;
        self.looked_at.as_ref().map_or(Ok(()), |device| write!(f, ", and still is {}", told(device)))
    }
}

/// A named device that pgdyno put its own filesystem or volume on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labelled {
    /// The device.
    pub device: PathBuf,
    /// The label, or name, of what pgdyno made there.
    pub label: String,
}

impl Labelled {
    /// Removes every signature, if one of them bears the label. A device that is gone, or holds nothing of pgdyno's,
    /// is left alone.
    pub(crate) fn erase(&self) -> Result<(), StepError> {
        let Ok(device) = BlockDevice::at(&self.device) else { return Ok(()) };
        let failed = |found| SafetyError { device: self.device.clone(), found };
        let signatures = safety::signatures(&device.node()).map_err(|e| failed(Found::NotTold(e)))?;
        // mdadm puts the host's name before its own: `host:name`.
        let ours = |label: &str| label.rsplit(':').next() == Some(self.label.as_str());
        if signatures.iter().any(|s| s.label.as_deref().is_some_and(ours)) {
            // A mkfs that outlived its killed pgdyno would write it anew.
            safety::exclusive(&device).map_err(failed)?;
            program::output("wipefs", &["--all".as_ref(), device.node().as_os_str()])?;
        }
        Ok(())
    }
}

impl fmt::Display for Labelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let device = quote(self.device.as_os_str());
        write!(f, "run, if {device} bears the label {}: wipefs --all {device}", self.label)
    }
}
