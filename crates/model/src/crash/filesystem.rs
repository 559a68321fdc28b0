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
    /// Duration of the first mount after the last power cut, which replays the journal
    /// (milliseconds).
    pub mount_ms: f64,
    /// Result of a check without repairs, after the server had recovered and stopped and the
    /// filesystem was unmounted.
    pub fsck: Fsck,
}

/// Result of the filesystem's own check (fsck), which repairs nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "outcome")]
pub enum Fsck {
    /// The check ended with status 0: nothing is wrong.
    Clean {
        /// The program with its flags, without the device: `e2fsck -f -n`.
        command: String,
        /// How long it took (milliseconds).
        ms: f64,
    },
    /// The check ended with another status.
    Complained {
        /// The program with its flags, without the device.
        command: String,
        /// How long it took (milliseconds).
        ms: f64,
        /// Exit status of the program.
        status: i32,
        /// The first lines of its output.
        said: String,
    },
    /// The check was not run.
    NotRun {
        /// Reason why not.
        why: String,
    },
}

impl Fsck {
    /// Returns the check's duration (milliseconds); none if it was not run.
    pub fn ms(&self) -> Option<f64> {
        match self {
            Self::Clean { ms, .. } | Self::Complained { ms, .. } => Some(*ms),
            Self::NotRun { .. } => None,
        }
    }
}
