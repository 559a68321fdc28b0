//! Opens the journal and stores, and clears in them what killed processes left behind.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use pgdyno_dataset::trust::Trust;
use pgdyno_exec::journal::Journal;
use pgdyno_exec::paths;
use pgdyno_model::progress::{Event, Notice, Progress};
use pgdyno_model::record::SessionEnd;
use pgdyno_results::store::Store;

use crate::LabError;

/// Opens the store at `path` and makes it if it is missing. Ends the sessions of dead processes.
///
/// # Errors
/// The store cannot be opened or written. As root also [`LabError::NotTrusted`], if another account
/// may change it.
pub fn open_store(path: &Path) -> Result<Store, LabError> {
    open_store_trusting(path, &Trust::default())
}

/// Opens the store at `path` as [`open_store`] does; `trust` may name it.
pub(crate) fn open_store_trusting(path: &Path, trust: &Trust) -> Result<Store, LabError> {
    trust.check_store(path)?;
    end_dead_sessions(Store::open(path)?)
}

/// Opens a store that must exist. Ends the sessions of dead processes.
///
/// # Errors
/// There is no store at `path`, or it cannot be opened.
pub fn open_store_existing(path: &Path) -> Result<Store, LabError> {
    end_dead_sessions(Store::open_existing(path)?)
}

/// Opens a store that must exist for reading only. Sessions of dead processes count as interrupted.
///
/// # Errors
/// There is no store at `path`, or it cannot be opened.
pub fn open_store_for_reading(path: &Path) -> Result<Store, LabError> {
    let mut store = Store::open_for_reading(path)?;
    look_for_dead_sessions(&mut store)?;
    Ok(store)
}

/// Looks anew which open sessions of `store` belong to dead processes: they count as interrupted.
///
/// # Errors
/// The store cannot be read.
pub fn look_for_dead_sessions(store: &mut Store) -> Result<(), LabError> {
    let dead = store.open_sessions()?.into_iter();
    let dead = dead.filter(|(.., owner)| !pgdyno_exec::process::is_alive(owner));
    let dead: Vec<_> = dead.map(|(session, ..)| session).collect();
    store.assume_ended(dead);
    Ok(())
}

/// Ends the sessions whose process is gone: a killed process could not record its end.
fn end_dead_sessions(mut store: Store) -> Result<Store, LabError> {
    if !store.is_writable() {
        return Ok(store);
    }
    for (session, _, owner) in store.open_sessions()? {
        if !pgdyno_exec::process::is_alive(&owner) {
            store.end_session(session, SessionEnd::Interrupted)?;
        }
    }
    Ok(store)
}

/// Opens the journal and clears what it names of dead processes. Reports each leftover.
///
/// # Errors
/// The journal cannot be read or written.
pub(crate) fn clear_leftovers(
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<Journal, LabError> {
    let journal = Journal::open(&paths::state_dir())?;
    for swept in pgdyno_postgres::sweep::sweep(&journal, stop)? {
        progress.event(&Event::Note(Notice::Swept(swept.to_string())));
    }
    Ok(journal)
}
