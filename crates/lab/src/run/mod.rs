//! Runs a plan: provisions, then for each trial starts, settles, warms up, measures and stores it,
//! then takes down.

mod cluster_pool;
mod consistency;
mod counters;
mod extend;
mod external_server;
mod flush_accounting;
mod observation;
mod prewarm;
mod remaining_time;
mod replica;
mod server;
mod session;
mod settle;
mod storage_pool;
mod storage_probes;
mod templates;
mod trial;
mod trial_scheduler;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use crate::error::LabError;
use pgdyno_analysis::host_noise::learn;
use pgdyno_dataset::trust::Trust;
use pgdyno_experiment::ResolvedExperiment;
use pgdyno_experiment::file::{Override, Source};
use pgdyno_model::progress::{Progress, Warning};
use pgdyno_model::record::{RunState, SessionEnd};
use pgdyno_model::{Failure, Plan};
use pgdyno_storage::Wipe;
use pgdyno_store::{Store, StoreError};
pub use session::Outcome;
use session::{Continued, RunSession};

use crate::live::Feed;
use pgdyno_provision::stores::{clear_leftovers, open_store_trusting};
use pgdyno_provision::{BenchError, Context, ThisHost};

/// Devices and files that the caller allows by name on the command line.
#[derive(Clone, Debug, Default)]
pub struct Consent {
    /// Devices that are given up.
    pub wipe: Wipe,
    /// Files of others whose commands may run.
    pub trust: Trust,
}

/// Runs `resolved` from the beginning. What is complete is in the store at `store` when this
/// returns, however it ends.
///
/// # Errors
/// The run cannot begin. Then nothing is in the store, and nothing is left on the host.
pub fn run(
    resolved: &ResolvedExperiment,
    store: &Path,
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<Outcome, BenchError> {
    let feed = Feed::new(progress, store);
    let journal = clear_leftovers(&feed, stop)?;
    let mut store = open_store_trusting(store, &resolved.trust)?;
    let context = Context { journal: &journal, progress: &feed, stop };
    let resolved = &informed(resolved, &store, context);
    watched(&feed, RunSession::begin(resolved, None, &mut store, context, &feed))
}

/// Returns `resolved` with the noise of this host as earlier runs in `store` found it, if the
/// experiment counts that.
fn informed(
    resolved: &ResolvedExperiment,
    store: &Store,
    context: Context<'_>,
) -> ResolvedExperiment {
    let mut resolved = resolved.clone();
    if resolved.experiment.host_noise
        && let Err(error) = learn(store, &mut resolved.plan, &crate::host())
    {
        context.warn(Warning::NoiseUnread { reason: Failure::from(&error) });
    }
    resolved
}

/// Resumes run `named` of the store at `store`: executes its unfinished trials.
///
/// `servers` gives the connections to external servers anew, since passwords are not stored. `more`
/// may set the number of repeats, to more than the run has. `consent` names devices and files anew:
/// it is not stored either. The experiment comes from the store, so whoever may change the store
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
) -> Result<Outcome, BenchError> {
    let Consent { wipe, trust } = consent;
    if !store.exists() {
        return Err(StoreError::Missing { path: store.to_owned() }.into());
    }
    trust.check_store(store)?;
    let feed = Feed::new(progress, store);
    let journal = clear_leftovers(&feed, stop)?;
    let mut store = open_store_trusting(store, &trust)?;
    let id = store.resolve(named)?;
    store.refuse_at_work(&id)?;
    refuse_others(&store, &id, &trust)?;
    extend::check(&id, more)?;
    let state = store.state(&id)?;
    store.check(&id)?;
    let mut record = store.run(&id)?;
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
    let mut resolved = ResolvedExperiment::from_run(source, overrides, &record.plan, &ThisHost)?
        .with_trust(trust, None)?
        .with_wipe(wipe, &ThisHost)?;
    resolved.plan = extend::continued(&id, (&record.plan, state), resolved.plan, more)?;
    if record.plan.crashed.is_empty() {
        // Earlier versions did not note what is crashed.
        record.plan.crashed.clone_from(&resolved.plan.crashed);
    }
    let as_begun = Plan {
        trials: record.plan.trials.clone(),
        extended_after: record.plan.extended_after.clone(),
        ..resolved.plan.clone()
    };
    if as_begun != record.plan || (more.is_empty() && resolved.plan != record.plan) {
        return Err(LabError::OtherPlan { run: id }.into());
    }
    let extension = (!more.is_empty()).then_some(kept);
    // Its trials are over, be it before all of them were executed; a treatment may be left to be
    // crashed.
    let are_trials_over = state == RunState::Completed && more.is_empty();
    let continued = Continued { run: &id, extension, are_trials_over };
    let context = Context { journal: &journal, progress: &feed, stop };
    watched(&feed, RunSession::begin(&resolved, Some(continued), &mut store, context, &feed))
}

/// Works through `session`, and tells watchers how it ended.
fn watched(
    feed: &Feed<'_>,
    session: Result<RunSession<'_>, BenchError>,
) -> Result<Outcome, BenchError> {
    let outcome = session.and_then(RunSession::work);
    match &outcome {
        Ok(outcome) => feed.end(outcome.end, None),
        Err(error) => feed.end(SessionEnd::Failed, Some(error.failure())),
    }
    outcome
}

/// Refuses to resume a run that no experiment describes. As root, also refuses a run that came from
/// elsewhere: its experiment may name commands.
fn refuse_others(store: &Store, run: &str, trust: &Trust) -> Result<(), BenchError> {
    if store.run(run)?.experiment.is_empty() {
        return Err(LabError::AdHoc { run: run.to_owned() }.into());
    }
    let Some((source_name, at)) = store.arrival(run)? else { return Ok(()) };
    if !rustix::process::geteuid().is_root() || trust.names(store.path()) {
        return Ok(());
    }
    let (run, store) = (run.to_owned(), store.path().to_owned());
    Err(LabError::Imported { run, at, source_name, store }.into())
}
