//! The digests that are known, in memory and in a file beside the store.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use rusqlite::params;

use super::RunDigest;
use pgdyno_store::{ListedRun, SideFile, SideFileError};

const SUFFIX: &str = ".cache";

const VERSION: i64 = 1;

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS digest (
    run            TEXT PRIMARY KEY,
    head           TEXT NOT NULL,                 -- of the run's chain of checksums
    pgdyno_version TEXT NOT NULL,                 -- that made the digest
    digest         TEXT NOT NULL                  -- JSON
) STRICT;
";

/// Digests of runs by their content.
#[derive(Debug, Default)]
pub(crate) struct DigestCache {
    /// Head and digest of each run that is known.
    known: HashMap<String, (String, Arc<RunDigest>)>,
    /// File that holds the digests; none if they are kept in memory only.
    file: Option<SideFile>,
}

impl DigestCache {
    /// Opens the cache of the store at `store` and reads what it holds. The second value says why
    /// digests are kept in memory only, if they are.
    pub(crate) fn open(store: &Path) -> (Self, Option<SideFileError>) {
        match Self::read(store) {
            Ok(cache) => (cache, None),
            Err(error) => (Self::default(), Some(error)),
        }
    }

    fn read(store: &Path) -> Result<Self, SideFileError> {
        let file = SideFile::open(store, SUFFIX, (VERSION, SCHEMA))?;
        // Digests that a power loss takes are made anew.
        file.connection
            .execute_batch("PRAGMA synchronous = OFF;")
            .map_err(file.failed("prepare a connection"))?;
        let query = "SELECT run, head, digest FROM digest WHERE pgdyno_version = ?";
        let rows: rusqlite::Result<Vec<(String, String, String)>> =
            file.connection.prepare(query).and_then(|mut statement| {
                let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
                statement.query_map([env!("CARGO_PKG_VERSION")], row)?.collect()
            });
        let rows = rows.map_err(file.failed("read the digests"))?;
        let known = rows.into_iter().filter_map(|(run, head, json)| {
            // One that cannot be read is made anew.
            Some((run, (head, Arc::new(serde_json::from_str(&json).ok()?))))
        });
        Ok(Self { known: known.collect(), file: Some(file) })
    }

    /// Returns the digest of `run` as it is now; none if it is not known.
    pub(crate) fn get(&self, run: &ListedRun) -> Option<&Arc<RunDigest>> {
        let (head, digest) = self.known.get(&run.summary.id)?;
        (*head == key(run)).then_some(digest)
    }

    /// Returns the last digest of the run `id`, which may have got more trials since.
    pub(crate) fn last(&self, id: &str) -> Option<&Arc<RunDigest>> {
        self.known.get(id).map(|(_, digest)| digest)
    }

    /// Adds the digest of `run`, as it was listed before it was analysed.
    ///
    /// # Errors
    /// [`SideFileError::Sqlite`]: the digest is kept in memory only.
    pub(crate) fn add(&mut self, run: &ListedRun, digest: RunDigest) -> Result<(), SideFileError> {
        let id = &run.summary.id;
        let json = serde_json::to_string(&digest).ok();
        self.known.insert(id.clone(), (key(run), Arc::new(digest)));
        let (Some(file), Some(json)) = (&self.file, json) else { return Ok(()) };
        file.connection
            .execute(
                "INSERT OR REPLACE INTO digest (run, head, pgdyno_version, digest)
                 VALUES (?, ?, ?, ?)",
                params![id, key(run), env!("CARGO_PKG_VERSION"), json],
            )
            .map_err(file.failed("keep a digest"))?;
        Ok(())
    }
}

/// Names the content of a run. Its end belongs to it: that of a killed process is not stored.
fn key(run: &ListedRun) -> String {
    format!("{} {}", run.summary.state.name(), run.head.as_deref().unwrap_or("unsealed"))
}
