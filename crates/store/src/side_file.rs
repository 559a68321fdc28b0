//! SQLite files beside a store, for what is not measured: notes, and digests of runs.
//!
//! Such a file is named like the store with a suffix behind. It is read and written only where no
//! other account may change it or its folder, and never through a link.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pgdyno_model::Advice;
use rusqlite::{Connection, OpenFlags};

use crate::schema;

/// Longest wait for another process's transaction.
const BUSY: Duration = Duration::from_secs(5);

/// Reason why a file beside a store cannot be used.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum SideFileError {
    /// The file or its folder belongs to others, or is no ordinary file.
    #[error("cannot use {}: {found}", path.display())]
    NotTrusted { path: PathBuf, found: &'static str },
    /// The file cannot be made or looked at.
    #[error("cannot {doing} {}", path.display())]
    Io {
        doing: &'static str,
        /// On what.
        path: PathBuf,
        source: io::Error,
    },
    /// SQLite refused.
    #[error("cannot {doing} in {}", path.display())]
    Sqlite { doing: &'static str, path: PathBuf, source: rusqlite::Error },
    /// A newer pgdyno wrote the file, or another program.
    #[error(
        "cannot use {}: it has schema {found}, and schema {known} is known here",
        path.display()
    )]
    OtherSchema {
        path: PathBuf,
        found: i64,
        /// The schema that this version reads.
        known: i64,
    },
}

impl Advice for SideFileError {
    fn help(&self) -> Option<String> {
        let help = match self {
            Self::NotTrusted { .. } => {
                "keep the store in a folder that only you may write to; remove a link of that name"
            }
            Self::Io { .. } | Self::Sqlite { .. } => {
                "check who may write to the file and its folder, and that the disk has room"
            }
            Self::OtherSchema { .. } => "use the pgdyno that wrote it, or move the file away",
        };
        Some(help.to_owned())
    }
}

/// A file beside a store.
#[derive(Debug)]
pub struct SideFile {
    path: PathBuf,
    /// Connection to the file.
    pub connection: Connection,
}

impl SideFile {
    /// Opens the file named like `store` with `suffix` behind, and makes it if it is missing.
    /// `schema` makes its tables; `version` is the schema's number.
    pub fn open(
        store: &Path,
        suffix: &str,
        (version, schema): (i64, &str),
    ) -> Result<Self, SideFileError> {
        let (store, path) = beside(store, suffix)?;
        check_store(&store, &path)?;
        make(&path)?;
        let file = Self::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        let found = file.version()?;
        // Two processes may make the tables at once: the transaction lets one of them go first.
        if found == 0 {
            let batch =
                format!("BEGIN IMMEDIATE; {schema} PRAGMA user_version = {version}; COMMIT;");
            file.connection.execute_batch(&batch).map_err(file.failed("make the tables"))?;
        }
        file.check_version(version)
    }

    /// Opens an existing file for reading; none if there is no such file.
    pub fn open_for_reading(
        store: &Path,
        suffix: &str,
        version: i64,
    ) -> Result<Option<Self>, SideFileError> {
        let (store, path) = beside(store, suffix)?;
        if !path.exists() {
            return Ok(None);
        }
        check_store(&store, &path)?;
        check_file(&path)?;
        Self::connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?.check_version(version).map(Some)
    }

    fn connect(path: PathBuf, access: OpenFlags) -> Result<Self, SideFileError> {
        let failed = |doing| {
            let path = path.clone();
            move |source| SideFileError::Sqlite { doing, path, source }
        };
        let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let connection =
            Connection::open_with_flags(&path, flags).map_err(failed("open a connection"))?;
        connection.busy_timeout(BUSY).map_err(failed("set a timeout"))?;
        schema::distrust(&connection).map_err(failed("secure a connection"))?;
        Ok(Self { path, connection })
    }

    fn version(&self) -> Result<i64, SideFileError> {
        self.connection
            .query_row("PRAGMA user_version", [], |row| row.get(0))
            .map_err(self.failed("read the schema"))
    }

    fn check_version(self, known: i64) -> Result<Self, SideFileError> {
        match self.version()? {
            found if found == known => Ok(self),
            found => Err(SideFileError::OtherSchema { path: self.path, found, known }),
        }
    }

    /// Turns SQLite's error while `doing` into ours.
    pub fn failed(
        &self,
        doing: &'static str,
    ) -> impl FnOnce(rusqlite::Error) -> SideFileError + use<> {
        let path = self.path.clone();
        move |source| SideFileError::Sqlite { doing, path, source }
    }
}

/// Returns the path of `store`, and of the file beside it.
///
/// SQLite refuses a path with a link in it, so that the store's own are followed here.
fn beside(store: &Path, suffix: &str) -> Result<(PathBuf, PathBuf), SideFileError> {
    let store = store.canonicalize().map_err(|e| io_error("look at the store", store, e))?;
    let mut path: OsString = store.clone().into_os_string();
    path.push(suffix);
    Ok((store, PathBuf::from(path)))
}

/// Refuses the file at `path` where another account may put one in its place.
fn check_store(store: &Path, path: &Path) -> Result<(), SideFileError> {
    if schema::is_foreign(store) {
        let found = "another account may write to the store or to its folder";
        return Err(SideFileError::NotTrusted { path: path.into(), found });
    }
    Ok(())
}

/// Makes an empty file that only its owner may read, unless there is one.
fn make(path: &Path) -> Result<(), SideFileError> {
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    match made {
        Ok(_) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => check_file(path),
        Err(e) => Err(io_error("make", path, e)),
    }
}

fn io_error(doing: &'static str, path: &Path, source: io::Error) -> SideFileError {
    SideFileError::Io { doing, path: path.into(), source }
}

/// Refuses what is no ordinary file of this account or root's.
fn check_file(path: &Path) -> Result<(), SideFileError> {
    let found = path.symlink_metadata().map_err(|e| io_error("look at", path, e))?;
    let us = rustix::process::geteuid().as_raw();
    let found = match () {
        () if !found.is_file() => "it is not an ordinary file",
        () if found.uid() != us && found.uid() != 0 => "it belongs to another account",
        () if found.mode() & 0o022 != 0 => "other accounts may write to it",
        () => return Ok(()),
    };
    Err(SideFileError::NotTrusted { path: path.into(), found })
}
