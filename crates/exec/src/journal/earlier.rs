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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::OwnedResource;

    /// Reads the undo step of a setting whose entry holds `how`.
    fn undo_of(how: &str) -> Undo {
        let text = format!(r#"{{"kind":"setting","path":"/dev/sda"{how}}}"#);
        match serde_json::from_str(&text).unwrap() {
            OwnedResource::Setting { undo, .. } => undo,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn settings_of_every_version_are_read_as_undo_steps() {
        let drive = |on| Undo::SetDriveCache { device: "/dev/sda".into(), sequence: None, on };
        let old = r#","restore":{"drive":["hdparm","-W1","/dev/sda"]}"#;
        assert_eq!(undo_of(old), drive(true));
        let new = r#","undo":{"verb":"set-drive-cache","device":"/dev/sda","on":false}"#;
        assert_eq!(undo_of(new), drive(false));
        let write = r#","restore":{"write":[{"file":"/sys/x","was":"a","set":null}]}"#;
        assert!(matches!(undo_of(write), Undo::WriteKernelFiles { files } if files.len() == 1));
        for unknown in [r#","restore":{"hook":["rm","-r"]}"#, r#","restore":{"drive":["rm"]}"#, ""]
        {
            assert_eq!(undo_of(unknown), unknown_hook());
        }
    }

    #[test]
    fn a_stack_without_undo_steps_keeps_its_plan() {
        let text = r#"{"kind":"stack","path":"/s","stack":{"name":"disk"}}"#;
        let OwnedResource::Stack { undo, plan, .. } = serde_json::from_str(text).unwrap() else {
            panic!("{text}")
        };
        assert!(undo.is_empty() && plan.is_some());
    }
}
