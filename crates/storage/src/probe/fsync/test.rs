//! The tests of the fsync probe, one by one, with the system calls that `pg_test_fsync` makes.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pgdyno_model::Latencies;
use pgdyno_model::probe::FsyncGroup;
use rustix::fs::OFlags;

use crate::probe::place::{AlignedBuffer, open};

/// One test.
pub(super) struct Test {
    pub(super) group: FsyncGroup,
    /// As `pg_test_fsync` prints it.
    pub(super) name: String,
    pub(super) files: u32,
    pub(super) work: Work,
}

/// One operation of a test.
pub(super) enum Work {
    /// Blocks written one after the other from the file's start, then a flush.
    Flushed { flags: OFlags, writes: u32, bytes: u32, flush: Flush },
    /// The file opened, one block written, closed, opened and closed again; the flush comes before
    /// the first close or after the second opening.
    Reopened { bytes: u32, flush_after_close: bool },
    /// Not on this platform.
    NotHere(&'static str),
}

impl Work {
    /// Tells whether an operation ends with its data durable.
    fn flushes(&self) -> bool {
        match self {
            Self::Flushed { flags, flush, .. } => {
                flags.intersects(DSYNC) || !matches!(flush, Flush::No)
            }
            Self::Reopened { .. } | Self::NotHere(_) => true,
        }
    }
}

#[derive(Clone, Copy)]
pub(super) enum Flush {
    /// The file was opened so that each write is durable by itself, or nothing is to be.
    No,
    Data,
    All,
}

impl Flush {
    fn perform(self, file: &File) -> io::Result<()> {
        match self {
            Self::No => Ok(()),
            Self::Data => file.sync_data(),
            Self::All => file.sync_all(),
        }
    }
}

/// `O_DSYNC`. Not rustix's: its `OFlags::DSYNC` is `O_SYNC` on Linux (1.1.6), which flushes
/// metadata, too.
const DSYNC: OFlags = OFlags::from_bits_retain(libc::O_DSYNC.cast_unsigned());

/// Returns the default `wal_sync_method` on Linux, one block of `bytes`.
pub(super) fn fdatasync(bytes: u32) -> Work {
    Work::Flushed { flags: OFlags::empty(), writes: 1, bytes, flush: Flush::Data }
}

/// Returns all tests in the order of `pg_test_fsync`, then those of `writers` at a time.
pub(super) fn all(block_bytes: u32, writers: &[u32]) -> Vec<Test> {
    let mut tests = Vec::new();
    let mut add = |group, name: &str, files, work| {
        tests.push(Test { group, name: name.to_owned(), files, work });
    };
    // PostgreSQL 15's pg_test_fsync opens with O_DIRECT beside O_DSYNC and O_SYNC.
    let (dsync, sync) = (DSYNC.union(OFlags::DIRECT), OFlags::SYNC.union(OFlags::DIRECT));
    for (group, writes) in [(FsyncGroup::OneBlock, 1), (FsyncGroup::TwoBlocks, 2)] {
        let flushed = |flags, flush| Work::Flushed { flags, writes, bytes: block_bytes, flush };
        add(group, "open_datasync", 1, flushed(dsync, Flush::No));
        add(group, "fdatasync", 1, flushed(OFlags::empty(), Flush::Data));
        add(group, "fsync", 1, flushed(OFlags::empty(), Flush::All));
        add(group, "fsync_writethrough", 1, Work::NotHere("Linux has none"));
        add(group, "open_sync", 1, flushed(sync, Flush::No));
    }
    for writes in [1, 2, 4, 8, 16] {
        let kilobytes = 16 / writes;
        let plural = if writes == 1 { "" } else { "s" };
        let name = format!("{writes:>2} * {kilobytes:>2}kB open_sync write{plural}");
        let work = Work::Flushed { flags: sync, writes, bytes: kilobytes * 1024, flush: Flush::No };
        add(FsyncGroup::OpenSyncSizes, &name, 1, work);
    }
    for (name, flush_after_close) in [("write, fsync, close", false), ("write, close, fsync", true)]
    {
        let work = Work::Reopened { bytes: block_bytes, flush_after_close };
        add(FsyncGroup::OtherDescriptor, name, 1, work);
    }
    let write =
        Work::Flushed { flags: OFlags::empty(), writes: 1, bytes: block_bytes, flush: Flush::No };
    add(FsyncGroup::NotSynced, "write", 1, write);
    for &files in writers {
        add(FsyncGroup::Concurrent, "fdatasync", files, fdatasync(block_bytes));
    }
    tests
}

/// Where nothing is flushed, one operation of so many is timed: an unflushed write takes so little
/// that reading the clock after each would cost a quarter of the rate.
const SAMPLED: u64 = 16;

/// Result of a test, or why it cannot be done here.
pub(super) enum TestOutcome {
    /// Latencies of every operation, or of one in [`SAMPLED`] where none is flushed.
    Measured {
        operations: u64,
        latency: Latencies,
        seconds: f64,
    },
    NotAvailable(String),
    Stopped,
}

/// Repeats `work` for the time `for_` on all files of `paths` at once, one thread for each.
pub(super) fn measure(
    work: &Work,
    paths: &[&Path],
    for_: Duration,
    stop: &AtomicBool,
) -> io::Result<TestOutcome> {
    if let Work::NotHere(why) = work {
        return Ok(TestOutcome::NotAvailable((*why).to_owned()));
    }
    let start = Barrier::new(paths.len());
    let done: io::Result<Vec<_>> = std::thread::scope(|scope| {
        let writers: Vec<_> = paths
            .iter()
            .map(|path| {
                let start = &start;
                scope.spawn(move || {
                    let writer = Writer::new(work, path);
                    start.wait();
                    writer?.repeat(for_, stop)
                })
            })
            .collect();
        writers
            .into_iter()
            .map(|w| w.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    let done = match done {
        Err(e) if e.kind() == io::ErrorKind::InvalidInput => match work {
            Work::Flushed { flags, bytes, .. } if flags.contains(OFlags::DIRECT) => {
                return Ok(TestOutcome::NotAvailable(format!(
                    "O_DIRECT is refused for {bytes} bytes"
                )));
            }
            _ => return Err(e),
        },
        done => done?,
    };
    if stop.load(Ordering::Relaxed) {
        return Ok(TestOutcome::Stopped);
    }
    let mut latency = Latencies::new();
    let mut longest = Duration::ZERO;
    let mut operations = 0;
    for (of_one, count, took) in &done {
        latency.merge(of_one);
        operations += count;
        longest = longest.max(*took);
    }
    Ok(TestOutcome::Measured { operations, latency, seconds: longest.as_secs_f64() })
}

/// One thread's part.
struct Writer<'a> {
    work: &'a Work,
    path: &'a Path,
    file: Option<File>,
    block: AlignedBuffer,
}

impl<'a> Writer<'a> {
    fn new(work: &'a Work, path: &'a Path) -> io::Result<Self> {
        let (bytes, file) = match work {
            Work::Flushed { flags, bytes, .. } => (*bytes, Some(open(path, true, *flags)?)),
            Work::Reopened { bytes, .. } => (*bytes, None),
            Work::NotHere(_) => (0, None),
        };
        Ok(Self { work, path, file, block: AlignedBuffer::new(bytes as usize) })
    }

    /// Operations one after the other, how many, and how long all took. Each is timed from the end
    /// of the one before it.
    fn repeat(&self, for_: Duration, stop: &AtomicBool) -> io::Result<(Latencies, u64, Duration)> {
        let untimed = if self.work.flushes() { 0 } else { SAMPLED - 1 };
        let mut latency = Latencies::new();
        let mut operations = 0;
        let began = Instant::now();
        let mut last = began;
        while last.duration_since(began) < for_ && !stop.load(Ordering::Relaxed) {
            if untimed > 0 {
                for _ in 0..untimed {
                    self.operate()?;
                }
                last = Instant::now();
            }
            self.operate()?;
            let now = Instant::now();
            latency.record(u64::try_from(now.duration_since(last).as_nanos()).unwrap_or(u64::MAX));
            last = now;
            operations += 1 + untimed;
        }
        Ok((latency, operations, last.duration_since(began)))
    }

    fn operate(&self) -> io::Result<()> {
        match (self.work, &self.file) {
            (Work::Flushed { writes, bytes, flush, .. }, Some(file)) => {
                for write in 0..*writes {
                    file.write_all_at(&self.block, u64::from(write * bytes))?;
                }
                flush.perform(file)
            }
            (Work::Reopened { flush_after_close, .. }, _) => {
                let file = open(self.path, true, OFlags::empty())?;
                file.write_all_at(&self.block, 0)?;
                if !flush_after_close {
                    file.sync_all()?;
                }
                drop(file);
                // Opened again in both cases, as pg_test_fsync does, so that the times can be
                // compared.
                let file = open(self.path, true, OFlags::empty())?;
                if *flush_after_close { file.sync_all() } else { Ok(()) }
            }
            (Work::Flushed { .. } | Work::NotHere(_), _) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    /// Returns the flags that the kernel has for a file opened with `flags`.
    fn obtained(flags: OFlags) -> i32 {
        let path = tempfile::NamedTempFile::new().unwrap();
        let file = open(path.path(), true, flags).unwrap();
        let info =
            std::fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd())).unwrap();
        let octal = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap();
        i32::from_str_radix(octal.trim(), 8).unwrap()
    }

    #[test]
    fn open_datasync_and_open_sync_are_not_the_same_to_the_kernel() {
        // O_SYNC holds O_DSYNC's bit and one more.
        assert_eq!(obtained(DSYNC) & libc::O_SYNC, libc::O_DSYNC);
        assert_eq!(obtained(OFlags::SYNC) & libc::O_SYNC, libc::O_SYNC);
        assert_ne!(libc::O_SYNC, libc::O_DSYNC);
    }
}
