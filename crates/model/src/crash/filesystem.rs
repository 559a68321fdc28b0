//! Filesystems after a power cut: the mount that replays the journal, and what fsck finds then.

use serde::{Deserialize, Serialize};

use super::Round;

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

/// Median over rounds of the time that the mounts after the power cut took (milliseconds), those of
/// a round's filesystems together. None if no round has one.
pub fn median_mount_ms(rounds: &[&Round]) -> Option<f64> {
    let times = rounds.iter().filter(|round| !round.filesystems.is_empty());
    median(times.map(|round| round.filesystems.iter().map(|f| f.mount_ms).sum()).collect())
}

/// Median over rounds of the time that fsck took (milliseconds), for a round's filesystems together.
/// None if it was not run in any round.
pub fn median_fsck_ms(rounds: &[&Round]) -> Option<f64> {
    let of = |round: &&Round| {
        let times: Vec<f64> = round.filesystems.iter().filter_map(|f| f.fsck.ms()).collect();
        (!times.is_empty()).then(|| times.iter().sum())
    };
    median(rounds.iter().filter_map(of).collect())
}

/// Median of `values`; none without any.
pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    let is_odd = values.len() % 2 == 1;
    Some(if is_odd { upper } else { f64::midpoint(values[middle - 1], upper) })
}
