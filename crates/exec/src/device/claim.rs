//! The last look at a named device before it is written.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::identity::BlockDevice;
use super::refusal::{Refusal, SafetyError};
use super::safety::{self, Wipe};
use crate::error::StepError;
use crate::quote::quote;

/// A named device that is about to be written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The device as it was looked at; none in a plan that has looked at no machine.
    pub looked_at: Option<BlockDevice>,
    /// Path by which the user named the device.
    pub device: PathBuf,
    /// Consent of the user to overwrite the device.
    pub wipe: Wipe,
}

impl Claim {
    /// Checks it once more, and that it is still the same device.
    ///
    /// # Errors
    /// [`SafetyError`]: it is in use, holds data, or another device has its name.
    pub fn check(&self) -> Result<(), StepError> {
        let now = safety::check(&self.device, &self.wipe)?;
        match &self.looked_at {
            Some(was) if !was.is_same(&now) => {
                let found = Refusal::Changed { was: was.numbers(), is: now.numbers() };
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
