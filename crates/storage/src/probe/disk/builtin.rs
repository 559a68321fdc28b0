//! Load of pgdyno's own where fio is not installed: a thread for each request under way, `pread`
//! and `pwrite`.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pgdyno_model::Latencies;
use pgdyno_model::probe::{DiskPoint, LatencySummary, Pattern, Transfers};
use pgdyno_model::units::{Bytes, Span};
use rustix::fs::OFlags;

use super::point::Planned;
use crate::probe::ProbeError;
use crate::probe::place::{AlignedBuffer, open};

/// Name of this load in records.
pub(super) const NAME: &str = "pgdyno's own threads, simpler than fio,";

/// The share of reads in the mixed load (%).
const READS_OF_MIXED: u32 = 70;

/// Describes the requests of [`measure`] at `point`, for a dry run.
pub(super) fn line(point: &Planned, file: &Path) -> String {
    let (file, end) = (file.display(), Bytes(point.offset + point.length));
    let for_ = point.for_.map_or_else(|| "once".to_owned(), |for_| format!("for {}", Span(for_)));
    format!(
        "{} of {file} from {} to {end} {for_}: {} threads, {} bytes each request",
        point.pattern.name(),
        Bytes(point.offset),
        point.queue_depth,
        point.block_bytes,
    )
}

/// Result of one thread: latencies of its reads and writes, and how long all took.
struct Done {
    read: Latencies,
    write: Latencies,
    took: Duration,
}

pub(super) fn measure(
    point: &Planned,
    file: &Path,
    direct: bool,
    stop: &AtomicBool,
) -> Result<DiskPoint, ProbeError> {
    let failed = ProbeError::io("read or write", file);
    let next = AtomicU64::new(0);
    let start = Barrier::new(point.queue_depth as usize);
    let done: io::Result<Vec<Done>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..point.queue_depth)
            .map(|_| {
                scope.spawn(|| {
                    let flags = if direct { OFlags::DIRECT } else { OFlags::empty() };
                    let opened = open(file, point.pattern.writes(), flags);
                    start.wait();
                    requests(point, &opened?, &next, stop)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|t| t.join().unwrap_or_else(|p| std::panic::resume_unwind(p)))
            .collect()
    });
    let done = done.map_err(&failed)?;
    let mut took = done.iter().map(|d| d.took).max().unwrap_or_default();
    if point.for_.is_none() {
        let flushing = Instant::now();
        open(file, true, OFlags::empty()).and_then(|f| f.sync_all()).map_err(&failed)?;
        took += flushing.elapsed();
    }
    if stop.load(Ordering::Relaxed) {
        return Err(ProbeError::Interrupted);
    }
    let (mut read, mut write) = (Latencies::new(), Latencies::new());
    for one in &done {
        read.merge(&one.read);
        write.merge(&one.write);
    }
    let [read, write] = [read, write].map(|of| transfers(&of, point.block_bytes, took));
    Ok(point.measured(took.as_secs_f64(), read, write))
}

/// Requests one after the other, until the time is over or, where there is none, the last block is
/// done.
fn requests(point: &Planned, file: &File, next: &AtomicU64, stop: &AtomicBool) -> io::Result<Done> {
    let blocks = point.length / u64::from(point.block_bytes);
    let mut buffer = AlignedBuffer::new(point.block_bytes as usize);
    let (mut read, mut write) = (Latencies::new(), Latencies::new());
    let began = Instant::now();
    let mut last = began;
    while point.for_.is_none_or(|for_| last.duration_since(began) < for_)
        && !stop.load(Ordering::Relaxed)
    {
        let (block, writes) = match point.pattern {
            Pattern::Write | Pattern::Read => {
                (next.fetch_add(1, Ordering::Relaxed), point.pattern == Pattern::Write)
            }
            Pattern::RandRead => (fastrand::u64(..blocks), false),
            Pattern::RandWrite => (fastrand::u64(..blocks), true),
            Pattern::RandRw => (fastrand::u64(..blocks), fastrand::u32(..100) >= READS_OF_MIXED),
        };
        if point.for_.is_none() && block >= blocks {
            break;
        }
        let offset = point.offset + block % blocks * u64::from(point.block_bytes);
        let latency = if writes {
            file.write_all_at(&buffer, offset)?;
            &mut write
        } else {
            file.read_exact_at(&mut buffer, offset)?;
            &mut read
        };
        let now = Instant::now();
        latency.record(u64::try_from(now.duration_since(last).as_nanos()).unwrap_or(u64::MAX));
        last = now;
    }
    Ok(Done { read, write, took: last.duration_since(began) })
}

fn transfers(latency: &Latencies, block_bytes: u32, took: Duration) -> Option<Transfers> {
    (latency.count() > 0).then(|| {
        let iops = latency.count() as f64 / took.as_secs_f64().max(1e-9);
        Transfers {
            operations: latency.count(),
            iops,
            bytes_per_second: iops * f64::from(block_bytes),
            latency: LatencySummary::from_latencies(latency),
        }
    })
}
