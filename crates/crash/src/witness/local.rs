//! A session as this machine itself keeps it: with which programs and settings the server ran, and
//! where.
//!
//! It is written before load begins and outlives the cut. Nothing of it comes over the network.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::error::PlugError;
use pgdyno_exec::files::sync_directory;
use pgdyno_exec::{paths, trust};
use pgdyno_model::crash::CrashOptions;
use serde::{Deserialize, Serialize};

use pgdyno_provision::BenchError;

/// A session of this machine's, as it was when load began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct LocalSession {
    /// Name of the session.
    pub(super) id: String,
    /// Which boot of the machine it was.
    pub(super) boot_id: String,
    /// The process that offers the load.
    pub(super) pid: i32,
    /// The treatment's name.
    pub(super) name: String,
    /// The storage's name.
    pub(super) storage: String,
    /// The cluster.
    pub(super) directory: PathBuf,
    /// The server's programs.
    pub(super) bindir: PathBuf,
    /// The server's settings.
    pub(super) settings: BTreeMap<String, String>,
    /// The options of the session.
    pub(super) options: CrashOptions,
    /// Whether data pages bear checksums.
    pub(super) checksums: bool,
    /// The cluster's identifier.
    pub(super) system_identifier: u64,
    /// Longest time of commits that asynchronous commit may lose (milliseconds); none where commits
    /// are synchronous.
    pub(super) loses_at_most_ms: Option<u64>,
}

/// Returns the path of the session's file.
pub(super) fn path() -> PathBuf {
    paths::state_dir().join("plug").join("session.json")
}

impl LocalSession {
    /// The session that this machine began and that was not ended.
    ///
    /// # Errors
    /// Others could have written it; it cannot be read.
    pub(super) fn read() -> Result<Option<Self>, BenchError> {
        let path = path();
        if !path.exists() {
            return Ok(None);
        }
        trust::check(&path).map_err(PlugError::Untrusted)?;
        let text = fs::read(&path).map_err(|e| unusable(&path, e))?;
        Ok(serde_json::from_slice(&text).map(Some).map_err(|e| unusable(&path, e.into()))?)
    }

    /// Writes it down, to be there after a power loss.
    ///
    /// # Errors
    /// Others could change it there; it cannot be written.
    pub(super) fn write(&self) -> Result<(), BenchError> {
        let path = path();
        let folder = path.parent().unwrap_or(Path::new("/"));
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|e| unusable(&path, e))?;
        trust::check(folder).map_err(PlugError::Untrusted)?;
        let text = serde_json::to_vec_pretty(self).map_err(|e| unusable(&path, e.into()))?;
        let written = || {
            let mut file = File::options().write(true).create_new(true).mode(0o600).open(&path)?;
            file.write_all(&text)?;
            file.sync_all()?;
            // The folder and its own name in the one above.
            folder.ancestors().take(2).try_for_each(sync_directory)
        };
        Ok(written().map_err(|e: io::Error| unusable(&path, e))?)
    }

    /// Forgets it.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub(super) fn remove(&self) -> Result<(), BenchError> {
        let path = path();
        Ok(fs::remove_file(&path).map_err(|e| unusable(&path, e))?)
    }
}

fn unusable(path: &Path, source: io::Error) -> PlugError {
    PlugError::Unusable { path: path.to_owned(), source }
}
