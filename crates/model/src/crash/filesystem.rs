//! Filesystems after a power cut: the mount that replays the journal, and what fsck finds then.

use serde::{Deserialize, Serialize};

/// A filesystem after the power cut of a round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FilesystemRecovery {
    /// The storage's name in the experiment file.
    pub storage: String,
    /// The filesystem's name: `ext4`.
    pub filesystem: String,
    /// How long the first mount after the last power cut took, in which the journal is replayed
    /// (milliseconds).
    pub mount_ms: f64,
    /// What a check without repairs found, once the server had recovered and was stopped, and the
    /// filesystem unmounted.
    pub fsck: Fsck,
}

/// What came of a filesystem's own check, which repaired nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "outcome")]
pub enum Fsck {
    /// It ended with status 0: it found nothing wrong.
    Clean {
        /// The program with its flags, without the device: `e2fsck -f -n`.
        command: String,
        /// How long it took (milliseconds).
        ms: f64,
    },
    /// It ended with another status.
    Complained {
        /// The program with its flags, without the device.
        command: String,
        /// How long it took (milliseconds).
        ms: f64,
        /// Its exit status.
        status: i32,
        /// The first lines of its output.
        said: String,
    },
    /// It was not run.
    NotRun {
        /// Why.
        why: String,
    },
}

impl Fsck {
    /// Returns how long it took (milliseconds); none if it was not run.
    pub fn ms(&self) -> Option<f64> {
        match self {
            Self::Clean { ms, .. } | Self::Complained { ms, .. } => Some(*ms),
            Self::NotRun { .. } => None,
        }
    }
}
