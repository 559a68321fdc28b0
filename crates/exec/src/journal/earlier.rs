//! Entries as earlier versions wrote them: whole plans of stacks, and the commands that put
//! settings back.
//!
//! They are read as the same undo steps that are written today. Of a command only what pgdyno
//! itself would have run is recognised; nothing of it is kept.

use std::path::PathBuf;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{Made, RecordedSchema, RecordedSettings};
use crate::undo::{Undo, Written};

/// Turns the plan of a stack into the steps that undo it; none where it cannot be read.
pub type PlanReader = fn(&serde_json::Value) -> Option<Vec<Undo>>;

impl Made {
    /// Has `reader` turn a plan into undo steps. Without a reader the plan stays.
    pub(super) fn read_plan(&mut self, reader: Option<PlanReader>) {
        let Self::Stack { undo, plan, .. } = self else { return };
        if let Some(steps) = plan.as_ref().zip(reader).and_then(|(plan, reader)| reader(plan)) {
            *undo = steps;
            *plan = None;
        }
    }
}

/// [`Made`] as any version wrote it.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub(super) enum StoredMade {
    Cluster { path: PathBuf },
    Directory { path: PathBuf },
    File { path: PathBuf },
    Stack { path: PathBuf, undo: Option<Vec<Undo>>, stack: Option<serde_json::Value> },
    Setting { path: PathBuf, undo: Option<Undo>, restore: Option<Restore> },
    ServerSettings { path: PathBuf, recorded: Box<RecordedSettings> },
    ServerSchema { path: PathBuf, recorded: Box<RecordedSchema> },
}

/// How a setting was put back before there were undo steps.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Restore {
    Write(Vec<Written>),
    Drive(Vec<String>),
    Hook(IgnoredAny),
}

impl From<StoredMade> for Made {
    fn from(stored: StoredMade) -> Self {
        match stored {
            StoredMade::Cluster { path } => Self::Cluster { path },
            StoredMade::Directory { path } => Self::Directory { path },
            StoredMade::File { path } => Self::File { path },
            StoredMade::Stack { path, undo, stack } => {
                let plan = stack.filter(|_| undo.is_none());
                Self::Stack { path, undo: undo.unwrap_or_default(), plan }
            }
            StoredMade::Setting { path, undo, restore } => {
                let undo = undo.or_else(|| restore.map(Undo::from));
                Self::Setting {
                    path,
                    undo: undo.unwrap_or(Undo::RunHook { storage: String::new() }),
                }
            }
            StoredMade::ServerSettings { path, recorded } => {
                Self::ServerSettings { path, recorded }
            }
            StoredMade::ServerSchema { path, recorded } => Self::ServerSchema { path, recorded },
        }
    }
}

impl From<Restore> for Undo {
    fn from(restore: Restore) -> Self {
        match restore {
            Restore::Write(files) => Self::WriteKernelFiles { files },
            Restore::Drive(words) => {
                drive_cache(&words).unwrap_or(Self::RunHook { storage: String::new() })
            }
            Restore::Hook(_) => Self::RunHook { storage: String::new() },
        }
    }
}

/// `hdparm -W1 /dev/sda` and `nvme set-feature /dev/nvme0n1 --feature-id=6 --value=1`.
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
