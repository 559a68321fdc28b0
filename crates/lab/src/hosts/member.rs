//! Runs an assignment on a host, or resumes the run of an interrupted assignment that has the same
//! key.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pgdyno_dataset::trust::Trust;
use pgdyno_exec::paths::data_dir;
use pgdyno_model::progress::Progress;
use pgdyno_model::record::{RunState, SessionEnd};
use pgdyno_store::{Identity, StoreError};

use super::{Assignment, Reply};
use crate::{Consent, run};
use pgdyno_provision::BenchError;
use pgdyno_provision::stores::{open_store, open_store_existing};

/// A run on this host, and its store.
#[derive(Debug)]
pub struct HostRun {
    /// The run's id.
    pub run: String,
    /// How the run ended.
    pub end: SessionEnd,
    /// The store to send, if the run is over.
    store: Option<PathBuf>,
}

/// Runs `assignment`, or resumes its run. Only packs a run that is over and was not fetched.
///
/// # Errors
/// The run fails as [`run::run`] or [`run::resume`] does, or the store cannot be packed.
pub fn run_assignment(
    assignment: &Assignment,
    progress: &dyn Progress,
    stop: &Arc<AtomicBool>,
) -> Result<HostRun, BenchError> {
    let store = folder(assignment).join("store.sqlite3");
    let (run, end) = match earlier_run(&store)? {
        Some((run, RunState::Completed)) => (run, SessionEnd::Completed),
        Some((run, RunState::Failed)) => (run, SessionEnd::Failed),
        Some((run, RunState::Interrupted | RunState::Running)) => {
            let consent = Consent { wipe: assignment.wipe.clone(), trust: Trust::default() };
            let outcome = run::resume(&run, &[], &[], consent, &store, progress, stop)?;
            (outcome.run, outcome.end)
        }
        None => {
            let outcome = run::run(&assignment.resolve()?, &store, progress, stop)?;
            (outcome.run, outcome.end)
        }
    };
    let is_over = end != SessionEnd::Interrupted;
    let store = is_over.then(|| pack(assignment, &store, stop)).transpose()?;
    Ok(HostRun { run, end, store })
}

/// The folder of the assignment's run on this host.
fn folder(assignment: &Assignment) -> PathBuf {
    // Hexadecimal digits, also if whoever sent the assignment is none of ours.
    let key: String = assignment.key.chars().filter(char::is_ascii_hexdigit).collect();
    data_dir().join("hosts").join(key)
}

/// Returns the run of an earlier assignment, and where it stands.
fn earlier_run(store: &Path) -> Result<Option<(String, RunState)>, BenchError> {
    if !store.exists() {
        return Ok(None);
    }
    let newest = open_store_existing(store)?.runs()?.into_iter().next();
    Ok(newest.map(|run| (run.id, run.state)))
}

/// Writes the store's records into one file, checks them, and returns the file's path.
fn pack(
    assignment: &Assignment,
    store: &Path,
    stop: &Arc<AtomicBool>,
) -> Result<PathBuf, BenchError> {
    let packed = folder(assignment).join("packed.sqlite3");
    // Of an assignment whose connection ended.
    match std::fs::remove_file(&packed) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            let doing = "remove an earlier copy of the store";
            return Err(StoreError::Io { doing, path: packed, source: error }.into());
        }
        _ => {}
    }
    let store = open_store(store)?;
    store.archive(&store.all_records()?, &packed, Identity::Kept, Arc::clone(stop))?;
    Ok(packed)
}

/// Sends how `run` ended, and its store, to `to`.
///
/// # Errors
/// The store cannot be read, or the connection ended.
pub fn send(run: &HostRun, to: &mut dyn Write) -> io::Result<()> {
    let mut store = run.store.as_ref().map(File::open).transpose()?;
    let bytes = store.as_ref().map(File::metadata).transpose()?.map_or(0, |found| found.len());
    let (run, end) = (Some(run.run.clone()), Some(run.end));
    send_reply(&Reply { run, end, error: None, bytes }, to)?;
    if let Some(store) = &mut store {
        io::copy(store, to)?;
    }
    to.flush()
}

/// Sends `reply` to `to`.
///
/// # Errors
/// The connection ended.
pub fn send_reply(reply: &Reply, to: &mut dyn Write) -> io::Result<()> {
    let text = serde_json::to_string(reply).map_err(io::Error::other)?;
    writeln!(to, "{text}")?;
    to.flush()
}

/// Removes the assignment's store: its run is kept where the assignment came from.
///
/// # Errors
/// The folder cannot be removed.
pub fn forget(assignment: &Assignment) -> io::Result<()> {
    std::fs::remove_dir_all(folder(assignment))
}
