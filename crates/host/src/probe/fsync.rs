//! The rate at which one writer makes a block durable: the ceiling for commits that do not share a flush.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use pgdyno_model::Latencies;
use pgdyno_model::record::FsyncRate;
use pgdyno_model::units::Epoch;

use crate::journal::{Entry, Journal, JournalError, Made, file_mark, nofollow, random_hex};
use crate::sweep::remove_made;

/// What is written before each flush: a page of the write-ahead log.
const BLOCK_BYTES: u32 = 8192;
/// The file's size: a segment of the write-ahead log.
const FILE_BYTES: usize = 16 << 20;

/// A way to make written data durable, as `wal_sync_method` names it.
struct Method {
    name: &'static str,
    /// Flags of open(2) beside those for writing.
    open: rustix::fs::OFlags,
    flush: fn(&File) -> io::Result<()>,
}

/// Linux's default.
const FDATASYNC: Method =
    Method { name: "fdatasync", open: rustix::fs::OFlags::empty(), flush: File::sync_data };

/// The rate could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The file.
    #[error("cannot {what} {} to measure its flushes", path.display())]
    Io {
        /// What was attempted.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// It was told to stop.
    #[error("interrupted")]
    Interrupted,
}

impl ProbeError {
    /// What to do.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                Some("free 16 MB there, or name another directory in `storage.<name>.directory`".into())
            }
            Self::Journal(e) => e.help(),
            _ => None,
        }
    }
}

/// Writes 8 kB at the same place of a preallocated file in `directory` and flushes it, over and over for `for_`. The
/// file is removed afterwards.
///
/// # Errors
/// [`ProbeError`].
pub fn fsync_rate(
    storage: &str,
    directory: &Path,
    for_: Duration,
    journal: &Journal,
    stop: &AtomicBool,
) -> Result<FsyncRate, ProbeError> {
    let name = random_hex::<4>().map_err(JournalError::Random)?;
    let path = directory.join(format!(".pgdyno-fsync-{name}"));
    let entry = journal.record(&Made::File { path: path.clone() })?;
    let _removed = Removed { journal, entry: &entry };
    measure(storage, &path, &FDATASYNC, &file_mark(&entry.id), for_, stop)
}

/// Removes the file when it is dropped.
struct Removed<'a> {
    journal: &'a Journal,
    entry: &'a Entry,
}

impl Drop for Removed<'_> {
    fn drop(&mut self) {
        // What fails here stays in the journal for the next start's sweep.
        if remove_made(&self.entry.made, &self.entry.id).is_ok() {
            let _ = self.journal.done(&self.entry.id);
        }
    }
}

fn measure(
    storage: &str,
    path: &Path,
    method: &Method,
    mark: &str,
    for_: Duration,
    stop: &AtomicBool,
) -> Result<FsyncRate, ProbeError> {
    let failed = |what| move |source| ProbeError::Io { what, path: path.to_owned(), source };
    let flags = method.open.union(rustix::fs::OFlags::NOFOLLOW).bits();
    let mut file = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .custom_flags(i32::try_from(flags).unwrap_or(nofollow()))
        .open(path)
        .map_err(failed("make"))?;
    // Begins with the mark and does not compress to nothing.
    let mut block = mark.as_bytes().to_vec();
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    while block.len() < BLOCK_BYTES as usize {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        block.push(state.to_be_bytes()[0]);
    }
    for _ in 0..FILE_BYTES / block.len() {
        if stop.load(Ordering::Relaxed) {
            return Err(ProbeError::Interrupted);
        }
        file.write_all(&block).map_err(failed("fill"))?;
    }
    file.sync_all().map_err(failed("flush"))?;
    let measured_at = Epoch::of(SystemTime::now());
    let mut latency = Latencies::new();
    let began = Instant::now();
    let mut last = began;
    while last.duration_since(began) < for_ {
        if stop.load(Ordering::Relaxed) {
            return Err(ProbeError::Interrupted);
        }
        file.write_all_at(&block, 0).map_err(failed("write"))?;
        (method.flush)(&file).map_err(failed("flush"))?;
        let now = Instant::now();
        latency.record(u64::try_from(now.duration_since(last).as_nanos()).unwrap_or(u64::MAX));
        last = now;
    }
    Ok(FsyncRate {
        storage: storage.to_owned(),
        method: method.name.to_owned(),
        block_bytes: BLOCK_BYTES,
        flushes: latency.count(),
        seconds: last.duration_since(began).as_secs_f64(),
        latency,
        measured_at,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> usize {
        std::fs::read_dir(directory).unwrap().count()
    }

    #[test]
    fn flushes_are_counted_and_nothing_stays() {
        let (dir, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let journal = Journal::open(state.path()).unwrap();
        let run = AtomicBool::new(false);
        let rate = fsync_rate("ssd", dir.path(), Duration::from_millis(50), &journal, &run).unwrap();
        assert!(rate.flushes > 0 && rate.seconds >= 0.05 && rate.per_second() > 0.0, "{rate:?}");
        assert_eq!(
            (rate.latency.count(), rate.method.as_str(), rate.block_bytes),
            (rate.flushes, "fdatasync", 8192)
        );
        let stopped =
            fsync_rate("ssd", dir.path(), Duration::from_secs(600), &journal, &AtomicBool::new(true));
        assert!(matches!(stopped, Err(ProbeError::Interrupted)));
        assert_eq!((names(dir.path()), journal.entries().unwrap().len()), (0, 0));
    }

    #[test]
    fn a_missing_directory_is_told() {
        let (dir, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let journal = Journal::open(state.path()).unwrap();
        let missing = dir.path().join("missing");
        let error =
            fsync_rate("ssd", &missing, Duration::ZERO, &journal, &AtomicBool::new(false)).unwrap_err();
        assert!(error.to_string().contains("cannot make"), "{error}");
        assert!(journal.entries().unwrap().is_empty());
    }
}
