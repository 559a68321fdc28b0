//! Entries as earlier versions wrote them: whole plans of stacks, and the commands that put
//! settings back.
//!
//! They are read as today's undo steps. A stored command is recognised only if pgdyno itself would
//! have run it, and it is never run.

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

use crate::undo::{KernelFileChange, Undo};

/// Turns the plan of a stack into the steps that undo it; none where it cannot be read.
pub type PlanReader = fn(&serde_json::Value) -> Option<Vec<Undo>>;

/// How a setting is put back, as any version wrote it.
#[derive(Deserialize)]
#[serde(untagged)]
enum StoredUndo {
    Undo(Undo),
    Restore(Restore),
}

/// How a setting was put back before there were undo steps.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Restore {
    Write(Vec<KernelFileChange>),
    Drive(Vec<String>),
    Hook(IgnoredAny),
}

/// Reads the undo step of a setting.
pub(super) fn read_undo<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Undo, D::Error> {
    Ok(match Option::deserialize(deserializer)? {
        Some(StoredUndo::Undo(undo)) => undo,
        Some(StoredUndo::Restore(restore)) => restore.into(),
        None => unknown_hook(),
    })
}

/// Returns the undo step of a setting that has none in its entry.
pub(super) fn unknown_hook() -> Undo {
    Undo::RunHook { storage: String::new() }
}

impl From<Restore> for Undo {
    fn from(restore: Restore) -> Self {
        match restore {
            Restore::Write(files) => Self::WriteKernelFiles { files },
            Restore::Drive(words) => drive_cache(&words).unwrap_or_else(unknown_hook),
            Restore::Hook(_) => unknown_hook(),
        }
    }
}

/// Recognises `hdparm -W1 /dev/sda` and `nvme set-feature /dev/nvme0n1 --feature-id=6 --value=1`.
fn drive_cache(words: &[String]) -> Option<Undo> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (device, value) = match words.as_slice() {
        ["hdparm", flag, device] => (device, flag.strip_prefix("-W")?),
        ["nvme", "set-feature", device, "--feature-id=6", value] => {
            (device, value.strip_prefix("--value=")?)
        }
        _ => return None,
    };
    let on = match value {
        "0" => false,
        "1" => true,
        _ => return None,
    };
    Some(Undo::SetDriveCache { device: device.into(), sequence: None, on })
}
