//! From an experiment's `[storage.<name>]` to a stack.

use std::path::Path;

use pgdyno_exec::device::safety::Wipe;
use pgdyno_model::storage::{Backing, FilesystemChoice, Storage};

use super::{Stack, contradictions, first_directory};
use crate::error::StorageError;

impl Stack {
    /// Returns the stack that the experiment's `[storage.<name>]` asks for, in a directory called
    /// `label` that is made below `default`, or below the directory that the file names. Looks at
    /// nothing on the machine: for that see [`Stack::plan`].
    ///
    /// # Errors
    /// [`StorageError`]: the storage contradicts itself.
    pub fn design(
        name: &str,
        storage: &Storage,
        default: &Path,
        label: &str,
        wipe: &Wipe,
    ) -> Result<Self, StorageError> {
        let storage = without_none(name, storage)?;
        let home = match &storage.backing {
            Backing::Directory(path) => {
                let directory = path.as_deref().unwrap_or(default);
                if storage.filesystem.is_some() {
                    directory.join(label)
                } else {
                    directory.to_owned()
                }
            }
            backing => first_directory(backing).unwrap_or(default).join(label),
        };
        let stack =
            Self { name: name.into(), storage, home, wipe: wipe.clone(), looked_at: Vec::new() };
        contradictions::check(&stack)?;
        Ok(stack)
    }
}

/// `filesystem = "none"` is the word for none: a directory as it is, and a RAM disk that stays a
/// tmpfs.
fn without_none(name: &str, storage: &Storage) -> Result<Storage, StorageError> {
    let mut storage = storage.clone();
    if let Some(none) = storage.filesystem.take_if(|filesystem| filesystem.name == "none")
        && none != (FilesystemChoice { name: none.name.clone(), ..FilesystemChoice::default() })
    {
        let why = "`filesystem = \"none\"` makes nothing, and options for one are given";
        let help = "leave `mkfs`, `mount`, `pool` and `dataset` out, or name a filesystem";
        return Err(StorageError::contradiction(name, why, help));
    }
    Ok(storage)
}
