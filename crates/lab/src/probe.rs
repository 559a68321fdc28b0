//! Probes of a storage by themselves: measured, then stored like a trial.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use pgdyno_model::ProbeRecord;
use pgdyno_model::facts::StorageFacts;
use pgdyno_model::probe::ProbeResult;
use pgdyno_model::progress::{Activity, Event, Progress};
use pgdyno_model::units::Epoch;
pub use pgdyno_storage::probe::{DiskOptions, DiskPlan, FsyncOptions};

use pgdyno_provision::stores::{clear_leftovers, open_store};
use pgdyno_provision::{BenchError, new_record_id};

/// Renders the plan of the disk probe of `path`: its points, those left out, and the least time.
///
/// # Errors
/// `path` cannot be probed.
pub fn disk_dry_run(path: &Path, options: &DiskOptions) -> Result<String, BenchError> {
    let plan = DiskPlan::new(path, options)?;
    let mut lines = plan.lines();
    lines.extend(
        plan.not_measured().into_iter().map(|left_out| format!("not measured: {left_out}")),
    );
    let least = pgdyno_model::units::Span(plan.least_time());
    lines.push(format!("takes {least} and the time to fill the file once, where one is made"));
    Ok(lines.join("\n"))
}

/// Does `pg_test_fsync`'s job in `directory` and stores what was found in the store at `store`.
///
/// # Errors
/// Nothing could be measured, or the store cannot be written.
pub fn fsync(
    directory: &Path,
    options: &FsyncOptions,
    store: &Path,
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<ProbeRecord, BenchError> {
    let journal = clear_leftovers(progress, stop)?;
    store_probe(directory, store, || {
        let report = reporter(progress, None);
        let (storage, probe) =
            pgdyno_storage::probe::fsync(directory, options, &journal, &report, stop)?;
        Ok((storage, ProbeResult::Fsync(probe)))
    })
}

/// Measures the raw curves of the directory or device `path` and stores them in the store at
/// `store`.
///
/// # Errors
/// Nothing could be measured, or the store cannot be written.
pub fn disk(
    path: &Path,
    options: &DiskOptions,
    store: &Path,
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<ProbeRecord, BenchError> {
    let plan = DiskPlan::new(path, options)?;
    let journal = clear_leftovers(progress, stop)?;
    store_probe(path, store, || {
        let report = reporter(progress, None);
        let (storage, probe) = plan.measure(&journal, &report, stop)?;
        Ok((storage, ProbeResult::Disk(probe)))
    })
}

/// Stores what `measure` finds under a new name; the store is opened first, so that minutes are not
/// measured for nothing.
fn store_probe(
    path: &Path,
    store: &Path,
    measure: impl FnOnce() -> Result<(StorageFacts, ProbeResult), BenchError>,
) -> Result<ProbeRecord, BenchError> {
    let mut store = open_store(store)?;
    let record = record_probe(None, path.display().to_string(), measure)?;
    store.add_probe(None, &record)?;
    Ok(record)
}

/// Returns the record of what `measure` finds about the storage, directory or device `name`.
pub(crate) fn record_probe(
    run: Option<&str>,
    name: String,
    measure: impl FnOnce() -> Result<(StorageFacts, ProbeResult), BenchError>,
) -> Result<ProbeRecord, BenchError> {
    let started_at = Epoch::now();
    let (storage, result) = measure()?;
    Ok(ProbeRecord {
        id: new_record_id(result.kind(), started_at),
        run: run.map(str::to_owned),
        name,
        started_at,
        pgdyno_version: env!("CARGO_PKG_VERSION").to_owned(),
        host: pgdyno_facts::host(),
        storage,
        result,
    })
}

/// Returns a function that reports the test under way and the share of the probe that is done.
pub(crate) fn reporter(progress: &dyn Progress, storage: Option<&str>) -> impl Fn(&str, f64) {
    move |test, share| {
        let activity =
            Activity::Probing { storage: storage.map(str::to_owned), test: test.to_owned() };
        progress.event(&Event::Working { activity, share: Some(share) });
    }
}
