//! Stores that hold such records.

use pgdyno_analysis::{RunView, analyse};
use pgdyno_model::crash::Failing;
use pgdyno_model::record::{SessionEnd, SessionRecord};
use pgdyno_model::{CrashRecord, Plan, ProbeRecord, RunRecord, TrialRecord, Verdict};
use pgdyno_store::Store;

use super::crash::crash_record;
use super::probes::fsync_probe;
use super::{RUN, failed_trial, fsync_rate, run_record, session_record, trial};

/// A store in a folder of its own.
pub fn store() -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path().join("deep/er/store.db")).unwrap();
    (folder, store)
}

/// A store with the whole run of `plan`, as [`fill`] has it.
pub fn filled(plan: Plan, failing: Option<u32>) -> (tempfile::TempDir, Store) {
    let (folder, mut store) = store();
    fill(&mut store, &run_record(plan), failing);
    (folder, store)
}

/// Analyses a run of `plan` in a store of its own, each trial after `change`.
pub fn analysed_run(plan: Plan, change: impl Fn(&mut TrialRecord)) -> RunView {
    fill_with(&mut store().1, &run_record(plan), change)
}

/// The whole run: 4 treatments × 3 trials, of which `failing` (an ordinal) failed.
pub fn fill(store: &mut Store, record: &RunRecord, failing: Option<u32>) {
    store.begin_run(record).unwrap();
    let session = store.begin_session(&record.id, &session_record()).unwrap();
    store.add_fsync_rate(&record.id, session, &fsync_rate()).unwrap();
    let probe = fsync_probe();
    // Tests that fill one store with several runs need a probe's name for each.
    let id = if record.id == RUN { probe.id.clone() } else { format!("fsync-{}", record.id) };
    let probe = ProbeRecord { id, run: Some(record.id.clone()), ..probe };
    store.add_probe(Some(session), &probe).unwrap();
    for (number, verdict) in (0..).zip([Verdict::Pass, Verdict::Fail(Failing::Lost)]) {
        let crash = crash_record(number, verdict);
        let id = if record.id == RUN {
            crash.id.clone()
        } else {
            format!("crash-{number}-{}", record.id)
        };
        let crash = CrashRecord { id, run: Some(record.id.clone()), ..crash };
        store.add_crash(Some(session), &crash).unwrap();
    }
    for planned in &record.plan.trials {
        let trial = if failing == Some(planned.ordinal) {
            failed_trial(*planned)
        } else {
            trial(&record.plan, *planned)
        };
        store.add_trial(&record.id, session, &trial).unwrap();
    }
    let end = if failing.is_some() { SessionEnd::Failed } else { SessionEnd::Completed };
    store.end_session(session, end).unwrap();
}

/// A whole run whose trials are what [`trial`] makes of them, each after `change`; analysed.
pub fn fill_with(
    store: &mut Store,
    record: &RunRecord,
    change: impl Fn(&mut TrialRecord),
) -> RunView {
    fill_on(store, record, &session_record(), change)
}

/// Fills `store` with the trials of `record`, in one session that began as `session` says. Each
/// trial is changed by `change`. Returns the analysed run.
pub fn fill_on(
    store: &mut Store,
    record: &RunRecord,
    session: &SessionRecord,
    change: impl Fn(&mut TrialRecord),
) -> RunView {
    let trials = record.plan.trials.iter().map(|planned| {
        let mut t = trial(&record.plan, *planned);
        change(&mut t);
        t
    });
    add_run(store, record, session, SessionEnd::Completed, trials)
}

/// Stores a run with these trials, in one session that began and ended as is said. Returns the
/// analysed run.
pub fn add_run(
    store: &mut Store,
    record: &RunRecord,
    session: &SessionRecord,
    end: SessionEnd,
    trials: impl IntoIterator<Item = TrialRecord>,
) -> RunView {
    store.begin_run(record).unwrap();
    let session = store.begin_session(&record.id, session).unwrap();
    for trial in trials {
        store.add_trial(&record.id, session, &trial).unwrap();
    }
    store.end_session(session, end).unwrap();
    analyse(store, &record.id).unwrap()
}
