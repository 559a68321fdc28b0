//! Connections to the store that requests share.
//!
//! A store that is replaced by another file is opened anew. So is one of an older version, of which
//! a connection holds a copy in memory, once the file changes.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pgdyno_provision::stores::{look_for_dead_sessions, open_store_for_reading};
use pgdyno_store::Store;

use crate::response::ApiError;

/// Connections that are kept (count).
const KEPT: usize = 4;

/// Connections to one store.
pub(crate) struct Stores {
    path: PathBuf,
    free: Mutex<Vec<Connection>>,
}

/// A connection, and the file that it reads.
pub(crate) struct Connection {
    pub(crate) store: Store,
    file: Option<FileState>,
}

/// Which file a connection reads, and how it was then.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FileState {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl FileState {
    fn new(found: &Metadata) -> Self {
        Self {
            device: found.dev(),
            inode: found.ino(),
            size: found.size(),
            modified: (found.mtime(), found.mtime_nsec()),
        }
    }
}

impl Connection {
    /// Opens a connection to the store at `path`.
    pub(crate) fn open(path: &std::path::Path) -> Result<Self, ApiError> {
        let file = std::fs::metadata(path).ok().as_ref().map(FileState::new);
        Ok(Self { store: open_store_for_reading(path)?, file })
    }

    /// Whether this connection still reads what is at its path.
    pub(crate) fn is_current(&self) -> bool {
        let now = std::fs::metadata(self.store.path()).ok().as_ref().map(FileState::new);
        match (self.file, now) {
            (Some(then), Some(now)) if self.store.is_copy() => then == now,
            (Some(then), Some(now)) => (then.device, then.inode) == (now.device, now.inode),
            _ => false,
        }
    }
}

impl Stores {
    /// Serves connections to the store at `path`.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, free: Mutex::default() }
    }

    /// The store's path.
    pub(crate) fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// Does `work` with a connection.
    ///
    /// # Errors
    /// The store cannot be opened or read, or those of `work`.
    pub(crate) fn with<T>(
        &self,
        work: impl FnOnce(&Store) -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        let free = self.free().pop().filter(Connection::is_current);
        let mut connection = match free {
            Some(connection) => connection,
            None => Connection::open(&self.path)?,
        };
        look_for_dead_sessions(&mut connection.store)?;
        let result = work(&connection.store);
        let mut free = self.free();
        if free.len() < KEPT {
            free.push(connection);
        }
        result
    }

    fn free(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
