//! The sweep of [`pgdyno_exec::sweep`], which reaches external servers and storage plans too.

use std::sync::atomic::AtomicBool;

use pgdyno_exec::journal::{Journal, JournalError, MadeId, RecordedSchema, RecordedSettings};
pub use pgdyno_exec::sweep::{CleanupResult, ExternalServers, Leftover, Outcome, leftovers};

use crate::{schema, server_wide};

/// Removes leftovers of dead processes, as [`pgdyno_exec::sweep::sweep`] does, and returns one
/// result for each.
///
/// ```no_run
/// use std::sync::atomic::AtomicBool;
///
/// let journal = pgdyno_exec::Journal::open("/var/lib/pgdyno".as_ref())?;
/// for swept in pgdyno_postgres::sweep::sweep(&journal, &AtomicBool::new(false))? {
///     println!("{swept:?}");
/// }
/// # Ok::<(), pgdyno_exec::JournalError>(())
/// ```
///
/// # Errors
/// [`JournalError`]: the journal cannot be read.
pub fn sweep(journal: &Journal, stop: &AtomicBool) -> Result<Vec<CleanupResult>, JournalError> {
    let journal = journal.clone().with_plans(pgdyno_storage::undo_of_plan);
    pgdyno_exec::sweep::sweep(&journal, &Servers, stop)
}

/// External servers, reached by their recorded connection strings.
struct Servers;

impl ExternalServers for Servers {
    fn put_back_settings(&self, recorded: &RecordedSettings) -> Outcome {
        match server_wide::put_back_by_dsn(recorded) {
            Ok(left) if left.is_empty() => Outcome::PutBack,
            Ok(left) => Outcome::NotOurs { found: left.join("; ") },
            Err(e) => Outcome::Failed { why: e.to_string() },
        }
    }

    fn drop_schema(&self, recorded: &RecordedSchema, id: &MadeId) -> Outcome {
        match schema::drop_by_dsn(recorded, id) {
            Ok(dropped) if !dropped.left.is_empty() => {
                Outcome::Failed { why: dropped.left.join("; ") }
            }
            Ok(dropped) if dropped.objects == 0 => Outcome::WasGone,
            Ok(_) => Outcome::Removed { server_ended: None },
            Err(e) => Outcome::Failed { why: e.to_string() },
        }
    }
}
