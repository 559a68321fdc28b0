//! Entries as earlier versions wrote them: whole plans of stacks, and the commands that put
//! settings back.
//!
//! They are read as the same undo steps that are written today. Of a command only what pgdyno
//! itself would have run is recognised; nothing of it is kept.

use std::path::PathBuf;

use pgdyno_model::facts::Owner;
use pgdyno_model::units::Epoch;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::entry::{Entry, MadeId, OwnedResource};
use super::recorded::{RecordedSchema, RecordedSettings};
use crate::beneath::FileIdentity;
use crate::undo::{KernelFileChange, Undo};

/// Turns the plan of a stack into the steps that undo it; none where it cannot be read.
pub type PlanReader = fn(&serde_json::Value) -> Option<Vec<Undo>>;

/// Has `reader` turn a plan into undo steps. Without a reader the plan stays.
pub(super) fn read_plan(made: &mut OwnedResource, reader: Option<PlanReader>) {
    let OwnedResource::Stack { undo, plan, .. } = made else { return };
    if let Some(steps) = plan.as_ref().zip(reader).and_then(|(plan, reader)| reader(plan)) {
        *undo = steps;
        *plan = None;
    }
}

/// Reads an entry that any version wrote.
///
/// # Errors
/// `text` is no entry.
pub fn read_entry(text: &[u8]) -> serde_json::Result<Entry> {
    let StoredEntry { id, made, owner, at, identity, form } = serde_json::from_slice(text)?;
    Ok(Entry { id, made: made.into(), owner, at, identity, form })
}

/// [`Entry`] as any version wrote it.
#[derive(Deserialize)]
struct StoredEntry {
    id: MadeId,
    made: StoredMade,
    owner: Owner,
    at: Epoch,
    identity: Option<FileIdentity>,
    #[serde(default)]
    form: u8,
}

/// [`OwnedResource`] as any version wrote it.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
enum StoredMade {
    Cluster {
        path: PathBuf,
    },
    Directory {
        path: PathBuf,
    },
    File {
        path: PathBuf,
    },
    Stack {
        path: PathBuf,
        undo: Option<Vec<Undo>>,
        stack: Option<serde_json::Value>,
    },
    Setting {
        path: PathBuf,
        #[serde(default)]
        device: PathBuf,
        undo: Option<Undo>,
        restore: Option<Restore>,
    },
    ServerSettings {
        path: PathBuf,
        recorded: Box<RecordedSettings>,
    },
    ServerSchema {
        path: PathBuf,
        recorded: Box<RecordedSchema>,
    },
}

/// How a setting was put back before there were undo steps.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Restore {
    Write(Vec<KernelFileChange>),
    Drive(Vec<String>),
    Hook(IgnoredAny),
}

impl From<StoredMade> for OwnedResource {
    fn from(stored: StoredMade) -> Self {
        match stored {
            StoredMade::Cluster { path } => Self::Cluster { path },
            StoredMade::Directory { path } => Self::Directory { path },
            StoredMade::File { path } => Self::File { path },
            StoredMade::Stack { path, undo, stack } => {
                let plan = stack.filter(|_| undo.is_none());
                Self::Stack { path, undo: undo.unwrap_or_default(), plan }
            }
            StoredMade::Setting { path, device, undo, restore } => {
                let undo = undo.or_else(|| restore.map(Undo::from));
                Self::Setting {
                    path,
                    device,
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
