//! The store: one SQLite file that holds every run whole.
//!
//! Rows are only added; triggers abort every UPDATE and DELETE. Commands of the user's are the
//! exceptions (`amend`): removal of a named record, thinning, and an anonymous archive, whose own
//! rows are changed. A trial lands in one transaction.
//! The journal is SQLite's rollback journal, not its write-ahead log: the store is then a single
//! file between transactions, can be copied as such, read from read-only media and kept on network
//! file systems; there is one small transaction a trial, so that the log's speed buys nothing.
//! `synchronous = EXTRA` also syncs the folder after the journal's removal, so that a stored trial
//! stays stored through a power loss.
//!
//! An open session is held by a lock of the operating system (`session_lock`), so that a store may
//! be shared by machines: only a lock tells whether a process works on a run.
//!
//! Every row is sealed with a checksum when it is written (`seal`) and checked when its figures are
//! read. A file may come from elsewhere: SQLite is told to trust nothing in it, its schema must be
//! pgdyno's own (`schema`), and where another account may change it, it is opened for reading only.
//!
//! [`notes`] keeps beside a store what users write on results, and [`SideFile`] whatever else is
//! not measured.
//!
//! ```no_run
//! use pgdyno_store::Store;
//!
//! let store = Store::open_existing("results.sqlite3")?;
//! let run = store.resolve("latest")?;
//! println!("{run}: {:?}, {} trials", store.state(&run)?, store.trial_ids(&run)?.len());
//! # Ok::<(), pgdyno_store::StoreError>(())
//! ```

mod amend;
mod anonymize;
mod archive;
mod copy;
mod crash;
mod documents;
mod error;
mod imported;
mod list;
pub mod lock;
mod merge;
mod migrate;
mod names;
pub mod notes;
mod probe;
mod read;
mod remove;
mod schema;
mod seal;
mod session_lock;
mod side_file;
mod size;
mod tables;
mod thin;
mod verify;
mod write;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::{DirBuilder, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use amend::Compacted;
pub use anonymize::Identity;
pub use crash::CrashSummary;
pub use error::StoreError;
use error::{io, sqlite};
pub use imported::ImportSummary;
use list::EqualTreatments;
pub use list::{ListedRun, RunSummary};
pub use merge::{Imported, Merge, Merged};
pub use names::Stored;
pub use probe::ProbeSummary;
pub use read::OpenSession;
use rusqlite::backup::Backup;
use rusqlite::{Connection, OpenFlags};
pub use seal::Damage;
use session_lock::SessionLocks;
pub use session_lock::{Hold, SessionId};
pub use side_file::{SideFile, SideFileError};
pub use size::{ContentSize, RecordSize, StoreSize};
pub use thin::{DEFAULT_EVERY_S, Thinning};
pub use verify::{CheckedRecord, RecordState, Verification};

/// Several pgdyno processes may share a store: how long one waits for another's transaction.
const BUSY: Duration = Duration::from_secs(30);

/// Pages that are copied between two looks at the lock: all.
const PAGES_AT_ONCE: i32 = i32::MAX;

/// An open store.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
    is_writable: bool,
    /// Open sessions whose process is known to be gone.
    dead: BTreeSet<SessionId>,
    locks: SessionLocks,
    equal_treatments: RefCell<EqualTreatments>,
}

impl Store {
    /// Opens the store at `path`, making it and its folders if there is none; only the owner may
    /// read what is made.
    ///
    /// # Errors
    /// [`StoreError::Io`], [`StoreError::NotAStore`], [`StoreError::Newer`] or
    /// [`StoreError::Sqlite`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref();
        let folder = folder_of(path);
        let made = DirBuilder::new().mode(0o700).recursive(true).create(folder);
        made.map_err(io("make the folder", folder))?;
        match OpenOptions::new().mode(0o600).write(true).create_new(true).open(path) {
            Err(e) if e.kind() != ErrorKind::AlreadyExists => Err(io("make the store", path)(e))?,
            _ => {}
        }
        Self::connect(path)
    }

    /// Opens the store at `path`, most often for reading. A file that another account may change is
    /// only read. So is one of an older version: a copy in memory is brought up to date, and the
    /// file stays as it is until [`Store::open`] opens it for writing.
    ///
    /// # Errors
    /// [`StoreError::Missing`] if there is none, else as [`Store::open`].
    pub fn open_existing(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref();
        look_at(path)?;
        if schema::is_foreign(path) || Self::is_older(path)? {
            return Self::connect_for_reading(path);
        }
        Self::connect(path)
    }

    /// Opens the store at `path` for reading only. Nothing is written, neither to the file nor
    /// beside it.
    ///
    /// # Errors
    /// As [`Store::open_existing`].
    pub fn open_for_reading(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref();
        look_at(path)?;
        Self::connect_for_reading(path)
    }

    /// The store's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether this store may be written: one that another account may change is only read, and so
    /// is one of an older version that [`Store::open_existing`] opened.
    pub fn is_writable(&self) -> bool {
        self.is_writable
    }

    /// Whether this is a copy in memory of an older version's file: it does not follow changes.
    pub fn is_copy(&self) -> bool {
        self.connection.path().is_none_or(str::is_empty)
    }

    fn is_older(path: &Path) -> Result<bool, StoreError> {
        let connection = Self::begin(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        migrate::is_older(&connection, path, migrate::MIGRATIONS)
    }

    fn connect(path: &Path) -> Result<Self, StoreError> {
        let mut connection = Self::begin(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        migrate::bring_up_to_date(&mut connection, path, migrate::MIGRATIONS)?;
        schema::check(&connection, path, migrate::MIGRATIONS)?;
        connection
            .execute_batch(
                "PRAGMA journal_mode = DELETE; PRAGMA synchronous = EXTRA; PRAGMA foreign_keys = ON;
                 PRAGMA recursive_triggers = ON;",
            )
            .map_err(sqlite(path, "prepare a connection"))?;
        Ok(Self::over(connection, path, true))
    }

    /// Nothing is written beside the file either, and no journal that lies there is obeyed.
    fn connect_for_reading(path: &Path) -> Result<Self, StoreError> {
        let mut connection = Self::begin(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        if migrate::is_older(&connection, path, migrate::MIGRATIONS)? {
            connection = copy_into_memory(&connection).map_err(sqlite(path, "copy into memory"))?;
            migrate::bring_up_to_date(&mut connection, path, migrate::MIGRATIONS)?;
        }
        schema::check(&connection, path, migrate::MIGRATIONS)?;
        Ok(Self::over(connection, path, false))
    }

    fn over(connection: Connection, path: &Path, is_writable: bool) -> Self {
        let (dead, locks) = (BTreeSet::new(), SessionLocks::default());
        let equal_treatments = RefCell::default();
        Self { connection, path: path.into(), is_writable, dead, locks, equal_treatments }
    }

    fn begin(path: &Path, access: OpenFlags) -> Result<Connection, StoreError> {
        if path.is_dir() {
            return Err(StoreError::NotAStore { path: path.into(), found: "a folder".into() });
        }
        Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)
            .and_then(|connection| {
                connection.busy_timeout(BUSY)?;
                schema::distrust(&connection)?;
                Ok(connection)
            })
            .map_err(sqlite(path, "open a connection"))
    }

    /// Turns SQLite's error while `doing` into ours.
    fn failed(&self, doing: &'static str) -> impl Fn(rusqlite::Error) -> StoreError + use<> {
        sqlite(&self.path, doing)
    }

    fn corrupt(&self, what: impl Into<String>, found: &dyn std::fmt::Display) -> StoreError {
        StoreError::Corrupt { path: self.path.clone(), what: what.into(), found: found.to_string() }
    }
}

fn copy_into_memory(file: &Connection) -> rusqlite::Result<Connection> {
    let mut copy = Connection::open_in_memory()?;
    Backup::new(file, &mut copy)?.run_to_completion(PAGES_AT_ONCE, Duration::ZERO, None)?;
    schema::distrust(&copy)?;
    Ok(copy)
}

/// Returns the folder that holds `path`.
fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or_else(|| ".".as_ref())
}

/// Returns an error if there is nothing at `path`.
fn look_at(path: &Path) -> Result<(), StoreError> {
    match std::fs::metadata(path) {
        Ok(_) => Ok(()),
        Err(e) if e.kind() == ErrorKind::NotFound => Err(StoreError::Missing { path: path.into() }),
        Err(e) => Err(io("look at", path)(e)),
    }
}
