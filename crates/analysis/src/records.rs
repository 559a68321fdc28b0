//! Reads the records of a run, before anything is judged.
//!
//! [`RunData::read`] reads trials one at a time and keeps the samples of each treatment.
//! Comparisons of runs, and the noise of a host, need no more than this.

use std::collections::BTreeSet;

use pgdyno_model::crash::{CrashOutcome, FaultOutcome};
use pgdyno_model::record::{RunState, SessionEnd, SessionRecord};
use pgdyno_model::{CrashRecord, Plan, Treatment, TrialRecord};
use pgdyno_store::{SessionId, Store, StoreError, Thinning};

use crate::comparison::pairing::Pairing;
use crate::observations::Observations;
use crate::treatment::TreatmentSamples;
use crate::view::{
    FsyncView, GravestFault, RunHead, ServerView, SessionView, StageProbeView, TreatmentCrash,
    TreatmentView, TrialState, TrialView,
};
use crate::{stages, treatment, trial};

/// Run as the store holds it, without anything from other runs. The fields are those of
/// [`RunView`](crate::RunView).
pub(crate) struct RunData {
    pub(crate) head: RunHead,
    pub(crate) ad_hoc: bool,
    pub(crate) thinned: Vec<Thinning>,
    /// Treatments with their figures, not yet ranked.
    pub(crate) treatments: Vec<TreatmentView>,
    /// Samples of each treatment.
    pub(crate) sums: Vec<TreatmentSamples>,
    pub(crate) trials: Vec<TrialView>,
    pub(crate) observations: Observations,
    pub(crate) fsync: Vec<FsyncView>,
    pub(crate) probes: Vec<StageProbeView>,
    pub(crate) crashes: Vec<CrashRecord>,
    pub(crate) sessions: Vec<SessionView>,
    pub(crate) servers: Vec<ServerView>,
    pub(crate) plan: Plan,
    pub(crate) experiment: String,
    pub(crate) overrides: Vec<String>,
}

impl RunData {
    /// Reads `run`, named in full. Of several attempts at a trial the first completed one counts.
    pub(crate) fn read(store: &Store, run: &str) -> Result<Self, StoreError> {
        let record = store.run(run)?;
        store.check(run)?;
        let state = store.state(run)?;
        let stored_sessions = store.sessions(run)?;
        let fsync: Vec<FsyncView> = store.fsync_rates(run)?.iter().map(FsyncView::from).collect();
        let plan = record.plan;

        let mut completed = BTreeSet::new();
        let mut sums: Vec<_> =
            plan.treatments.iter().map(|_| TreatmentSamples::default()).collect();
        let mut trials = Vec::new();
        let mut servers = trial::Servers::default();
        let mut observations = Observations::default();
        for id in store.trial_ids(run)? {
            let (session, trial) = store.trial(id)?;
            let (Some(treatment), Some(sum)) =
                (plan.treatments.get(trial.treatment), sums.get_mut(trial.treatment))
            else {
                return Err(unknown_treatment(store, &trial));
            };
            let state = state_of(&trial, &mut completed);
            let session = stored_sessions.iter().position(|(id, ..)| *id == session);
            let devices = session
                .map(|i| devices(&stored_sessions[i].1, &treatment.storage))
                .unwrap_or_default();
            sum.add(&trial, state, treatment, &devices);
            observations.add(&trial, treatment);
            let server = servers.add(&trial);
            trials.push(trial::view(&trial, treatment, state, session, server, &devices));
        }
        // A run that may end by itself had to do what it did, once it has ended.
        let is_over = plan.stopping.is_some() && state == RunState::Completed;
        let crashes = store.crashes_of(run)?;
        let sessions: Vec<SessionView> = stored_sessions.into_iter().map(session_view).collect();
        let mut treatments = treatment_views(&plan, &sums, &trials, &fsync, is_over);
        add_crashes(&mut treatments, &plan, &crashes, sessions.last());
        let head = RunHead {
            id: record.id,
            recipe: record.recipe,
            host: store.host_name(run)?,
            state,
            question: plan.question.clone(),
            started_at: record.started_at,
            pgdyno_version: record.pgdyno_version,
            trials_planned: if is_over { completed.len() } else { plan.trials.len() },
            trials_completed: completed.len(),
            attempts_failed: trials.iter().filter(|t| t.state == TrialState::Failed).count(),
            not_crashed: not_crashed(&plan, &treatments, &crashes),
        };
        Ok(Self {
            head,
            ad_hoc: record.experiment.is_empty(),
            thinned: store.thinnings(run)?,
            treatments,
            sums,
            probes: stages::views(store, run, &trials)?,
            trials,
            observations,
            fsync,
            crashes,
            sessions,
            servers: servers.views(),
            plan,
            experiment: record.experiment,
            overrides: record.overrides,
        })
    }

    /// Returns the machines that its sessions ran on, as [`RunView::hosts`](crate::RunView::hosts).
    pub(crate) fn hosts(&self) -> Vec<String> {
        hosts(&self.head, &self.sessions)
    }
}

/// Names of the machines of `sessions`, each once, or the name that `pgdyno run --hosts` gave.
pub(crate) fn hosts(head: &RunHead, sessions: &[SessionView]) -> Vec<String> {
    if let Some(name) = &head.host {
        return vec![name.clone()];
    }
    let labels = sessions.iter().filter_map(|s| s.host.label());
    labels.map(str::to_owned).collect::<BTreeSet<_>>().into_iter().collect()
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

/// Adds to each treatment its crash tests, and why its storage is not available on the machine of
/// the `last` session.
fn add_crashes(
    treatments: &mut [TreatmentView],
    plan: &Plan,
    crashes: &[CrashRecord],
    last: Option<&SessionView>,
) {
    for (view, treatment) in treatments.iter_mut().zip(&plan.treatments) {
        let mut storages = last.into_iter().flat_map(|session| &session.storage);
        let storage = storages.find(|s| s.not_available_here && s.name == treatment.storage);
        view.unavailable = storage.filter(|_| view.trials == 0).and_then(|s| s.failure.clone());
        view.crash = crash_of(treatment, &plan.treatments, crashes);
    }
}

/// Returns the labels of treatments whose crash tests were asked for and are not done to the end.
fn not_crashed(plan: &Plan, treatments: &[TreatmentView], crashes: &[CrashRecord]) -> Vec<String> {
    let is_done = |index: &usize| {
        crashes.iter().any(|crash| crash.treatment == Some(*index) && crash.outcome.complete)
    };
    let left = plan.crashed.iter().filter(|index| !is_done(index));
    let left = left.filter_map(|index| treatments.get(*index));
    let left = left.filter(|treatment| treatment.unavailable.is_none());
    left.map(|treatment| treatment.label.clone()).collect()
}

/// Finds the newest crash test of `treatment`, or of one that differs in its load only.
fn crash_of(
    treatment: &Treatment,
    all: &[Treatment],
    crashes: &[CrashRecord],
) -> Option<TreatmentCrash> {
    let is_its = |crash: &&CrashRecord| {
        crash
            .treatment
            .and_then(|index| all.get(index))
            .is_some_and(|other| treatment.is_crashed_alike(other))
    };
    let crash = crashes.iter().rfind(is_its)?;
    let CrashOutcome { verdict, reason, faults, .. } = &crash.outcome;
    Some(TreatmentCrash {
        id: crash.id.clone(),
        verdict: *verdict,
        reason: reason.clone(),
        acknowledged: faults.iter().map(FaultOutcome::acknowledged).sum(),
        lost: faults.iter().map(FaultOutcome::lost).sum(),
        gravest: GravestFault::find(&crash.outcome),
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
