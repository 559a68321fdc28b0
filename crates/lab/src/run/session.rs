//! One stretch of work on a run: everything is checked and made before the store hears of it.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use pgdyno_host::{Journal, StorageDirectory, current_owner, probe, room, server_account};
use pgdyno_model::record::{RunRecord, SessionEnd, SessionRecord};
use pgdyno_model::units::{Bytes, Epoch};
use pgdyno_model::{PlannedTrial, TrialRecord};
use pgdyno_results::store::{SessionId, Store};

use super::Outcome;
use super::provision::{Bench, installs};
use super::trial::Trial;
use crate::LabError;
use crate::estimate::{self, Clock};
use crate::prepare::Prepared;
use crate::progress::{Event, Progress};
use crate::redact;

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
    // Dropped in this order: servers before the directories that hold them.
    bench: Bench,
    storages: BTreeMap<String, StorageDirectory>,
}

impl<'a> Session<'a> {
    /// Checks and makes all that the trials need, then begins run and session in the store.
    pub(super) fn begin(
        prepared: &'a Prepared,
        resumed: Option<&str>,
        store: &'a mut Store,
        journal: &'a Journal,
        progress: &'a dyn Progress,
        stop: &'a AtomicBool,
    ) -> Result<Self, LabError> {
        for note in &prepared.notes {
            progress.event(&Event::Note(note.clone()));
        }
        let mut todo = prepared.plan.trials.clone();
        if let Some(run) = resumed {
            let complete = store.completed_trials(run)?;
            todo.retain(|trial| !complete.contains(&trial.ordinal));
            if todo.is_empty() {
                return Err(LabError::NothingToResume { run: run.to_owned() });
            }
        }
        let (bench, storages) = provide(prepared, journal, progress, stop)
            .map_err(|e| if stop.load(Ordering::Relaxed) { LabError::Interrupted } else { e })?;
        let record = SessionRecord {
            started_at: Epoch::of(SystemTime::now()),
            owner: current_owner().map_err(pgdyno_host::JournalError::Owner)?,
            host: pgdyno_host::facts::host(),
            storage: storages
                .iter()
                .map(|(name, storage)| pgdyno_host::facts::storage(name, storage.path()))
                .collect::<Result<_, _>>()?,
        };
        let run = match resumed {
            Some(run) => run.to_owned(),
            None => {
                let run = new_run(prepared, record.started_at);
                store.begin_run(&run)?;
                run.id
            }
        };
        let session = store.begin_session(&run, &record)?;
        progress.event(&Event::Begun { run: &run, trials: todo.len(), store: store.path() });
        Ok(Self { prepared, progress, stop, journal, store, run, session, todo, bench, storages })
    }

    /// Runs every trial that is left, then takes everything down.
    pub(super) fn work(mut self) -> Result<Outcome, LabError> {
        let worked = self.probe().and_then(|()| self.trials());
        let end = match &worked {
            Ok(0) => SessionEnd::Completed,
            Err(LabError::Interrupted) => SessionEnd::Interrupted,
            Ok(_) | Err(_) => SessionEnd::Failed,
        };
        // The store first: a take-down that hangs or fails must not cost the word on how the session ended.
        self.store.end_session(self.session, end)?;
        self.progress.event(&Event::TakingDown);
        let Self { bench, storages, progress, run, .. } = self;
        for left in bench.take_down() {
            progress.event(&Event::Note(left));
        }
        drop(storages);
        match worked {
            Ok(failed) => Ok(Outcome { run, end, failed }),
            Err(LabError::Interrupted) => Ok(Outcome { run, end, failed: 0 }),
            Err(e) => Err(e),
        }
    }

    /// The fsync rate of every storage.
    fn probe(&mut self) -> Result<(), LabError> {
        let time = self.prepared.experiment.telemetry.fsync.0;
        if time.is_zero() {
            return Ok(());
        }
        for (name, storage) in &self.storages {
            let what = format!("measuring the fsync rate of {name}");
            self.progress.event(&Event::Working { what, share: None });
            let rate = probe::fsync_rate(name, storage.path(), time, self.journal, self.stop);
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
        for (done, planned) in todo.iter().enumerate() {
            let began = Instant::now();
            let record = self.trial(*planned, all, &|spent| clock.left(todo.len() - done, spent))?;
            self.store.add_trial(&self.run, self.session, &record)?;
            clock.trial(began.elapsed());
            failed += u32::from(record.failure.is_some());
            let complete = record.measurement.as_ref().filter(|_| record.failure.is_none());
            self.progress.event(&Event::TrialDone {
                tps: complete.and_then(pgdyno_model::Measurement::tps),
                latency_us_p99: complete.and_then(|m| m.latency.quantile_us(0.99)),
                failure: record.failure.as_deref(),
                left: clock.left(todo.len() - done - 1, Duration::ZERO),
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
        self.progress.event(&Event::Trial { number, of, levels, planned, left: left(Duration::ZERO) });
        let (prepared, progress, stop) = (self.prepared, self.progress, self.stop);
        let trial = Trial { prepared, planned, treatment, progress, stop, left };
        let mut record = trial.record();
        match self.bench.ready(prepared, treatment, progress, stop) {
            Ok(server) => trial.run(server),
            Err(_) if stop.load(Ordering::Relaxed) => Err(LabError::Interrupted),
            Err(e) => {
                record.failure = Some(e.in_words());
                Ok(record)
            }
        }
    }
}

/// Servers and the directories they lie in; everything checked that can be before anything is measured.
fn provide(
    prepared: &Prepared,
    journal: &Journal,
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<(Bench, BTreeMap<String, StorageDirectory>), LabError> {
    if prepared.experiment.postgres.dsn.is_some() {
        if prepared.experiment.between.drop_caches {
            return Err(LabError::DropCaches { why: "the server is not pgdyno's to stop meanwhile" });
        }
        return Ok((Bench::given(prepared, progress)?, BTreeMap::new()));
    }
    if prepared.experiment.between.drop_caches && !pgdyno_host::caches::is_root() {
        return Err(LabError::DropCaches { why: "that needs root" });
    }
    let account = server_account()?;
    let mut storages = BTreeMap::new();
    for name in prepared.storages() {
        let named = prepared.experiment.storage[name].directory.as_deref();
        storages.insert(name.to_owned(), StorageDirectory::open(named, &account)?);
    }
    check_room(prepared, &storages)?;
    let installs = installs(prepared, &account, progress, stop)?;
    let bench = Bench::make(prepared, &installs, &storages, journal, progress, stop)?;
    Ok((bench, storages))
}

/// Storages may share a filesystem: what they need there counts together.
fn check_room(prepared: &Prepared, storages: &BTreeMap<String, StorageDirectory>) -> Result<(), LabError> {
    let mut needed_on: BTreeMap<u64, u64> = BTreeMap::new();
    for (name, (needed, what)) in estimate::room(prepared) {
        let directory: &Path = storages[&name].path();
        // A directory that was just opened can be asked; if not, it is counted by itself.
        let device = std::fs::metadata(directory).map_or(0, |m| m.dev());
        let total = needed_on.entry(device).or_default();
        *total = total.saturating_add(needed.0);
        let (needed, available) = (Bytes(*total), room(directory)?);
        if available < needed {
            let directory = directory.to_owned();
            return Err(LabError::NoRoom { what, storage: name, directory, needed, available });
        }
    }
    Ok(())
}

/// A run's id begins with the experiment's name, as far as file names and shells like it.
fn id_stem(name: &str) -> String {
    let stem: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || "_-.".contains(c) { c } else { '-' }).collect();
    let stem = stem.trim_matches(['-', '.']);
    if stem.is_empty() { "run".to_owned() } else { stem.chars().take(60).collect() }
}

fn new_run(prepared: &Prepared, started_at: Epoch) -> RunRecord {
    // 2026-11-21T06:48:13Z is 20261121-064813 here; four letters tell runs of the same second apart.
    let stamp: String = started_at.to_string().chars().filter(char::is_ascii_digit).collect();
    let (date, time) = stamp.split_at(stamp.len().min(8));
    let letters: String = std::iter::repeat_with(fastrand::lowercase).take(4).collect();
    let dsn = prepared.experiment.postgres.dsn.as_ref();
    let folder = std::path::absolute(&prepared.source.base).unwrap_or_else(|_| prepared.source.base.clone());
    RunRecord {
        id: format!("{}-{date}-{time}-{letters}", id_stem(&prepared.plan.name)),
        recipe: prepared.source.name.clone(),
        started_at,
        pgdyno_version: env!("CARGO_PKG_VERSION").to_owned(),
        experiment: redact::dsn(&prepared.source.text, dsn),
        folder: folder.display().to_string(),
        overrides: prepared.overrides.iter().map(|o| redact::dsn(&o.given, dsn)).collect(),
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
