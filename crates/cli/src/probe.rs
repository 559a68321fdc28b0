//! `pgdyno fsync` and `pgdyno disk`.

use std::sync::atomic::{AtomicBool, Ordering};

use pgdyno_lab::probe::{DiskOptions, FsyncOptions};
use pgdyno_lab::{LabError, ProbeRecord, probe};
use pgdyno_results::report;

use crate::Done;
use crate::args::{self, BlockSize};
use crate::commands::{json, store_path, with_progress};
use crate::output::{Failure, print, tell};

pub(crate) fn fsync(options: &args::Fsync, stop: &AtomicBool) -> Result<Done, Failure> {
    let block_bytes = match options.block_size {
        BlockSize::Kilobytes8 => 8192,
        BlockSize::Kilobytes16 => 16384,
    };
    let per_test = options
        .secs_per_test
        .map_or(options.duration.0, |s| std::time::Duration::from_secs(s.into()));
    let tests = FsyncOptions { block_bytes, per_test, ..FsyncOptions::default() };
    let store = store_path(&options.store);
    let measured =
        with_progress(|progress| probe::fsync(&options.directory, &tests, &store, progress, stop));
    ended(measured, options.json, stop)
}

pub(crate) fn disk(options: &args::Disk, stop: &AtomicBool) -> Result<Done, Failure> {
    let points = DiskOptions {
        size: options.size,
        per_point: options.duration.0,
        builtin: options.builtin,
        ..DiskOptions::default()
    };
    if options.dry_run {
        print(&probe::disk_dry_run(&options.target, &points)?);
        return Ok(Done::Whole);
    }
    let store = store_path(&options.store);
    let measured =
        with_progress(|progress| probe::disk(&options.target, &points, &store, progress, stop));
    ended(measured, options.json, stop)
}

fn ended(
    measured: Result<ProbeRecord, LabError>,
    as_json: bool,
    stop: &AtomicBool,
) -> Result<Done, Failure> {
    let record = match measured {
        Err(LabError::Interrupted) => {
            tell("interrupted before anything was measured; nothing is left behind");
            return Ok(Done::Interrupted);
        }
        record => record?,
    };
    print(&shown(&record, as_json)?);
    if record.result.is_complete() {
        return Ok(Done::Whole);
    }
    tell("not complete: what was measured is kept");
    Ok(if stop.load(Ordering::Relaxed) { Done::Interrupted } else { Done::TrialFailed })
}

/// A probe's page, or its JSON.
pub(crate) fn shown(record: &ProbeRecord, as_json: bool) -> Result<String, Failure> {
    if as_json { json(&report::ProbeView::from(record)) } else { Ok(report::probe(record)) }
}
