//! Integration tests of the crate `crash`, one module for each subject.
#![allow(clippy::unwrap_used, reason = "tests and their helpers fail by panicking")]

mod login;
mod rounds;
mod tprocc;
mod verify;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use pgdyno_crash::{Interference, crash};
use pgdyno_experiment::ResolvedExperiment;
use pgdyno_experiment::file::Source;
use pgdyno_model::crash::{CheckOutcome, Round};
use pgdyno_model::progress::Silent;
use pgdyno_model::{CrashRecord, Verdict};
use pgdyno_provision::ThisHost;
use pgdyno_test_support::{Scratch, install};

/// A folder of the test's own, and one for clusters in it.
fn home() -> (Scratch, PathBuf) {
    let home = Scratch::new();
    let disk = home.create_folder("disk");
    (home, disk)
}

/// The experiment of `text`, whose clusters lie in `disk`.
fn resolved(disk: &Path, text: &str) -> ResolvedExperiment {
    let text = format!("{text}[storage.disk]\ndirectory = {disk:?}\n");
    let source = Source { name: "crash".into(), shown: "crash".into(), text, base: disk.into() };
    ResolvedExperiment::new(source, Vec::new(), &ThisHost).unwrap()
}

/// Crashes a server in a directory under `workload`; `keys` are more keys of `[crash]`.
fn crash_under(workload: &str, keys: &str, interference: Interference) -> CrashRecord {
    let (home, disk) = home();
    let text = format!(
        "[experiment]\nrepeats = 1\n[postgres]\nbindir = {:?}\n\
         settings = {{ autovacuum = \"off\" }}\n\
         [crash]\nworkload = \"{workload}\"\nload = \"150ms\"\n{keys}\n",
        install(None).bindir
    );
    let prepared = resolved(&disk, &text);
    let (store, stop) = (home.path().join("store.sqlite3"), AtomicBool::new(false));
    let record = crash(&prepared, interference, &store, &Silent, &stop).unwrap();
    remove_kept(&record);
    record
}

/// Removes the files that were kept of a failure.
fn remove_kept(record: &CrashRecord) {
    let rounds = record.outcome.faults.iter().flat_map(|fault| &fault.rounds);
    if let Some(kept) = rounds.filter_map(|round| round.kept.as_ref()).next() {
        // The round's, and the session's around it.
        std::fs::remove_dir_all(Path::new(kept).parent().unwrap()).unwrap();
    }
}

/// Returns the verdict on a round, its reason, and the checks that failed.
fn judged(round: &Round) -> (Verdict, String, Vec<String>) {
    let has_failed = |outcome: &CheckOutcome| matches!(outcome, CheckOutcome::Failed(_));
    let failed = round.checks.iter().filter(|check| has_failed(&check.outcome));
    (round.verdict, round.reason.clone(), failed.map(|check| check.name.clone()).collect())
}
