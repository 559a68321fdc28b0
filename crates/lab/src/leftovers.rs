//! Clears what killed processes left behind, before anything new is made.

use std::sync::atomic::AtomicBool;

use pgdyno_exec::journal::Journal;
use pgdyno_exec::paths;
use pgdyno_model::progress::{Event, Notice, Progress};

use crate::LabError;

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
