//! Locks that hold open sessions.
//!
//! Each open session holds the lock on one byte, its number, of the file `STORE.lock` beside the
//! store. The file stays empty. The kernel releases the lock when the process ends, on whatever
//! machine. A copy of the store has no such file, so nobody is at work there.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::error::{StoreError, io};
use crate::lock::{is_locked, try_lock, unlock};

/// A session's number in its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub(super) i64);

/// Whether a process holds an open session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// The lock is taken, or cannot be looked at.
    Held,
    /// The lock is free: the process is gone, or this is a copy of the store.
    Free,
    /// The session has no lock. An earlier version began it, or a machine without an id: only its
    /// process tells.
    Unknown,
}

/// Locks of the sessions that this connection began.
#[derive(Debug, Default)]
pub(super) struct SessionLocks {
    file: Option<File>,
    held: Vec<SessionId>,
}

impl SessionLocks {
    /// Takes the lock of `session`; false if another process has it.
    pub(super) fn take(&mut self, store: &Path, session: SessionId) -> Result<bool, StoreError> {
        let path = path_of(store);
        let make = || {
            // Whoever may read the store may look at the locks.
            let mode = std::fs::metadata(store)?.mode() & 0o666;
            open(OpenOptions::new().write(true).create(true).mode(mode), &path)
        };
        let file = match self.file.take() {
            Some(file) => file,
            None => make().map_err(io("open", &path))?,
        };
        let file = self.file.insert(file);
        let is_taken = try_lock(file, session.0).map_err(io("lock", &path))?;
        if is_taken {
            self.held.push(session);
        }
        Ok(is_taken)
    }

    /// Releases the lock of `session`, if it is this connection's.
    pub(super) fn release(&mut self, session: SessionId) {
        let Some(place) = self.held.iter().position(|held| *held == session) else { return };
        self.held.swap_remove(place);
        // One that stays goes with the process.
        self.file.iter().for_each(|file| drop(unlock(file, session.0)));
    }

    /// Looks who holds each of `sessions` of `store`. `has_lock` says whether a session has one.
    pub(super) fn look(
        &self,
        store: &Path,
        sessions: impl IntoIterator<Item = (SessionId, bool)>,
    ) -> Vec<Hold> {
        let mut others: Option<io::Result<File>> = None;
        let hold = |(session, has_lock): (SessionId, bool)| {
            let opened =
                others.get_or_insert_with(|| open(&mut OpenOptions::new(), &path_of(store)));
            let is_held = self.held.contains(&session)
                || match opened {
                    Ok(file) => is_locked(file, session.0).unwrap_or(true),
                    Err(e) => e.kind() != io::ErrorKind::NotFound,
                };
            match (is_held, has_lock) {
                (true, true) => Hold::Held,
                (false, true) => Hold::Free,
                // One that cannot be looked at says nothing of a session that has none.
                (true, false) if opened.is_ok() => Hold::Held,
                (_, false) => Hold::Unknown,
            }
        };
        sessions.into_iter().map(hold).collect()
    }
}

/// Returns the path of the file with the locks. A link to a store leads to the store's own.
fn path_of(store: &Path) -> PathBuf {
    let real = store.canonicalize().unwrap_or_else(|_| store.to_owned());
    let mut path = real.into_os_string();
    path.push(".lock");
    path.into()
}

/// Opens the file with the locks, which must be an ordinary one.
fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = options.read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not an ordinary file")),
    }
}
