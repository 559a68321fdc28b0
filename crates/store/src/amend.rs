//! Changes to stored rows. There are three: a record's removal, its thinning, and what an anonymous
//! archive leaves out of its copy.
//!
//! The store is append-only by its triggers. [`Store::amend`] takes them away and puts them back
//! within one transaction, so that no other process and no crash ever sees the store without them.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::Transaction;
use rusqlite::limits::Limit;

use super::error::io;
use super::write::Failure;
use super::{Store, StoreError, Stored, folder_of};

/// Steps of SQLite's machine between two looks at the stop flag: some milliseconds at most.
const STEPS: i32 = 100_000;

/// Result of giving back the room of removed rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compacted {
    /// The file is smaller.
    Smaller {
        /// Size of the file before (bytes).
        before: u64,
        /// Size of the file after (bytes).
        after: u64,
    },
    /// The file keeps its size, since rewriting it takes more room than is free. Later runs use the
    /// room inside the file.
    NoRoom {
        /// Room that rewriting takes (bytes).
        needed: u64,
        /// Room that is free (bytes).
        free: u64,
    },
}

impl Store {
    /// Ends what is under way with an error once `stop` is set: a transaction leaves the store as
    /// it was.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`].
    pub fn stop_by(&mut self, stop: Arc<AtomicBool>) -> Result<(), StoreError> {
        self.connection
            .progress_handler(STEPS, Some(move || stop.load(Ordering::Relaxed)))
            .map_err(self.failed("watch for signals"))
    }

    /// Does `work` in one transaction in which rows may be changed and removed.
    pub(super) fn amend<T>(
        &mut self,
        doing: &'static str,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        self.write(doing, |transaction| {
            let triggers: Vec<(String, String)> = transaction
                .prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")?
                .query_map([], |row| row.try_into())?
                .collect::<rusqlite::Result<_>>()?;
            for (name, _) in &triggers {
                transaction.execute_batch(&format!("DROP TRIGGER \"{name}\""))?;
            }
            let done = work(transaction)?;
            for (_, sql) in &triggers {
                transaction.execute_batch(sql)?;
            }
            Ok::<_, Failure>(done)
        })
    }

    /// Refuses a record that a process works on.
    ///
    /// # Errors
    /// [`StoreError::SessionOpen`]; [`StoreError::Sqlite`].
    pub fn refuse_at_work(&self, record: &str) -> Result<(), StoreError> {
        let mut open = self.open_sessions()?.into_iter();
        let at_work = open.find(|open| open.run == record && !self.dead.contains(&open.id));
        at_work.map_or(Ok(()), |open| Err(open.into_error()))
    }

    /// The record that `name` means, where something is to be removed: as [`Store::resolve_whole`]
    /// without `latest`, which changes its meaning with every run.
    ///
    /// # Errors
    /// [`StoreError::Latest`]; as [`Store::resolve_whole`].
    pub fn resolve_named(&self, name: &str) -> Result<Stored, StoreError> {
        if name == "latest" { Err(StoreError::Latest) } else { self.resolve_whole(name) }
    }

    /// The record that `name` means, as [`Store::resolve_any`] has it, with all that belongs to it.
    ///
    /// # Errors
    /// [`StoreError::PartOfRun`] for a probe or crash test of a run; as [`Store::resolve_any`].
    pub fn resolve_whole(&self, name: &str) -> Result<Stored, StoreError> {
        let found = self.resolve_any(name)?;
        let chain = self.chain_of(found.id())?;
        if chain == found.id() {
            return Ok(found);
        }
        Err(StoreError::PartOfRun { name: found.id().to_owned(), kind: found.kind(), run: chain })
    }

    /// Gives the room of removed rows back to the filesystem, by writing the file anew. That takes
    /// the file's size once in its folder and once in the folder for temporary files. Where there
    /// is less, nothing is done.
    ///
    /// # Errors
    /// [`StoreError::Sqlite`]; [`StoreError::Io`].
    pub fn compact(&self) -> Result<Compacted, StoreError> {
        let size = || std::fs::metadata(&self.path).map_err(io("look at", &self.path));
        let before = size()?.len();
        let places = [folder_of(&self.path).to_owned(), temporary_folder()];
        let free = |place| rustix::fs::statvfs(place).map(|found| found.f_bavail * found.f_frsize);
        let are_two = match places.each_ref().map(std::fs::metadata) {
            [Ok(a), Ok(b)] => a.dev() != b.dev(),
            _ => false,
        };
        let needed = if are_two { before } else { 2 * before };
        for place in &places {
            let free = free(place).map_err(|errno| io("look at", place)(errno.into()))?;
            if free < needed {
                return Ok(Compacted::NoRoom { needed, free });
            }
        }
        let failed = self.failed("give back free room");
        // SQLite attaches the file that it writes.
        let limit = |most| self.connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, most);
        limit(1).map_err(&failed)?;
        let vacuumed = self.connection.execute_batch("VACUUM");
        limit(0).map_err(&failed)?;
        vacuumed.map_err(&failed)?;
        Ok(Compacted::Smaller { before, after: size()?.len() })
    }
}

/// The folder in which SQLite makes temporary files (<https://sqlite.org/tempfiles.html>).
fn temporary_folder() -> PathBuf {
    let named = ["SQLITE_TMPDIR", "TMPDIR"].into_iter().filter_map(std::env::var_os);
    let usual = ["/var/tmp", "/usr/tmp", "/tmp"].map(OsString::from);
    let mut all = named.chain(usual).map(PathBuf::from);
    all.find(|folder| folder.is_dir()).unwrap_or_else(|| ".".into())
}
