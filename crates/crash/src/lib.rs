//! Crash tests: does PostgreSQL keep every commit that it acknowledged?
//!
//! A *subject* is a storage, programs and settings. One round takes these steps:
//!
//! 1. Make the tables' baseline durable.
//! 2. Run a load. A ledger outside the server records each transaction.
//! 3. Inject a fault at a moment that the seed draws.
//! 4. Let the server recover.
//! 5. Let `pgdyno-durability` judge the rows that are there.
//!
//! Positive controls are rounds with a planted loss. They show that a loss would be seen.
//!
//! In place of rounds, `all_states` looks at the states that a power cut could have left at every
//! flush of one stretch of load, and at a sample of those between two flushes.

mod aim;
mod all_states;
mod controls;
mod disk;
mod dry_run;
mod error;
mod inject_fault;
mod load;
mod log_room;
mod missed;
mod power;
mod recovery;
mod repeated;
mod resume;
mod round;
mod round_plan;
mod run_session;
mod session;
mod subject;
mod test_bed;
mod verify;
mod wal_watcher;
pub mod witness;
mod workload;

use std::path::Path;
use std::sync::atomic::AtomicBool;

pub use all_states::{KeptState, StateJudgement, judge_again};
use all_states::{Origin, StretchSource};
pub use dry_run::dry_run;
pub use log_room::{check_log_rooms, describe_log_rooms};
use pgdyno_experiment::ResolvedExperiment;
use pgdyno_experiment::checks::crash::refuse_plug;
use pgdyno_model::crash::CrashRecord;
use pgdyno_model::progress::Progress;
use pgdyno_model::units::Epoch;
pub use resume::{Resumption, crash_treatment, resume};
use run_session::run_session;
pub use subject::{AfterRecovery, Interference, Subject, Through};

use pgdyno_provision::stores::{clear_leftovers, open_store};
use pgdyno_provision::{BenchError, Context, new_record_id};

/// Crashes what `resolved` describes, by itself: its only treatment is the subject, its `[crash]`
/// says how. What comes of it is in the store at `store` when this returns, also what a signal cut
/// short.
///
/// # Errors
/// The first round cannot begin, or pgdyno cannot go on; nothing is left on the
/// host.
pub fn crash(
    resolved: &ResolvedExperiment,
    interference: Interference,
    store: &Path,
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<CrashRecord, BenchError> {
    refuse_plug(&resolved.experiment)?;
    let journal = clear_leftovers(progress, stop)?;
    let mut store = open_store(store)?;
    let treatment = &resolved.plan.treatments[0];
    let context = Context { journal: &journal, progress, stop };
    let subject = Subject { interference, ..Subject::new(resolved, treatment, context)? };
    let id = new_record_id("crash", Epoch::now());
    let (source, overrides) = (resolved.source.clone(), resolved.overrides.clone());
    let source = StretchSource::New(Origin::Command { source, overrides });
    let record = run_session(&subject, &id, source, context)?;
    store.add_crash(None, &record)?;
    Ok(record)
}
