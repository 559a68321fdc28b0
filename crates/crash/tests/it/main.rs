//! Integration tests of the crate `crash`, one module for each subject.
#![allow(clippy::unwrap_used, reason = "tests and their helpers fail by panicking")]

mod login;
mod rounds;
mod verify;

use std::path::{Path, PathBuf};

use pgdyno_experiment::ResolvedExperiment;
use pgdyno_experiment::file::Source;
use pgdyno_model::crash::{CheckOutcome, Round};
use pgdyno_model::{CrashRecord, Verdict};
use pgdyno_provision::ThisHost;
use pgdyno_test_support::Scratch;

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
