//! One session of a run. Everything is checked and made before anything is stored.

use std::time::{Duration, Instant};

use crate::error::{LabError, NOT_STOPPED};
use pgdyno_crash::{Subject, check_log_rooms, crash_treatment};
use pgdyno_exec::account::server_account;
use pgdyno_exec::process::current_owner;
use pgdyno_experiment::ResolvedExperiment;
use pgdyno_experiment::checks::crash::refuse_plug;
use pgdyno_experiment::redact;
use pgdyno_facts as facts;
use pgdyno_model::experiment::{Length, ProbeKind};
use pgdyno_model::live::LiveRun;
use pgdyno_model::progress::{Activity, Event, Notice, Warning};
use pgdyno_model::record::{RunRecord, SessionEnd, SessionRecord};
use pgdyno_model::units::Epoch;
use pgdyno_model::{PlannedTrial, TrialRecord};
use pgdyno_storage::probe;
use pgdyno_store::{SessionId, Store};

use super::cluster_pool::ClusterPool;
use super::remaining_time::Clock;
use super::storage_pool::StoragePool;
use super::storage_probes::StorageProbes;
use super::trial::{Attempt, Trial};
use super::trial_scheduler::{NextTrial, TrialScheduler};
use crate::live::Feed;
use pgdyno_provision::BenchError;
use pgdyno_provision::Context;
use pgdyno_provision::programs::install_programs;
use pgdyno_provision::provisioner::Provisioner;
use pgdyno_provision::serials;
use pgdyno_provision::{new_record_id, stem};

/// The longest window of a conditioning trial, which is not measured.
const LONGEST_CONDITIONING: Duration = Duration::from_secs(30);

/// The result of a session of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The run's id in the store.
    pub run: String,
    /// How the session ended.
    pub end: SessionEnd,
    /// Trials that failed in this session, and treatments whose crash tests were not done to the
    /// end (count).
    pub failed: u32,
    /// Treatments among `failed` (count).
    pub not_crashed: u32,
}

/// A run at work.
pub(super) struct RunSession<'a> {
    resolved: &'a ResolvedExperiment,
    context: Context<'a>,
    store: &'a mut Store,
    run: String,
    session: SessionId,
    todo: Vec<PlannedTrial>,
    pool: ClusterPool<'a>,
    feed: &'a Feed<'a>,
}

/// A run to resume.
pub(super) struct Continued<'a> {
    pub(super) run: &'a str,
    /// All overrides that give the run more repeats; none if its plan stays as it was.
    pub(super) extension: Option<Vec<String>>,
    /// Whether the run needs no more trials.
    pub(super) are_trials_over: bool,
}

impl<'a> RunSession<'a> {
    /// Checks and makes all that the trials need, then begins run and session in the store.
    pub(super) fn begin(
        resolved: &'a ResolvedExperiment,
        continued: Option<Continued<'_>>,
        store: &'a mut Store,
        context: Context<'a>,
        feed: &'a Feed<'a>,
    ) -> Result<Self, BenchError> {
        for notice in &resolved.notices {
            context.note(notice.clone());
        }
        refuse_plug(&resolved.experiment)?;
        check_log_rooms(resolved)?;
        let mut todo = resolved.plan.trials.clone();
        if let Some(Continued { run, are_trials_over, .. }) = continued.as_ref() {
            let complete = store.completed_trials(run)?;
            todo.retain(|trial| !are_trials_over && !complete.contains(&trial.ordinal));
            if todo.is_empty() && crashes_left(resolved, store, run)?.is_empty() {
                return Err(LabError::Complete { run: (*run).to_owned() }.into());
            }
        }
        let pool = provide(resolved, context)
            .map_err(|e| if context.is_stopped() { BenchError::Interrupted } else { e })?;
        todo.retain(|trial| {
            !pool.is_unavailable(&resolved.plan.treatments[trial.treatment].storage)
        });
        let record = SessionRecord {
            started_at: Epoch::now(),
            owner: current_owner().map_err(pgdyno_exec::journal::JournalError::Owner)?,
            host: facts::host(),
            storage: pool.facts(),
        };
        let run = match continued {
            Some(Continued { run, extension, .. }) => {
                if let Some(overrides) = extension {
                    store.extend_run(run, record.started_at, &overrides, &resolved.plan)?;
                }
                run.to_owned()
            }
            None => {
                if resolved.experiment.seed.is_none() {
                    context.note(Notice::SeedDrawn(resolved.plan.seed));
                }
                let run = new_run(resolved, record.started_at);
                store.begin_run(&run)?;
                run.id
            }
        };
        let session = store.begin_session(&run, &record)?;
        let live = live_run(resolved, &run, &record, &todo);
        let (trials, store_path) = (todo.len(), store.path().to_owned());
        context.event(&Event::Begun { run: live, trials, store: store_path });
        Ok(Self { resolved, context, store, run, session, todo, pool, feed })
    }

    /// Runs every trial that is left, then takes everything down.
    pub(super) fn work(mut self) -> Result<Outcome, BenchError> {
        let worked = self.work_through();
        let end = match &worked {
            Ok((0, 0)) => SessionEnd::Completed,
            Err(BenchError::Interrupted) => SessionEnd::Interrupted,
            Ok(_) | Err(_) => SessionEnd::Failed,
        };
        // The store first: a take-down that hangs or fails must not cost the word on how the
        // session ended.
        self.store.end_session(self.session, end)?;
        let Self { pool, context, run, .. } = self;
        context.event(&Event::TakingDown);
        context.warn_left(pool.take_down(context));
        match worked {
            Ok((trials, not_crashed)) => {
                Ok(Outcome { run, end, failed: trials + not_crashed, not_crashed })
            }
            Err(BenchError::Interrupted) => Ok(Outcome { run, end, failed: 0, not_crashed: 0 }),
            Err(e) => Err(e),
        }
    }

    /// Runs probes, trials, probes again, and crash tests. Returns how many trials failed, and how
    /// many crash tests were not done to the end.
    fn work_through(&mut self) -> Result<(u32, u32), BenchError> {
        let probes = &self.resolved.experiment.probe;
        self.measure_fsync_rates()?;
        self.probe_storages(&probes.before, false)?;
        let failed = self.trials()?;
        if !probes.after.is_empty() || probes.after_trim {
            self.pool.stop_all()?;
            self.probe_storages(&probes.after, false)?;
        }
        if probes.after_trim {
            self.probe_storages(&[ProbeKind::Disk], true)?;
        }
        Ok((failed, self.crash()?))
    }

    /// Crashes every treatment that was not crashed to the end yet, on storages and servers of its
    /// own. Returns how many could not be. Treatments whose storage is not available here have no
    /// trial either.
    fn crash(&mut self) -> Result<u32, BenchError> {
        let mut left = crashes_left(self.resolved, self.store, &self.run)?;
        let treatments = &self.resolved.plan.treatments;
        left.retain(|index| !self.pool.is_unavailable(&treatments[*index].storage));
        if left.is_empty() {
            return Ok(0);
        }
        let (resolved, context) = (self.resolved, self.context);
        let mut failed = 0;
        context.warn_left(self.pool.clear());
        for index in left {
            self.check_stop()?;
            let treatment = &resolved.plan.treatments[index];
            let subject = Subject::new(resolved, treatment, context)?;
            let id = new_record_id("crash", Epoch::now());
            let worked = crash_treatment(&subject, &id, &self.run, index, context);
            let mut record = match worked {
                Ok(record) => record,
                Err(e) if context.is_stopped() => return Err(e),
                Err(e) => {
                    failed += 1;
                    let (subject, reason) = (subject.name.clone(), e.failure());
                    context.warn(Warning::NotCrashed { subject, reason });
                    continue;
                }
            };
            failed += u32::from(!record.outcome.complete);
            record.run = Some(self.run.clone());
            record.treatment = Some(index);
            self.store.add_crash(Some(self.session), &record)?;
        }
        Ok(failed)
    }

    /// Probes every storage; if `trimmed`, after its free blocks were discarded. Leaves out a
    /// storage that cannot discard them, with a notice.
    fn probe_storages(&mut self, kinds: &[ProbeKind], trimmed: bool) -> Result<(), BenchError> {
        if kinds.is_empty() {
            return Ok(());
        }
        let stages = &self.resolved.experiment.probe;
        for name in self.pool.usable_storages() {
            self.check_stop()?;
            self.pool.ensure_mounted(&name)?;
            let (directory, context) = (&self.pool.path(&name)?, self.context);
            if trimmed && let Err(error) = self.pool.discard(&name) {
                let reason = error.failure();
                context.note(Notice::NotTrimmed { storage: name, reason });
                continue;
            }
            let probes = StorageProbes { kinds, stages, trimmed, name: &name, directory, context };
            probes.run(self.store, &self.run, self.session)?;
        }
        Ok(())
    }

    /// Measures the fsync rate of every storage.
    fn measure_fsync_rates(&mut self) -> Result<(), BenchError> {
        let (time, context) = (self.resolved.experiment.telemetry.fsync.0, self.context);
        if time.is_zero() {
            return Ok(());
        }
        for name in self.pool.usable_storages() {
            self.pool.ensure_mounted(&name)?;
            let path = self.pool.path(&name)?;
            context.begin(Activity::MeasuringFsyncRate { storage: name.clone() });
            let rate = probe::fsync_rate(&name, &path, time, context.journal, context.stop);
            context.check_stop()?;
            self.store.add_fsync_rate(&self.run, self.session, &rate?)?;
        }
        Ok(())
    }

    /// Fails once a signal asked to stop, or somebody asked the run to end after a trial.
    fn check_stop(&self) -> Result<(), BenchError> {
        self.context.check_stop()?;
        if self.feed.is_asked_to_stop() { Err(BenchError::Interrupted) } else { Ok(()) }
    }

    /// Runs every trial in order. Returns how many failed.
    fn trials(&mut self) -> Result<u32, BenchError> {
        let mut failed = 0;
        let mut clock = Clock::new(self.resolved);
        let todo = std::mem::take(&mut self.todo);
        if let (Some(why), Some(first)) = (self.resolved.plan.conditioning, todo.first()) {
            self.context.note(Notice::Conditioning(why));
            self.condition(*first)?;
        }
        let mut scheduler =
            TrialScheduler::new(&self.resolved.plan, &self.store.trials(&self.run)?);
        for (done, planned) in todo.iter().enumerate() {
            if let Some(outlook) = scheduler.outlook(*planned) {
                self.context.event(&Event::Outlook(outlook));
            }
            match scheduler.next(*planned, clock.left(1, Duration::ZERO)) {
                NextTrial::Run => {}
                NextTrial::Skip => continue,
                NextTrial::End(reason) => {
                    self.context.note(Notice::RunEnds(reason));
                    break;
                }
            }
            let mut retries = self.resolved.experiment.generators.retry;
            loop {
                let attempt =
                    self.attempt(*planned, todo.len() - done, &mut clock, &mut scheduler)?;
                if !(attempt.may_pass && retries > 0) {
                    failed += u32::from(attempt.record.failure.is_some());
                    break;
                }
                retries -= 1;
                self.context.note(Notice::TriedAgain { left: retries });
            }
        }
        Ok(failed)
    }

    /// Runs a trial like `first`, with a window of at most 30 s, and stores nothing of it: on this
    /// host the first trial of a run differs from those after it.
    fn condition(&mut self, first: PlannedTrial) -> Result<(), BenchError> {
        let mut resolved = self.resolved.clone();
        if let Length::Duration(window) = &mut resolved.plan.length {
            window.0 = window.0.min(LONGEST_CONDITIONING);
        }
        self.context.begin(Activity::Conditioning);
        let failure = self.executed(&resolved, first, &|_| Duration::ZERO)?.record.failure;
        if let Some(reason) = failure {
            self.context.warn(Warning::NotConditioned { reason });
        }
        Ok(())
    }

    /// Runs the trial `planned` and stores its record. With this one, `todo` trials are left.
    fn attempt(
        &mut self,
        planned: PlannedTrial,
        todo: usize,
        clock: &mut Clock,
        scheduler: &mut TrialScheduler<'_>,
    ) -> Result<Attempt, BenchError> {
        let began = Instant::now();
        let budget = scheduler.left();
        let within = |left: Duration, spent: Duration| {
            budget.map_or(left, |budget| left.min(budget.saturating_sub(spent)))
        };
        let attempt = self.trial(planned, &|spent| within(clock.left(todo, spent), spent))?;
        let record = &attempt.record;
        self.store.add_trial(&self.run, self.session, record)?;
        clock.trial(began.elapsed());
        scheduler.add(record, began.elapsed());
        let complete = record.measurement.as_ref().filter(|_| record.failure.is_none());
        self.context.event(&Event::TrialDone {
            ordinal: planned.ordinal,
            tps: complete.and_then(pgdyno_model::Measurement::compared),
            latency_us_p99: complete.and_then(|m| m.latency.quantile_us(0.99)),
            failure: record.failure.clone(),
            left: within(clock.left(todo - 1, Duration::ZERO), began.elapsed()),
        });
        Ok(attempt)
    }

    fn trial(
        &mut self,
        planned: PlannedTrial,
        left: &(dyn Fn(Duration) -> Duration + Sync),
    ) -> Result<Attempt, BenchError> {
        self.check_stop()?;
        let (at, left_now) = (Epoch::now(), left(Duration::ZERO));
        self.context.event(&Event::Trial { planned, at, left: left_now });
        self.executed(self.resolved, planned, left)
    }

    /// Executes a trial as `resolved` has it.
    fn executed(
        &mut self,
        resolved: &ResolvedExperiment,
        planned: PlannedTrial,
        left: &(dyn Fn(Duration) -> Duration + Sync),
    ) -> Result<Attempt, BenchError> {
        let treatment = &self.resolved.plan.treatments[planned.treatment];
        let context = self.context;
        let trial = Trial { resolved, planned, treatment, context, left };
        let begun = trial.new_record();
        let mut attempt = match self.pool.ready(treatment) {
            Ok(ready) => trial.run(ready)?,
            Err(_) if context.is_stopped() => return Err(BenchError::Interrupted),
            Err(e) => {
                let record = TrialRecord { failure: Some(e.failure()), ..begun };
                Attempt { record, may_pass: false }
            }
        };
        if let Some(failure) = &mut attempt.record.failure {
            self.pool.name_full_directory(treatment, failure);
        }
        Ok(attempt)
    }
}

/// Returns the first record for watchers of the run. Trials that are not in `todo` are done, or
/// this machine lacks their storage.
fn live_run(
    resolved: &ResolvedExperiment,
    run: &str,
    session: &SessionRecord,
    todo: &[PlannedTrial],
) -> LiveRun {
    let plan = &resolved.plan;
    let is_left = |ordinal: u32| todo.iter().any(|planned| planned.ordinal == ordinal);
    LiveRun {
        schema: LiveRun::SCHEMA.to_owned(),
        run: run.to_owned(),
        recipe: resolved.experiment.name.clone(),
        question: plan.question.clone(),
        started_at: session.started_at,
        owner: session.owner.clone(),
        treatments: plan.treatments.iter().map(|t| t.levels.to_string()).collect(),
        trials: plan.trials.clone(),
        done: plan.trials.iter().map(|t| t.ordinal).filter(|o| !is_left(*o)).collect(),
        warm_up_s: plan.warm_up.0.as_secs_f64(),
        window_s: match plan.length {
            Length::Duration(window) => Some(window.0.as_secs_f64()),
            Length::Transactions(_) => None,
        },
        is_open_ended: plan.stopping.is_some(),
    }
}

/// Returns the treatments that `[crash]` asks to crash and that were not crashed to the end yet. Of
/// treatments that are crashed alike, returns the first.
fn crashes_left(
    resolved: &ResolvedExperiment,
    store: &Store,
    run: &str,
) -> Result<Vec<usize>, BenchError> {
    let mut left = resolved.plan.crashed.clone();
    for done in store.crashes_of(run)?.into_iter().filter(|crash| crash.outcome.complete) {
        left.retain(|index| Some(*index) != done.treatment);
    }
    Ok(left)
}

/// Provides servers and the storages that they lie on, after every check that can be made before
/// anything is measured.
fn provide<'a>(
    resolved: &'a ResolvedExperiment,
    context: Context<'a>,
) -> Result<ClusterPool<'a>, BenchError> {
    let is_external = resolved.experiment.postgres.is_external();
    if resolved.experiment.between.drop_caches {
        if is_external {
            return Err(LabError::DropCaches(NOT_STOPPED).into());
        }
        if !pgdyno_exec::caches::is_root() {
            return Err(LabError::DropCaches("that needs root").into());
        }
    }
    let provisioner = Provisioner {
        account: server_account()?,
        wipe: resolved.wipe.clone(),
        serials: serials(resolved),
        context,
    };
    if is_external {
        return ClusterPool::connect_external(resolved, provisioner);
    }
    let storages = StoragePool::new(resolved);
    storages.check_directories(&provisioner)?;
    let installs = install_programs(resolved, &provisioner.account, context)?;
    ClusterPool::make(resolved, installs, storages, provisioner)
}

fn new_run(resolved: &ResolvedExperiment, started_at: Epoch) -> RunRecord {
    let folder =
        std::path::absolute(&resolved.source.base).unwrap_or_else(|_| resolved.source.base.clone());
    RunRecord {
        id: new_record_id(&stem(&resolved.plan.name), started_at),
        recipe: resolved.source.name.clone(),
        started_at,
        pgdyno_version: env!("CARGO_PKG_VERSION").to_owned(),
        experiment: redact::document(&resolved.source.text),
        folder: folder.display().to_string(),
        overrides: resolved.overrides.iter().map(|o| o.given.clone()).collect(),
        plan: resolved.plan.clone(),
    }
}
