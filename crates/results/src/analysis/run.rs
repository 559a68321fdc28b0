//! Analyses a run: from the records of the store to a [`RunView`].
//!
//! [`gather`] reads the records once, trial by trial. [`read`] then judges: promises first, since a
//! treatment that broke its promise is not ranked, then comparisons, then what is derived from
//! them.

use std::collections::BTreeSet;

use pgdyno_model::record::{RunState, SessionEnd, SessionRecord};
use pgdyno_model::{NoisePrior, Plan, Treatment, TrialRecord};
use pgdyno_stats::{self as stats, Variance};

use super::factors::Factors;
use super::family::Family;
use super::pairing::{Pairing, design};
use super::treatment::TreatmentSamples;
use super::view::{
    FsyncView, Headline, NoisePriorView, PairsView, RunHead, RunView, SessionView, TreatmentCrash,
    TreatmentView, TrialState, TrialView,
};
use super::{
    capacity, compare, noise_floor, pairs, promise, scaling, stages, stopping, treatment, trial,
    why,
};
use crate::gate::Measure;
use crate::prose::{self, Watched, notes};
use crate::report::CrashView;
use crate::store::{SessionId, Store, StoreError};

/// Analyses the run whose full name is `run` (see [`Store::resolve`]).
///
/// ```no_run
/// # use pgdyno_results::{Store, analyse};
/// let store = Store::open_existing("results.sqlite3")?;
/// let view = analyse(&store, &store.resolve("latest")?)?;
/// for treatment in &view.treatments {
///     println!("{}: {:?} tps", treatment.label, treatment.tps.as_ref().map(|tps| tps.mean));
/// }
/// # Ok::<(), pgdyno_results::StoreError>(())
/// ```
///
/// Trials are read one at a time. Of several attempts at a trial the first completed one counts.
///
/// # Errors
/// [`StoreError::UnknownRun`]; [`StoreError::Damaged`]; [`StoreError::Sqlite`] or
/// [`StoreError::Corrupt`].
pub fn analyse(store: &Store, run: &str) -> Result<RunView, StoreError> {
    read(store, run).map(|(view, _)| view)
}

/// Analyses a run and returns its samples too, for comparisons with other runs.
pub(super) fn read(
    store: &Store,
    run: &str,
) -> Result<(RunView, Vec<TreatmentSamples>), StoreError> {
    let Gathered { mut view, sums, watched } = gather(store, run)?;
    promise::judge(&mut view, &sums);
    let family = Family::of_run(&view.plan, view.run.state, &sums);
    compare::rank(&mut view, &sums, &family);
    view.comparisons = compare::compare(&view, &sums, &family);
    view.pairs = pairs::pairs(&view, &family);
    view.capacity = capacity::views(&view);
    view.why = why::of_run(&view, &sums);
    view.scaling = scaling::sweeps(&view.plan, &sums);
    let factors = Factors::of_run(&view.plan, view.run.state, &sums);
    (view.effect, view.courses) = (factors.effect, factors.courses);
    view.interactions = factors.interactions;
    view.stopping = stopping::view(&view, &sums);
    view.noise_prior = noise_prior(&view.plan, &sums);
    if let Some(session) = view.sessions.last() {
        view.noise_floor = noise_floor::newest(store, &session.host)?;
    }
    view.answer = prose::answer(&view, &family);
    view.notes = notes(&view, &watched);
    view.cautions = prose::cautions(&view.notes);
    view.headline = prose::run_headline(&view);
    Ok((view, sums))
}

/// Returns what earlier runs told of the noise when the run began, and whether it counts.
fn noise_prior(plan: &Plan, sums: &[TreatmentSamples]) -> Option<NoisePriorView> {
    let tps = TreatmentSamples::all_values(sums, Measure::Tps);
    let prior = plan.noise_prior?;
    let (used, own) = stats::prior_use(&tps, design(plan, None, Some(prior)))?;
    let NoisePrior { variance, freedom, runs } = prior;
    Some(NoisePriorView {
        used,
        spread: Variance { value: variance, freedom }.spread(),
        freedom,
        runs,
        own_spread: own.spread(),
        own_freedom: own.freedom,
    })
}

/// A run as the store holds it, before it is judged.
pub(super) struct Gathered {
    pub(super) view: RunView,
    pub(super) sums: Vec<TreatmentSamples>,
    watched: Watched,
}

/// Reads a run with its trials; nothing of other runs.
pub(super) fn gather(store: &Store, run: &str) -> Result<Gathered, StoreError> {
    let record = store.run(run)?;
    store.check(run)?;
    let state = store.state(run)?;
    let sessions = store.sessions(run)?;
    let fsync: Vec<FsyncView> = store.fsync_rates(run)?.iter().map(FsyncView::from).collect();
    let plan = record.plan;

    let mut completed = BTreeSet::new();
    let mut sums: Vec<_> = plan.treatments.iter().map(|_| TreatmentSamples::default()).collect();
    let mut trials = Vec::new();
    let mut servers = trial::Servers::default();
    let mut watched = Watched::default();
    for id in store.trial_ids(run)? {
        let (session, trial) = store.trial(id)?;
        let (Some(treatment), Some(sum)) =
            (plan.treatments.get(trial.treatment), sums.get_mut(trial.treatment))
        else {
            return Err(unknown_treatment(store, &trial));
        };
        let state = state_of(&trial, &mut completed);
        let session = sessions.iter().position(|(id, ..)| *id == session);
        let devices =
            session.map(|i| devices(&sessions[i].1, &treatment.storage)).unwrap_or_default();
        sum.add(&trial, state, treatment, &devices);
        watched.add(&trial, treatment);
        let server = servers.add(&trial);
        trials.push(trial::view(&trial, treatment, state, session, server, &devices));
    }
    // A run that may end by itself had to do what it did, once it has ended.
    let over = plan.stopping.is_some() && state == RunState::Completed;
    let treatments = treatment_views(&plan, &sums, &trials, &fsync, over);
    let mut view = RunView {
        run: RunHead {
            id: record.id,
            recipe: record.recipe,
            host: store.host_name(run)?,
            state,
            question: plan.question.clone(),
            started_at: record.started_at,
            pgdyno_version: record.pgdyno_version,
            trials_planned: if over { completed.len() } else { plan.trials.len() },
            trials_completed: completed.len(),
            attempts_failed: trials.iter().filter(|t| t.state == TrialState::Failed).count(),
            not_crashed: Vec::new(),
        },
        ad_hoc: record.experiment.is_empty(),
        thinned: store.thinnings(run)?,
        answer: Vec::new(),
        headline: Headline::default(),
        cautions: Vec::new(),
        best: None,
        treatments,
        comparisons: Vec::new(),
        pairs: PairsView::default(),
        why: Vec::new(),
        capacity: Vec::new(),
        scaling: Vec::new(),
        effect: None,
        courses: Vec::new(),
        interactions: Vec::new(),
        noise_prior: None,
        noise_floor: None,
        stopping: None,
        notes: Vec::new(),
        probes: stages::views(store, run, &trials)?,
        crashes: store.crashes_of(run)?.iter().map(CrashView::from).collect(),
        trials,
        fsync,
        sessions: sessions.into_iter().map(session_view).collect(),
        servers: servers.views(),
        plan,
        experiment: record.experiment,
        overrides: record.overrides,
    };
    add_crashes(&mut view);
    Ok(Gathered { view, sums, watched })
}

fn unknown_treatment(store: &Store, trial: &TrialRecord) -> StoreError {
    let found =
        format!("trial {} of treatment {}, which the plan has not", trial.ordinal, trial.treatment);
    StoreError::Corrupt { path: store.path().into(), what: "a trial".into(), found }
}

/// Views of all treatments; `is_over` for a run that ended by itself, which planned what it did.
fn treatment_views(
    plan: &Plan,
    sums: &[TreatmentSamples],
    trials: &[TrialView],
    fsync: &[FsyncView],
    is_over: bool,
) -> Vec<TreatmentView> {
    let planned = |index| {
        if is_over {
            let attempted = trials.iter().filter(|t| t.treatment == index);
            return attempted.map(|t| t.ordinal).collect::<BTreeSet<u32>>().len();
        }
        plan.trials.iter().filter(|t| t.treatment == index).count()
    };
    let pairing = Pairing::within(plan);
    (0..)
        .zip(plan.treatments.iter().zip(sums).zip(treatment::drifts(sums)))
        .map(|(index, ((treatment, sum), drift))| TreatmentView {
            drift,
            ..sum.view(index, treatment, planned(index), fsync, &pairing)
        })
        .collect()
}

fn session_view((_, session, end): (SessionId, SessionRecord, Option<SessionEnd>)) -> SessionView {
    let SessionRecord { started_at, host, storage, .. } = session;
    SessionView { started_at, end, host, storage }
}

/// Adds to each treatment its crash tests, and why its storage is not available.
fn add_crashes(view: &mut RunView) {
    let lacking = view.sessions.last().map(|s| s.storage.clone()).unwrap_or_default();
    for (shown, treatment) in view.treatments.iter_mut().zip(&view.plan.treatments) {
        let storage = lacking.iter().find(|s| s.not_available_here && s.name == treatment.storage);
        shown.unavailable = storage.filter(|_| shown.trials == 0).and_then(|s| s.failure.clone());
        shown.crash = crash_of(treatment, &view.plan.treatments, &view.crashes);
    }
    let is_done = |index: &usize| {
        view.crashes.iter().any(|crash| crash.treatment == Some(*index) && crash.complete)
    };
    let left = view.plan.crashed.iter().filter(|index| !is_done(index));
    let left = left.filter_map(|index| view.treatments.get(*index));
    let left = left.filter(|treatment| treatment.unavailable.is_none());
    view.run.not_crashed = left.map(|treatment| treatment.label.clone()).collect();
}

/// Finds the newest crash test of `treatment`, or of one that differs in its load only.
fn crash_of(
    treatment: &Treatment,
    all: &[Treatment],
    crashes: &[CrashView],
) -> Option<TreatmentCrash> {
    let is_its = |crash: &&CrashView| {
        crash
            .treatment
            .and_then(|index| all.get(index))
            .is_some_and(|other| treatment.is_crashed_alike(other))
    };
    let crash = crashes.iter().rfind(is_its)?;
    Some(TreatmentCrash {
        id: crash.id.clone(),
        verdict: crash.verdict,
        reason: crash.reason.clone(),
        acknowledged: crash.acknowledged,
        lost: crash.lost,
        gravest: crash.gravest.clone(),
        filesystems: crash.filesystems.clone(),
    })
}

fn state_of(trial: &TrialRecord, completed: &mut BTreeSet<u32>) -> TrialState {
    match &trial.failure {
        Some(_) => TrialState::Failed,
        None if completed.insert(trial.ordinal) => TrialState::Completed,
        None => TrialState::Superfluous,
    }
}

/// Returns the devices under a storage by kernel name.
///
/// The whole disk comes first, since the kernel counts no flushes of partitions.
fn devices<'a>(session: &'a SessionRecord, storage: &str) -> Vec<&'a str> {
    let facts = session.storage.iter().find(|s| s.name == storage);
    facts.into_iter().flat_map(|s| [s.disk.as_deref(), s.device.as_deref()]).flatten().collect()
}
