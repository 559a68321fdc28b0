//! The store: one SQLite file that holds every run whole.
//!
//! Rows are only added; triggers abort every UPDATE and DELETE. A trial lands in one transaction. The journal is
//! SQLite's rollback journal, not its write-ahead log: the store is then a single file between transactions, can be
//! copied as such, read from read-only media and kept on network file systems; there is one small transaction a trial,
//! so that the log's speed buys nothing. `synchronous = EXTRA` also syncs the folder after the journal's removal, so
//! that a stored trial stays stored through a power loss.

mod crash;
mod error;
mod imported;
mod migrate;
mod names;
mod probe;
mod read;
mod write;

use std::fs::{DirBuilder, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pgdyno_model::record::RunState;
use pgdyno_model::units::Epoch;
use rusqlite::{Connection, OpenFlags};

pub use crash::CrashSummary;
pub use error::StoreError;
pub use imported::ImportSummary;
pub use names::Stored;
pub use probe::ProbeSummary;

/// Several pgdyno processes may share a store: how long one waits for another's transaction.
const BUSY: Duration = Duration::from_secs(30);

/// An open store.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
}

/// A session's number in its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(i64);

/// A run in a list.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct RunSummary {
    /// Its name.
    pub id: String,
    /// The recipe's or the file's name.
    pub recipe: String,
    /// The question it answers.
    pub question: Option<String>,
    /// When it began.
    #[serde(serialize_with = "crate::analysis::as_text")]
    pub started_at: Epoch,
    /// Where it stands.
    pub state: RunState,
    /// Planned trials that are completed (count).
    pub trials_done: u32,
    /// Planned trials (count).
    pub trials_planned: u32,
    /// Attempts that failed (count), also those whose trial was completed later.
    pub attempts_failed: u32,
}

impl Store {
    /// Opens the store at `path`, making it and its folders if there is none; only the owner may read what is made.
    ///
    /// # Errors
    /// [`StoreError::Io`], [`StoreError::NotAStore`], [`StoreError::Newer`] or [`StoreError::Sqlite`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref();
        if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
            make_folder(folder).map_err(|source| StoreError::Io {
                doing: "make the folder",
                path: folder.into(),
                source,
            })?;
        }
        make_file(path).map_err(|source| StoreError::Io {
            doing: "make the store",
            path: path.into(),
            source,
        })?;
        Self::connect(path)
    }

    /// Opens the store at `path`; a file that may only be read is opened for reading.
    ///
    /// # Errors
    /// [`StoreError::Missing`] if there is none, else as [`Store::open`].
    pub fn open_existing(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref();
        match std::fs::metadata(path) {
            Ok(_) => Self::connect(path),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                Err(StoreError::Missing { path: path.into() })
            }
            Err(source) => Err(StoreError::Io { doing: "look at", path: path.into(), source }),
        }
    }

    /// The store's file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn connect(path: &Path) -> Result<Self, StoreError> {
        let sqlite = |doing| {
            let path = path.to_owned();
            move |source| StoreError::Sqlite { doing, path, source }
        };
        if path.is_dir() {
            return Err(StoreError::NotAStore { path: path.into(), found: "a folder".into() });
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags).map_err(sqlite("open a connection"))?;
        connection.busy_timeout(BUSY).map_err(sqlite("set a timeout"))?;
        migrate::bring_up_to_date(&mut connection, path, migrate::MIGRATIONS)?;
        connection
            .execute_batch(
                "PRAGMA journal_mode = DELETE; PRAGMA synchronous = EXTRA; PRAGMA foreign_keys = ON;
                 PRAGMA recursive_triggers = ON; PRAGMA trusted_schema = OFF;",
            )
            .map_err(sqlite("prepare a connection"))?;
        Ok(Self { connection, path: path.into() })
    }

    /// Turns SQLite's error while `doing` into ours.
    fn failed(&self, doing: &'static str) -> impl Fn(rusqlite::Error) -> StoreError + use<> {
        let path = self.path.clone();
        move |source| StoreError::Sqlite { doing, path: path.clone(), source }
    }

    fn corrupt(&self, what: impl Into<String>, found: &dyn std::fmt::Display) -> StoreError {
        StoreError::Corrupt { path: self.path.clone(), what: what.into(), found: found.to_string() }
    }
}

fn make_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

fn make_file(path: &Path) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.write(true).create_new(true).open(path) {
        Ok(_) => Ok(()),
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(e) => Err(e),
    }
}
