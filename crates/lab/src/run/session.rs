//! One stretch of work on a run: everything is checked and made before the store hears of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use pgdyno_host::{Journal, current_owner, facts, probe, server_account};
use pgdyno_model::experiment::ProbeKind;
use pgdyno_model::record::{RunRecord, SessionEnd, SessionRecord};
use pgdyno_model::units::Epoch;
use pgdyno_model::{PlannedTrial, TrialRecord};
use pgdyno_results::store::{SessionId, Store};

use super::Outcome;
use super::course::{Course, Step};
use super::places::Places;
use super::provision::{Bench, installs};
use super::stage::Stage;
use super::trial::Trial;
use crate::LabError;
use crate::crash;
use crate::estimate::Clock;
use crate::prepare::Prepared;
use crate::redact;
use pgdyno_model::progress::{Event, Progress};

/// A run at work.
pub(super) struct Session<'a> {
    prepared: &'a Prepared,
    progress: &'a dyn Progress,
    stop: &'a AtomicBool,
    journal: &'a Journal,
    store: &'a mut Store,
    run: String,
    session: SessionId,
    todo: Vec<PlannedTrial>,
    bench: Bench,
}

/// A run that is gone on with.
pub(super) struct Continued<'a> {
    pub(super) run: &'a str,
    /// The overrides that give it more repeats, all of them; none where its plan stays as it was.
    pub(super) extension: Option<Vec<String>>,
    /// Whether it needs no more trials.
    pub(super) are_trials_over: bool,
}

impl<'a> Session<'a> {
    /// Checks and makes all that the trials need, then begins run and session in the store.
    pub(super) fn begin(
        prepared: &'a Prepared,
        continued: Option<Continued<'_>>,
        store: &'a mut Store,
        journal: &'a Journal,
        progress: &'a dyn Progress,
        stop: &'a AtomicBool,
    ) -> Result<Self, LabError> {
        for note in &prepared.notes {
            progress.event(&Event::Note(note.clone()));
        }
        crash::not_by_hand(prepared)?;
        let mut todo = prepared.plan.trials.clone();
        if let Some(Continued { run, are_trials_over, .. }) = continued.as_ref() {
            let complete = store.completed_trials(run)?;
            todo.retain(|trial| !are_trials_over && !complete.contains(&trial.ordinal));
            if todo.is_empty() && crashes_left(prepared, store, run)?.is_empty() {
                return Err(LabError::NothingToResume { run: (*run).to_owned() });
            }
        }
        let bench = provide(prepared, journal, progress, stop)
            .map_err(|e| if stop.load(Ordering::Relaxed) { LabError::Interrupted } else { e })?;
        todo.retain(|trial| {
            let storage = &prepared.plan.treatments[trial.treatment].storage;
            !bench.is_unavailable(prepared, storage)
        });
        let record = SessionRecord {
            started_at: Epoch::of(SystemTime::now()),
            owner: current_owner().map_err(pgdyno_host::JournalError::Owner)?,
            host: facts::host(),
            storage: bench.facts(prepared),
        };
        let run = match continued {
            Some(Continued { run, extension, .. }) => {
                if let Some(overrides) = extension {
                    store.extend_run(run, record.started_at, &overrides, &prepared.plan)?;
                }
                run.to_owned()
            }
            None => {
                if prepared.experiment.seed.is_none() {
                    let seed = prepared.plan.seed;
                    let note = format!(
                        "seed {seed} was drawn for order and load; `--set experiment.seed={seed}` repeats them"
                    );
                    progress.event(&Event::Note(note));
                }
                let run = new_run(prepared, record.started_at);
                store.begin_run(&run)?;
                run.id
            }
        };
        let session = store.begin_session(&run, &record)?;
        progress.event(&Event::Begun { run: &run, trials: todo.len(), store: store.path() });
        Ok(Self { prepared, progress, stop, journal, store, run, session, todo, bench })
    }

    /// Runs every trial that is left, then takes everything down.
    pub(super) fn work(mut self) -> Result<Outcome, LabError> {
        let worked = self.work_through();
        let end = match &worked {
            Ok((0, 0)) => SessionEnd::Completed,
            Err(LabError::Interrupted) => SessionEnd::Interrupted,
            Ok(_) | Err(_) => SessionEnd::Failed,
        };
        // The store first: a take-down that hangs or fails must not cost the word on how the
        // session ended.
        self.store.end_session(self.session, end)?;
        self.progress.event(&Event::TakingDown);
        let Self { bench, progress, run, .. } = self;
        for left in bench.take_down() {
            progress.event(&Event::Warning(left));
        }
        match worked {
            Ok((trials, not_crashed)) => {
                Ok(Outcome { run, end, failed: trials + not_crashed, not_crashed })
            }
            Err(LabError::Interrupted) => Ok(Outcome { run, end, failed: 0, not_crashed: 0 }),
            Err(e) => Err(e),
        }
    }

    /// Probes, trials, probes, crash tests; how many trials failed, and crash tests were not done
    /// to the end.
    fn work_through(&mut self) -> Result<(u32, u32), LabError> {
        let probes = &self.prepared.experiment.probe;
        self.probe()?;
        self.stage(&probes.before)?;
        let failed = self.trials()?;
        if !probes.after.is_empty() {
            self.bench.rest()?;
            self.stage(&probes.after)?;
        }
        Ok((failed, self.crash()?))
    }

    /// Crashes every treatment that was not crashed to the end yet, on storages and servers of its
    /// own; how many could not be.
    fn crash(&mut self) -> Result<u32, LabError> {
        let left = crashes_left(self.prepared, self.store, &self.run)?;
        if left.is_empty() {
            return Ok(0);
        }
        let mut failed = 0;
        for left in self.bench.clear() {
            self.progress.event(&Event::Warning(left));
        }
        let Self { prepared, journal, progress, stop, .. } = *self;
        for index in left {
            let treatment = &prepared.plan.treatments[index];
            let subject = crash::subject(prepared, treatment, progress, stop)?;
            let id = id_of("crash", Epoch::of(SystemTime::now()));
            let worked = crash::Session::new(&subject, &id, journal, progress, stop).work();
            let mut record = match worked {
                Ok(record) => record,
                Err(e) if stop.load(Ordering::Relaxed) => return Err(e),
                Err(e) => {
                    failed += 1;
                    let note = format!("{} could not be crashed: {}", subject.name, e.in_words());
                    progress.event(&Event::Warning(note));
                    continue;
                }
            };
            failed += u32::from(!record.outcome.complete);
            record.run = Some(self.run.clone());
            record.treatment = Some(index);
            self.store.add_crash(Some(self.session), &record)?;
            if stop.load(Ordering::Relaxed) {
                return Err(LabError::Interrupted);
            }
        }
        Ok(failed)
    }

    fn stage(&mut self, kinds: &[ProbeKind]) -> Result<(), LabError> {
        if kinds.is_empty() {
            return Ok(());
        }
        let Self { prepared, journal, progress, stop, .. } = *self;
        let stages = &prepared.experiment.probe;
        for name in self.bench.usable(prepared) {
            self.bench.stand(prepared, &name, progress, stop)?;
            let directory = &self.bench.path(&name)?;
            let stage = Stage { kinds, stages, name: &name, directory, journal, progress, stop };
            stage.perform(self.store, &self.run, self.session)?;
        }
        Ok(())
    }

    /// The fsync rate of every storage.
    fn probe(&mut self) -> Result<(), LabError> {
        let time = self.prepared.experiment.telemetry.fsync.0;
        if time.is_zero() {
            return Ok(());
        }
        for name in self.bench.usable(self.prepared) {
            self.bench.stand(self.prepared, &name, self.progress, self.stop)?;
            let path = self.bench.path(&name)?;
            let what = format!("measuring the fsync rate of {name}");
            self.progress.event(&Event::Working { what, share: None });
            let rate = probe::fsync_rate(&name, &path, time, self.journal, self.stop);
            if self.stop.load(Ordering::Relaxed) {
                return Err(LabError::Interrupted);
            }
            self.store.add_fsync_rate(&self.run, self.session, &rate?)?;
        }
        Ok(())
    }

    /// Every trial in order; the number of those that failed.
    fn trials(&mut self) -> Result<u32, LabError> {
        let mut failed = 0;
        let mut clock = Clock::new(self.prepared);
        let all = self.prepared.plan.trials.len();
        let todo = std::mem::take(&mut self.todo);
        let mut course = Course::new(&self.prepared.plan, &self.store.trials(&self.run)?);
        for (done, planned) in todo.iter().enumerate() {
            match course.step(*planned, clock.left(1, Duration::ZERO)) {
                Step::Run => {}
                Step::Skip => continue,
                Step::End(why) => {
                    self.progress.event(&Event::Note(format!("the run ends: {why}")));
                    break;
                }
            }
            let began = Instant::now();
            let budget = course.left();
            let within = |left: Duration, spent: Duration| {
                budget.map_or(left, |budget| left.min(budget.saturating_sub(spent)))
            };
            let left = |spent| within(clock.left(todo.len() - done, spent), spent);
            let record = self.trial(*planned, all, &left)?;
            self.store.add_trial(&self.run, self.session, &record)?;
            clock.trial(began.elapsed());
            course.add(&record, began.elapsed());
            failed += u32::from(record.failure.is_some());
            let complete = record.measurement.as_ref().filter(|_| record.failure.is_none());
            self.progress.event(&Event::TrialDone {
                tps: complete.and_then(pgdyno_model::Measurement::compared),
                latency_us_p99: complete.and_then(|m| m.latency.quantile_us(0.99)),
                failure: record.failure.as_deref(),
                left: within(clock.left(todo.len() - done - 1, Duration::ZERO), began.elapsed()),
            });
        }
        Ok(failed)
    }

    fn trial(
        &mut self,
        planned: PlannedTrial,
        of: usize,
        left: &(dyn Fn(Duration) -> Duration + Sync),
    ) -> Result<TrialRecord, LabError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(LabError::Interrupted);
        }
        let treatment = &self.prepared.plan.treatments[planned.treatment];
        let number = planned.ordinal as usize + 1;
        let levels = &treatment.levels;
        self.progress.event(&Event::Trial {
            number,
            of,
            levels,
            planned,
            left: left(Duration::ZERO),
        });
        let (prepared, progress, stop) = (self.prepared, self.progress, self.stop);
        let trial = Trial { prepared, planned, treatment, progress, stop, left };
        let mut record = trial.record();
        match self.bench.ready(prepared, treatment, progress, stop) {
            Ok(ready) => trial.run(ready),
            Err(_) if stop.load(Ordering::Relaxed) => Err(LabError::Interrupted),
            Err(e) => {
                record.failure = Some(e.in_words());
                Ok(record)
            }
        }
    }
}

/// The treatments that `[crash]` asks to crash and that were not to the end yet; of those that are
/// crashed alike the first.
fn crashes_left(prepared: &Prepared, store: &Store, run: &str) -> Result<Vec<usize>, LabError> {
    if prepared.experiment.crash.is_none() {
        return Ok(Vec::new());
    }
    let treatments = &prepared.plan.treatments;
    let done: Vec<usize> = store
        .crashes_of(run)?
        .into_iter()
        .filter(|crash| crash.outcome.complete)
        .filter_map(|crash| crash.treatment)
        .collect();
    let is_first = |index: &usize| {
        !treatments[..*index].iter().any(|t| t.is_crashed_alike(&treatments[*index]))
    };
    Ok((0..treatments.len()).filter(is_first).filter(|index| !done.contains(index)).collect())
}

/// Servers and the storages they lie on; everything checked that can be before anything is
/// measured.
fn provide(
    prepared: &Prepared,
    journal: &Journal,
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<Bench, LabError> {
    if prepared.experiment.postgres.is_external() {
        if prepared.experiment.between.drop_caches {
            return Err(LabError::DropCaches {
                why: "the server is not pgdyno's to stop meanwhile",
            });
        }
        return Bench::given(prepared, journal, progress);
    }
    if prepared.experiment.between.drop_caches && !pgdyno_host::caches::is_root() {
        return Err(LabError::DropCaches { why: "that needs root" });
    }
    let account = server_account()?;
    let places = Places::of(prepared, &account, journal);
    places.check_directories(prepared)?;
    let installs = installs(prepared, &account, progress, stop)?;
    Bench::make(prepared, installs, places, journal, progress, stop)
}

/// A run's id begins with the experiment's name, as far as file names and shells like it.
fn id_stem(name: &str) -> String {
    let stem: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "_-.".contains(c) { c } else { '-' })
        .collect();
    let stem = stem.trim_matches(['-', '.']);
    if stem.is_empty() { "run".to_owned() } else { stem.chars().take(60).collect() }
}

/// A name for the store.
pub(crate) fn id_of(stem: &str, started_at: Epoch) -> String {
    // 2026-11-21T06:48:13Z is 20261121-064813 here; four letters tell those of the same second
    // apart.
    let stamp: String = started_at.to_string().chars().filter(char::is_ascii_digit).collect();
    let (date, time) = stamp.split_at(stamp.len().min(8));
    let letters: String = std::iter::repeat_with(fastrand::lowercase).take(4).collect();
    format!("{stem}-{date}-{time}-{letters}")
}

fn new_run(prepared: &Prepared, started_at: Epoch) -> RunRecord {
    let folder =
        std::path::absolute(&prepared.source.base).unwrap_or_else(|_| prepared.source.base.clone());
    RunRecord {
        id: id_of(&id_stem(&prepared.plan.name), started_at),
        recipe: prepared.source.name.clone(),
        started_at,
        pgdyno_version: env!("CARGO_PKG_VERSION").to_owned(),
        experiment: redact::document(&prepared.source.text),
        folder: folder.display().to_string(),
        overrides: prepared.overrides.iter().map(|o| o.given.clone()).collect(),
        plan: prepared.plan.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_ids_can_be_file_names() {
        assert_eq!(id_stem("group-commit"), "group-commit");
        assert_eq!(id_stem("../what about: \"this\"?"), "what-about---this");
        assert_eq!(id_stem("…"), "run");
    }
}
