//! Makes the digests that are missing, in the background, one run at a time.
//!
//! Nothing is analysed while a run of the store is measured: the server would take its processor.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use crate::digest::RunDigest;
use pgdyno_report::RunReport;
use pgdyno_store::ListedRun;

use crate::app::App;
use crate::listing::Contents;
use crate::response::ApiError;

/// Between two looks for runs without a digest.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Longest time until the thread sees that the server ends.
const STEP: Duration = Duration::from_millis(100);

/// Makes missing digests until the server ends.
pub(crate) fn fill(app: &App) {
    // Heads of runs that cannot be analysed: they are damaged, and stay so.
    let mut failed: HashSet<(String, Option<String>)> = HashSet::new();
    while !app.is_ending() {
        let Ok(contents) = app.contents() else {
            wait(app);
            continue;
        };
        let missing = missing(app, &contents, &failed);
        if missing.is_empty() {
            wait(app);
        }
        for run in missing {
            // What was written meanwhile may be newer, or a run that is measured.
            let is_same = app.contents().is_ok_and(|now| Arc::ptr_eq(&now, &contents));
            if app.is_ending() || !is_same {
                break;
            }
            if add(app, run).is_err() {
                failed.insert((run.summary.id.clone(), run.head.clone()));
            }
        }
    }
}

/// Returns the runs without a digest, the newest first; none while a run is measured.
fn missing<'a>(
    app: &App,
    contents: &'a Contents,
    failed: &HashSet<(String, Option<String>)>,
) -> Vec<&'a ListedRun> {
    if contents.has_running() {
        return Vec::new();
    }
    let digests = app.digests();
    let is_missing = |run: &&ListedRun| {
        digests.get(run).is_none() && !failed.contains(&(run.summary.id.clone(), run.head.clone()))
    };
    contents.runs.iter().filter(is_missing).collect()
}

/// Makes the digest of `run` and keeps it.
///
/// # Errors
/// The run cannot be analysed.
pub(crate) fn add(app: &App, run: &ListedRun) -> Result<(), ApiError> {
    let digest =
        app.stores.with(|store| Ok(RunDigest::new(&RunReport::read(store, &run.summary.id)?)))?;
    // One that cannot be written is kept in memory; the next start makes it anew.
    let _ = app.digests().add(run, digest);
    Ok(())
}

fn wait(app: &App) {
    let steps = LOOK_EVERY.as_millis() / STEP.as_millis();
    for _ in 0..steps {
        if app.is_ending() {
            return;
        }
        std::thread::sleep(STEP);
    }
}
