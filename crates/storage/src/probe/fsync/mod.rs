//! How fast written data become durable in a directory: `pg_test_fsync`'s tests with percentiles
//! and concurrent writers.

mod test;

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pgdyno_exec::journal::Journal;
use pgdyno_facts as facts;
use pgdyno_model::facts::StorageFacts;
use pgdyno_model::probe::{
    Flushes, FsyncGroup, FsyncOutcome, FsyncProbe, FsyncTest, LatencySummary,
};
use pgdyno_model::record::FsyncRate;
use pgdyno_model::units::{Bytes, Epoch};
use test::{Test, TestOutcome, fdatasync, measure};

use super::place::{AlignedBuffer, ProbeDirectory};
use super::{ProbeError, Progress, implausible, share};

/// Bytes that the run's own probe writes before each flush: a page of the write-ahead log.
const WAL_BLOCK_BYTES: u32 = 8192;
/// Size of the file of a test with one writer (bytes): a segment of the write-ahead log.
const FILE_BYTES: usize = 16 << 20;
/// Size of each file of a test with several writers (bytes): enough that their blocks are far
/// apart.
const CONCURRENT_FILE_BYTES: usize = 1 << 20;
/// Length of the pattern that a file is filled with, over and over (bytes): more than a filesystem
/// compresses at once.
const FILL_BYTES: usize = 1 << 20;

/// Options of an fsync probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FsyncOptions {
    /// Size of a block (bytes); PostgreSQL's are 8 kB unless it was compiled otherwise.
    pub block_bytes: u32,
    /// How long each test takes.
    pub per_test: Duration,
    /// Numbers of concurrent writers to be tried, each with a file of its own.
    pub writers: Vec<u32>,
}

impl Default for FsyncOptions {
    /// Returns the block and the time of `pg_test_fsync`, and 1 to 64 writers.
    fn default() -> Self {
        Self {
            block_bytes: WAL_BLOCK_BYTES,
            per_test: Duration::from_secs(5),
            writers: vec![1, 2, 4, 8, 16, 32, 64],
        }
    }
}

/// Does `pg_test_fsync`'s job in `directory`. Its files are removed when it is done, however it
/// ends. On `stop` what was measured so far is handed back.
///
/// # Errors
/// [`ProbeError`]; interrupted before the first test was done.
pub fn fsync(
    directory: &Path,
    options: &FsyncOptions,
    journal: &Journal,
    progress: Progress<'_>,
    stop: &AtomicBool,
) -> Result<(StorageFacts, FsyncProbe), ProbeError> {
    let files = options.writers.iter().copied().max().unwrap_or(0) as usize;
    let needed = FILE_BYTES + files * CONCURRENT_FILE_BYTES;
    let place = ProbeDirectory::make(directory, Bytes(needed as u64), None, journal, stop)?;
    let storage = facts::storage("", directory)?;
    let one = filled(&place, "0", FILE_BYTES, stop)?;
    let several = (1..=files)
        .map(|file| filled(&place, &file.to_string(), CONCURRENT_FILE_BYTES, stop))
        .collect::<Result<Vec<_>, _>>()?;
    let mut probe = FsyncProbe {
        block_bytes: options.block_bytes,
        seconds_per_test: options.per_test.as_secs_f64(),
        tests: Vec::new(),
        complete: false,
        warnings: Vec::new(),
        suspicions: Vec::new(),
    };
    let tests = test::all(options.block_bytes, &options.writers);
    let all = tests.len();
    for (done, Test { group, name, files, work }) in tests.into_iter().enumerate() {
        progress(&format!("fsync probe of {}", directory.display()), share(done, all));
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let paths: Vec<&Path> = match group {
            FsyncGroup::Concurrent => {
                several.iter().take(files as usize).map(PathBuf::as_path).collect()
            }
            _ => vec![&one],
        };
        let found = measure(&work, &paths, options.per_test, stop)
            .map_err(ProbeError::io("write and flush a file in", directory))?;
        let outcome = match found {
            TestOutcome::Stopped => break,
            TestOutcome::NotAvailable(why) => FsyncOutcome::NotAvailable(why),
            TestOutcome::Measured { operations, latency, seconds } => {
                FsyncOutcome::Measured(Flushes {
                    operations,
                    seconds,
                    latency: LatencySummary::from_latencies(&latency),
                })
            }
        };
        probe.tests.push(FsyncTest { group, name, files, outcome });
    }
    if probe.tests.is_empty() {
        return Err(ProbeError::Interrupted);
    }
    probe.complete = probe.tests.len() == all;
    (probe.warnings, probe.suspicions) = implausible::fsync(&storage, &probe);
    Ok((storage, probe))
}

/// Returns the rate at which one writer makes a block durable with fdatasync in `directory`: one
/// test of the probe, for as long as `for_`.
pub fn fsync_rate(
    storage: &str,
    directory: &Path,
    for_: Duration,
    journal: &Journal,
    stop: &AtomicBool,
) -> Result<FsyncRate, ProbeError> {
    let place = ProbeDirectory::make(directory, Bytes(FILE_BYTES as u64), None, journal, stop)?;
    let file = filled(&place, "0", FILE_BYTES, stop)?;
    let measured_at = Epoch::now();
    let found = measure(&fdatasync(WAL_BLOCK_BYTES), &[&file], for_, stop)
        .map_err(ProbeError::io("write and flush a file in", directory))?;
    let TestOutcome::Measured { operations: flushes, latency, seconds } = found else {
        return Err(ProbeError::Interrupted);
    };
    Ok(FsyncRate {
        storage: storage.to_owned(),
        method: "fdatasync".to_owned(),
        block_bytes: WAL_BLOCK_BYTES,
        flushes,
        seconds,
        latency,
        measured_at,
    })
}

/// Returns a file of `bytes` in `place`, written whole and durable: what is tested is to overwrite
/// it, as PostgreSQL does its recycled WAL segments, not to grow it.
fn filled(
    place: &ProbeDirectory<'_>,
    name: &str,
    bytes: usize,
    stop: &AtomicBool,
) -> Result<PathBuf, ProbeError> {
    if stop.load(Ordering::Relaxed) {
        return Err(ProbeError::Interrupted);
    }
    let path = place.path().join(name);
    let write = || -> io::Result<()> {
        let mut file = File::create_new(&path)?;
        let block = AlignedBuffer::new(bytes.min(FILL_BYTES));
        for begin in (0..bytes).step_by(FILL_BYTES) {
            file.write_all(&block[..FILL_BYTES.min(bytes - begin)])?;
        }
        file.sync_all()
    };
    write().map_err(ProbeError::io("fill", &path))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use pgdyno_model::{Advice, FailureKind};

    use super::*;

    fn names(directory: &Path) -> usize {
        std::fs::read_dir(directory).unwrap().count()
    }

    #[test]
    fn flushes_are_counted_and_nothing_stays() {
        let (dir, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let journal = Journal::open(state.path()).unwrap();
        let run = AtomicBool::new(false);
        let rate =
            fsync_rate("ssd", dir.path(), Duration::from_millis(50), &journal, &run).unwrap();
        assert!(rate.flushes > 0 && rate.seconds >= 0.05 && rate.per_second() > 0.0, "{rate:?}");
        assert_eq!(
            (rate.latency.count(), rate.method.as_str(), rate.block_bytes),
            (rate.flushes, "fdatasync", 8192)
        );
        let stopped = fsync_rate(
            "ssd",
            dir.path(),
            Duration::from_secs(600),
            &journal,
            &AtomicBool::new(true),
        );
        assert_eq!(stopped.unwrap_err().kind(), FailureKind::Interrupted);
        assert_eq!((names(dir.path()), journal.entries().unwrap().len()), (0, 0));
    }

    #[test]
    fn every_test_of_pg_test_fsync_is_done_and_so_are_several_writers() {
        let (dir, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let journal = Journal::open(state.path()).unwrap();
        let options = FsyncOptions {
            per_test: Duration::from_millis(10),
            writers: vec![1, 3],
            ..Default::default()
        };
        let run = AtomicBool::new(false);
        let (storage, probe) = fsync(dir.path(), &options, &journal, &|_, _| {}, &run).unwrap();
        assert!(!storage.filesystem.is_empty() && probe.complete);
        let of = |group| probe.tests.iter().filter(|t| t.group == group).collect::<Vec<_>>();
        assert_eq!(of(FsyncGroup::OneBlock).len(), 5);
        assert_eq!(of(FsyncGroup::TwoBlocks).len(), 5);
        assert_eq!(of(FsyncGroup::OpenSyncSizes).len(), 5);
        assert_eq!(of(FsyncGroup::OtherDescriptor).len(), 2);
        assert_eq!(of(FsyncGroup::Concurrent).iter().map(|t| t.files).collect::<Vec<_>>(), [1, 3]);
        for test in &probe.tests {
            match &test.outcome {
                FsyncOutcome::Measured(found) => {
                    assert!(found.operations > 0 && found.seconds >= 0.01, "{test:?}");
                }
                FsyncOutcome::NotAvailable(why) => {
                    assert!(
                        test.name == "fsync_writethrough" || why.contains("O_DIRECT"),
                        "{test:?}"
                    );
                }
            }
        }
        assert!(probe.ceiling_for_commits(1).unwrap() > 0.0);
        assert_eq!((names(dir.path()), journal.entries().unwrap().len()), (0, 0));
    }

    #[test]
    fn what_was_measured_before_a_signal_is_kept() {
        let (dir, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let journal = Journal::open(state.path()).unwrap();
        let stop = AtomicBool::new(false);
        let options = FsyncOptions { per_test: Duration::from_millis(10), ..Default::default() };
        // Three of the tests, then the signal.
        let signal = |_: &str, done: f64| stop.store(done > 0.1, Ordering::Relaxed);
        let (_, probe) = fsync(dir.path(), &options, &journal, &signal, &stop).unwrap();
        assert!(!probe.complete && probe.tests.len() == 3, "{probe:?}");
        assert_eq!((names(dir.path()), journal.entries().unwrap().len()), (0, 0));
    }

    #[test]
    fn a_place_that_will_not_do_is_told() {
        let (dir, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let journal = Journal::open(state.path()).unwrap();
        let run = AtomicBool::new(false);
        let told = |path: &Path| {
            let error = fsync_rate("ssd", path, Duration::ZERO, &journal, &run).unwrap_err();
            (error.to_string(), error.help().unwrap())
        };
        let (error, help) = told(&dir.path().join("missing"));
        assert!(error.contains("cannot look at") && help.contains("exists"), "{error} {help}");
        std::fs::write(dir.path().join("file"), "").unwrap();
        let (error, help) = told(&dir.path().join("file"));
        assert!(error.contains("no directory") && help.contains("a directory"), "{error} {help}");
        assert!(journal.entries().unwrap().is_empty());
    }
}
