//! Runs a plan: provisions, then for each trial starts, settles, warms up, measures and stores it,
//! then takes down.

mod between;
mod course;
mod data;
mod extend;
mod given;
mod places;
mod provision;
pub(crate) use provision::{Programs, base_settings, installs, programs};
mod server;
pub(crate) use server::{execute, number};
mod session;
pub(crate) use session::id_of;
mod stage;
mod trial;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use pgdyno_host::{Journal, paths};
use pgdyno_model::Plan;
use pgdyno_model::record::{RunState, SessionEnd};
use pgdyno_results::StoreError;
use pgdyno_results::store::Store;

use crate::LabError;
use crate::file::{Override, Source};
use crate::prepare::{Consent, Prepared};
use pgdyno_dataset::trust::Trust;
use pgdyno_model::progress::{Event, Progress};

/// How a run, or its continuation, ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The run's id in the store.
    pub run: String,
    /// How this session of it ended.
    pub end: SessionEnd,
    /// Trials that failed in this session, and treatments whose crash tests were not done to the
    /// end (count).
    pub failed: u32,
    /// Of these the treatments (count).
    pub not_crashed: u32,
}

/// Runs `prepared` from the beginning. What is complete is in the store at `store` when this
/// returns, however it ends.
///
/// # Errors
/// What is wrong before the first trial begins: then nothing is in the store, and nothing is left
/// on the host.
pub fn run(
    prepared: &Prepared,
    store: &Path,
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<Outcome, LabError> {
    let journal = clear_leftovers(progress, stop)?;
    let mut store = open_store_trusting(store, &prepared.trust)?;
    session::Session::begin(prepared, None, &mut store, &journal, progress, stop)?.work()
}

/// Goes on with run `named` of the store at `store`: runs its trials that are not complete.
/// `servers` are for servers that pgdyno does not own: their passwords were not stored. `more` may
/// set the number of repeats, to more than the run has. `consent` names devices and files anew: it
/// is not stored either. The experiment comes from the store, so that whoever may change the store
/// has to be trusted.
///
/// # Errors
/// As [`run`]; also if nothing is left to do, another process works on the run, or `more` asks for
/// anything but more repeats.
pub fn resume(
    named: &str,
    servers: &[Override],
    more: &[Override],
    consent: Consent,
    store: &Path,
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<Outcome, LabError> {
    let Consent { wipe, trust } = consent;
    if !store.exists() {
        return Err(StoreError::Missing { path: store.to_owned() }.into());
    }
    trust.check_store(store)?;
    let journal = clear_leftovers(progress, stop)?;
    let mut store = open_store_trusting(store, &trust)?;
    let id = store.resolve(named)?;
    if let Some((_, _, owner)) = store.open_sessions()?.into_iter().find(|(_, run, _)| *run == id) {
        return Err(LabError::StillRunning { run: id, pid: owner.pid });
    }
    extend::check(&id, more)?;
    let state = store.state(&id)?;
    store.check(&id)?;
    let record = store.run(&id)?;
    let source = Source {
        name: record.recipe.clone(),
        shown: format!("the experiment of run {id}"),
        text: record.experiment.clone(),
        base: record.folder.clone().into(),
    };
    let mut overrides =
        record.overrides.iter().map(|o| Override::parse(o)).collect::<Result<Vec<_>, _>>()?;
    overrides.extend_from_slice(more);
    let kept: Vec<String> = overrides.iter().map(|o| o.given.clone()).collect();
    overrides.extend_from_slice(servers);
    let mut prepared = Prepared::of_run(source, overrides, &record.plan)?
        .with_trust(trust, None)?
        .with_wipe(wipe)?;
    prepared.plan = extend::continued(&id, (&record.plan, state), prepared.plan, more)?;
    let as_begun = Plan {
        trials: record.plan.trials.clone(),
        extended_after: record.plan.extended_after.clone(),
        ..prepared.plan.clone()
    };
    if as_begun != record.plan || (more.is_empty() && prepared.plan != record.plan) {
        return Err(LabError::PlanChanged { run: id });
    }
    let extension = (!more.is_empty()).then_some(kept);
    // Its trials are over, be it before all of them were executed; a treatment may be left to be
    // crashed.
    let are_trials_over = state == RunState::Completed && more.is_empty();
    let continued = session::Continued { run: &id, extension, are_trials_over };
    session::Session::begin(&prepared, Some(continued), &mut store, &journal, progress, stop)?
        .work()
}

/// Clears what killed processes left behind, telling what it was; opens the journal.
pub(crate) fn clear_leftovers(
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<Journal, LabError> {
    let journal = Journal::open(&paths::state_dir())?;
    for swept in pgdyno_host::sweep(&journal, stop)? {
        progress.event(&Event::Note(swept.to_string()));
    }
    Ok(journal)
}

/// Opens the store at `path`, made if it is missing; sessions of dead processes are ended.
///
/// # Errors
/// The store cannot be opened or written; as root also [`LabError::NotTrusted`], if another account
/// may change it.
pub fn open_store(path: &Path) -> Result<Store, LabError> {
    open_store_trusting(path, &Trust::default())
}

/// As [`open_store`], for a store that `trust` may name.
fn open_store_trusting(path: &Path, trust: &Trust) -> Result<Store, LabError> {
    trust.check_store(path)?;
    end_dead_sessions(Store::open(path)?)
}

/// As [`open_store`], for a store that must be there.
///
/// # Errors
/// There is no store at `path`, or it cannot be opened.
pub fn open_store_existing(path: &Path) -> Result<Store, LabError> {
    end_dead_sessions(Store::open_existing(path)?)
}

/// A session whose process is gone was interrupted: killed, it could not say so itself.
fn end_dead_sessions(mut store: Store) -> Result<Store, LabError> {
    if !store.is_writable() {
        return Ok(store);
    }
    for (session, _, owner) in store.open_sessions()? {
        if !pgdyno_host::is_alive(&owner) {
            store.end_session(session, SessionEnd::Interrupted)?;
        }
    }
    Ok(store)
}
