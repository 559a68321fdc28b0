//! Opens the journal and stores, and clears them of what killed processes left behind.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use pgdyno_dataset::trust::Trust;
use pgdyno_exec::journal::Journal;
use pgdyno_exec::paths;
use pgdyno_exec::process::{is_alive, is_of_this_host};
use pgdyno_model::progress::{Event, Notice, Progress};
use pgdyno_model::record::SessionEnd;
use pgdyno_storage::kept::stretch;
use pgdyno_store::{Hold, OpenSession, Store};

use crate::BenchError;

/// Opens the store at `path`, and makes it if it is missing. Ends the sessions that dead processes
/// of this machine left open.
///
/// # Errors
/// The store cannot be opened or written. As root also
/// [`NotTrusted`](pgdyno_dataset::trust::NotTrusted), if another account may change it.
pub fn open_store(path: &Path) -> Result<Store, BenchError> {
    open_store_trusting(path, &Trust::default())
}

/// Opens the store at `path` as [`open_store`] does. A store that `trust` names is not checked:
/// another account may change it.
pub fn open_store_trusting(path: &Path, trust: &Trust) -> Result<Store, BenchError> {
    trust.check_store(path)?;
    let mut store = Store::open(path)?;
    for open in store.open_sessions()? {
        // A run that came from another store stays as it is there, so that it can come again.
        let is_ours = is_of_this_host(&open.owner) && store.arrival(&open.run)?.is_none();
        if is_over(&open) && is_ours {
            store.end_session(open.id, SessionEnd::Interrupted)?;
        }
    }
    look_for_dead_sessions(&mut store)?;
    Ok(store)
}

/// Opens a store that must exist. Sessions of dead processes count as interrupted. Writes nothing,
/// except that SQLite recovers from a killed writer.
///
/// # Errors
/// There is no store at `path`, or it cannot be opened.
pub fn open_store_existing(path: &Path) -> Result<Store, BenchError> {
    let mut store = Store::open_existing(path)?;
    look_for_dead_sessions(&mut store)?;
    Ok(store)
}

/// Opens a store that must exist for reading only. Sessions of dead processes count as interrupted.
///
/// # Errors
/// There is no store at `path`, or it cannot be opened.
pub fn open_store_for_reading(path: &Path) -> Result<Store, BenchError> {
    let mut store = Store::open_for_reading(path)?;
    look_for_dead_sessions(&mut store)?;
    Ok(store)
}

/// Looks anew for open sessions of `store` that belong to dead processes: they count as
/// interrupted. Returns whether the set of such sessions changed.
///
/// # Errors
/// The store cannot be read.
pub fn look_for_dead_sessions(store: &mut Store) -> Result<bool, BenchError> {
    let dead: Vec<_> =
        store.open_sessions()?.into_iter().filter(is_over).map(|open| open.id).collect();
    Ok(store.assume_ended(dead))
}

/// Returns whether nobody works on an open session any more: a killed process could not record the
/// end. The session's lock decides, on whatever machine the process works.
pub fn is_over(open: &OpenSession) -> bool {
    match open.hold {
        Hold::Held => false,
        Hold::Free => true,
        Hold::Unknown => !is_alive(&open.owner),
    }
}

/// Opens the journal and clears what it names of dead processes. Reports each leftover.
///
/// # Errors
/// The journal cannot be read or written.
pub fn clear_leftovers(progress: &dyn Progress, stop: &AtomicBool) -> Result<Journal, BenchError> {
    let journal = Journal::open(&paths::state_dir())?;
    for swept in pgdyno_postgres::sweep::sweep(&journal, stop)? {
        progress.event(&Event::Note(Notice::Swept(swept.to_string())));
    }
    for removed in remove_unfinished() {
        progress.event(&Event::Note(Notice::Swept(removed)));
    }
    Ok(journal)
}

/// Removes kept loads that killed processes left incomplete. Returns a line for each.
pub fn remove_unfinished() -> Vec<String> {
    let removed = stretch::remove_unfinished().into_iter();
    let line = |folder: PathBuf| {
        format!("{}: a load that was not kept to the end: removed", folder.display())
    };
    removed.map(line).collect()
}
