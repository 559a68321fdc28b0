//! List of the store's contents, read again only when the store has changed.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pgdyno_model::record::RunState;
use pgdyno_provision::stores::look_for_dead_sessions;
use pgdyno_store::{ListedRun, Store};
use serde::Serialize;

use crate::response::ApiError;
use crate::stores::Connection;

/// Contents of a store, newest first.
pub(crate) struct Contents {
    /// Number of the reading: another one for each state of the store that was read.
    pub(crate) version: u64,
    pub(crate) runs: Vec<ListedRun>,
    pub(crate) others: Vec<OtherRow>,
}

impl Contents {
    /// Returns the run with the full name `id`.
    pub(crate) fn run(&self, id: &str) -> Option<&ListedRun> {
        self.runs.iter().find(|run| run.summary.id == id)
    }

    /// Whether a process works on a run.
    pub(crate) fn has_running(&self) -> bool {
        self.runs.iter().any(|run| run.summary.state == RunState::Running)
    }
}

/// Kind of a result that is no run.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub(crate) enum OtherKind {
    /// A probe.
    Probe,
    /// Crash tests.
    Crash,
    /// An imported report.
    Import,
}

/// A probe, crash tests or an import in the list.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct OtherRow {
    /// Id of the result.
    id: String,
    /// Kind of the result.
    kind: OtherKind,
    /// Storage that was probed or crashed; the imported report's file.
    name: String,
    /// Id of the run that the result belongs to; null for one by itself.
    run: Option<String>,
    /// When the probe or the tests began; of an import, when it was imported.
    started_at: String,
    /// `completed` or `incomplete`; the verdict of crash tests; what was recognised in an import.
    state: String,
}

impl OtherRow {
    pub(crate) fn id(&self) -> &str {
        &self.id
    }
}

/// Reads the list of a store.
#[derive(Default)]
pub(crate) struct Listing {
    known: Mutex<Option<Known>>,
    /// How often the store was read (count).
    reads: AtomicU64,
}

/// The list as it was read last.
struct Known {
    connection: Connection,
    data_version: i64,
    contents: Arc<Contents>,
}

impl Listing {
    /// Returns the contents of the store at `path` as they are now.
    ///
    /// # Errors
    /// The store cannot be opened or read.
    pub(crate) fn read(&self, path: &Path) -> Result<Arc<Contents>, ApiError> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut connection = match known.take().filter(|known| known.connection.is_current()) {
            Some(mut last) => {
                let is_same = last.connection.store.data_version()? == last.data_version;
                // A process that dies changes nothing in the store.
                let has_died = is_same
                    && last.contents.has_running()
                    && look_for_dead_sessions(&mut last.connection.store)?;
                if is_same && !has_died {
                    return Ok(Arc::clone(&known.insert(last).contents));
                }
                last.connection
            }
            None => Connection::open(path)?,
        };
        // Before the list is read: what is written meanwhile makes it be read again.
        let data_version = connection.store.data_version()?;
        look_for_dead_sessions(&mut connection.store)?;
        let version = self.reads.fetch_add(1, Ordering::Relaxed);
        let contents = Arc::new(read(&connection.store, version)?);
        let read = known.insert(Known { connection, data_version, contents });
        Ok(Arc::clone(&read.contents))
    }
}

fn read(store: &Store, version: u64) -> Result<Contents, ApiError> {
    let state = |complete: bool| if complete { "completed" } else { "incomplete" }.to_owned();
    let probes = store.probes()?.into_iter().map(|probe| OtherRow {
        id: probe.id,
        kind: OtherKind::Probe,
        name: probe.name,
        run: probe.run,
        started_at: probe.started_at.to_string(),
        state: state(probe.complete),
    });
    let crashes = store.crashes()?.into_iter().map(|crash| OtherRow {
        id: crash.id,
        kind: OtherKind::Crash,
        name: crash.name,
        run: crash.run,
        started_at: crash.started_at.to_string(),
        state: crash.verdict,
    });
    let imports = store.imports()?.into_iter().map(|import| OtherRow {
        id: import.id,
        kind: OtherKind::Import,
        name: import.source,
        run: None,
        started_at: import.imported_at.to_string(),
        state: import.holds,
    });
    let mut others: Vec<OtherRow> = probes.chain(crashes).chain(imports).collect();
    others.sort_by(|a, b| b.started_at.cmp(&a.started_at));
    Ok(Contents { version, runs: store.listed_runs()?, others })
}

#[cfg(test)]
mod tests {
    use pgdyno_test_support::records::Random;
    use pgdyno_test_support::synthetic;

    use super::*;

    #[test]
    fn a_list_is_read_again_once_the_store_has_changed_or_a_process_is_gone() {
        let home = synthetic::folder();
        let path = home.path().join("store.sqlite3");
        let mut store = Store::open(&path).unwrap();
        let plan = synthetic::plan(&["a"], 2, &mut Random(1));
        let session = synthetic::begin(&mut store, "run", "recipe", 0, &plan);
        let listing = Listing::default();
        let read = || listing.read(&path).unwrap();
        let first = read();
        assert!(first.has_running());
        assert!(Arc::ptr_eq(&first, &read()), "nothing was written");
        let trial = synthetic::trial(&plan, &plan.trials[0], 1.0, 20);
        store.add_trial("run", session, &trial).unwrap();
        let second = read();
        assert!(second.version > first.version && second.has_running());
        drop(store);
        let third = read();
        assert!(third.version > second.version && !third.has_running());
    }
}
