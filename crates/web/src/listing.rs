//! The list of what the store holds, read again only when the store has changed.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use pgdyno_lab::run::look_for_dead_sessions;
use pgdyno_model::record::RunState;
use pgdyno_results::Store;
use pgdyno_results::store::ListedRun;
use serde::Serialize;

use crate::response::ApiError;
use crate::stores::Connection;

/// What a store holds, newest first.
pub(crate) struct Contents {
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

/// What a store holds beside runs.
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
    /// Its id.
    id: String,
    /// What it is.
    kind: OtherKind,
    /// What was probed or crashed; the imported report's file.
    name: String,
    /// The run that it belongs to; none for one by itself.
    run: Option<String>,
    /// When it began; of an import, when it was imported.
    started_at: String,
    /// `completed` or `incomplete`; the verdict of crash tests; what was recognised in an import.
    state: String,
}

impl OtherRow {
    /// Its id.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }
}

/// Reads the list of a store.
#[derive(Default)]
pub(crate) struct Listing(Mutex<Option<Known>>);

/// The list as it was read last.
struct Known {
    connection: Connection,
    data_version: i64,
    contents: Arc<Contents>,
}

impl Listing {
    /// Returns what the store at `path` holds now.
    ///
    /// # Errors
    /// The store cannot be opened or read.
    pub(crate) fn read(&self, path: &Path) -> Result<Arc<Contents>, ApiError> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let connection = match known.take().filter(|known| known.connection.is_current()) {
            Some(last) => {
                let is_same = last.connection.store.data_version()? == last.data_version;
                // A process that dies changes nothing in the store.
                if is_same && !last.contents.has_running() {
                    return Ok(Arc::clone(&known.insert(last).contents));
                }
                last.connection
            }
            None => Connection::open(path)?,
        };
        let mut connection = connection;
        // Before the list is read: what is written meanwhile makes it be read again.
        let data_version = connection.store.data_version()?;
        look_for_dead_sessions(&mut connection.store)?;
        let contents = Arc::new(read(&connection.store)?);
        let read = known.insert(Known { connection, data_version, contents });
        Ok(Arc::clone(&read.contents))
    }
}

fn read(store: &Store) -> Result<Contents, ApiError> {
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
    Ok(Contents { runs: store.listed_runs()?, others })
}
