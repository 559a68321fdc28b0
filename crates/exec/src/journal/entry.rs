//! Entries of the journal, one for each thing that pgdyno makes: data only.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use pgdyno_model::facts::Owner;
use pgdyno_model::units::Epoch;
use serde::{Deserialize, Serialize};

use super::earlier::{read_undo, unknown_hook};
use super::error::JournalError;
use super::recorded::{RecordedSchema, RecordedSettings};
use crate::beneath::FileIdentity;
use crate::random::random_hex;
use crate::undo::Undo;

/// The file inside a made directory that tells it is pgdyno's.
pub const MARKER: &str = ".pgdyno-made";

/// The name of one made thing: 128 random bits in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MadeId(String);

impl MadeId {
    pub(super) fn draw() -> Result<Self, JournalError> {
        random_hex::<16>().map(Self).map_err(JournalError::Random)
    }

    /// Returns the digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MadeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A thing that pgdyno makes and takes down again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
#[allow(missing_docs, reason = "the names say it")]
pub enum OwnedResource {
    /// A directory that holds a cluster in `data`, with a server that may run there.
    Cluster { path: PathBuf },
    /// A directory.
    Directory { path: PathBuf },
    /// A file that begins with [`file_mark`].
    File { path: PathBuf },
    /// A directory of a storage stack's: images, links to devices, the mount point.
    Stack {
        path: PathBuf,
        /// The steps that take the stack down, in order. Its directories are removed after them.
        #[serde(default)]
        undo: Vec<Undo>,
        /// The whole plan, where an earlier version wrote that and no undo steps.
        #[serde(default, rename = "stack", skip_serializing_if = "Option::is_none")]
        plan: Option<serde_json::Value>,
    },
    /// Something that was set on a device or on the kernel.
    Setting {
        /// The setting, for messages.
        path: PathBuf,
        /// The device that the setting belongs to; empty in entries of earlier versions.
        #[serde(default, skip_serializing_if = "is_empty")]
        device: PathBuf,
        /// The step that restores it.
        #[serde(default = "unknown_hook", alias = "restore", deserialize_with = "read_undo")]
        undo: Undo,
    },
    /// Settings of a server that pgdyno does not own.
    ServerSettings {
        /// Name of the settings in messages; not a path of this machine.
        path: PathBuf,
        /// The values to restore.
        recorded: Box<RecordedSettings>,
    },
    /// Objects that a run makes in a database of a server that pgdyno does not own. Each object
    /// bears the entry's id in its comment.
    ServerSchema {
        /// Name of the schema in messages; not a path of this machine.
        path: PathBuf,
        /// Server and schema that hold the objects.
        recorded: Box<RecordedSchema>,
    },
}

impl OwnedResource {
    /// Returns the thing's path; for a setting or a server, its name in messages.
    pub fn path(&self) -> &Path {
        match self {
            Self::Cluster { path }
            | Self::Directory { path }
            | Self::File { path }
            | Self::Stack { path, .. }
            | Self::Setting { path, .. }
            | Self::ServerSettings { path, .. }
            | Self::ServerSchema { path, .. } => path,
        }
    }
}

/// Returns the first line of a file that pgdyno made.
pub fn file_mark(id: &MadeId) -> String {
    format!("pgdyno-made {id}\n")
}

/// One entry of the journal. A marker file holds a copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Name of the thing, and of the entry's file.
    pub id: MadeId,
    /// The thing to be made.
    pub made: OwnedResource,
    /// The process that makes it.
    pub owner: Owner,
    /// When the entry was written, before the thing was made.
    pub at: Epoch,
    /// Device and inode number of the thing; none before it is made, and for settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<FileIdentity>,
    /// Version of the entry's form: 0 of versions that noted no identity, now [`FORM`].
    #[serde(default)]
    pub form: u8,
}

/// The version of the form that entries are written in.
pub const FORM: u8 = 1;

impl Entry {
    /// Returns the entry as its file and a marker hold it.
    ///
    /// # Errors
    /// The path is not UTF-8.
    pub fn to_json(&self) -> io::Result<Vec<u8>> {
        serde_json::to_vec(self).map_err(io::Error::other)
    }
}

fn is_empty(path: &Path) -> bool {
    path.as_os_str().is_empty()
}
