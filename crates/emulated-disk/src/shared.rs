//! The state that the FUSE session, the control channel and the clock share.

use std::collections::BinaryHeap;
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fuser::{Errno, ReplyData, ReplyEmpty, ReplyWrite};
use pgdyno_model::storage::DiskLatency;

use super::layers::{Layers, ShownLog};
use super::model::{Disk, FlushRequest};
use super::pieces::index;
use super::queue::Queue;
use super::rule::DiskError;

/// A request with its answer and the time to send it.
pub(super) enum Job {
    Read {
        offset: u64,
        length: u64,
        reply: ReplyData,
    },
    /// A write is in the cache when it arrives; only its acknowledgement waits.
    Written {
        answer: Result<(), DiskError>,
        length: u32,
        reply: ReplyWrite,
    },
    /// Writes become durable when the flush is done, not before.
    Flush {
        request: FlushRequest,
        reply: ReplyEmpty,
    },
}

struct Timing {
    latency: DiskLatency,
    queue: Queue,
}

impl Timing {
    fn new(latency: &DiskLatency) -> Self {
        let parallel = latency.parallel.map(|n| index(n.get().into()));
        Self { latency: *latency, queue: Queue::new(parallel, Instant::now()) }
    }
}

struct Waiting {
    due: Instant,
    arrived: u64,
    job: Job,
}

#[derive(Default)]
struct Line {
    waiting: BinaryHeap<Waiting>,
    arrived: u64,
}

/// The disk and its waiting requests.
pub(super) struct Shared {
    /// The disk's directory.
    pub(super) directory: PathBuf,
    pub(super) size: u64,
    /// The log whose states are shown, once one was.
    pub(super) shown: Mutex<Option<ShownLog>>,
    /// Open handles of the file.
    pub(super) opened: AtomicUsize,
    disk: Mutex<Disk<Layers>>,
    timing: Mutex<Timing>,
    line: Mutex<Line>,
    changed: Condvar,
}

impl Shared {
    pub(super) fn new(
        directory: PathBuf,
        disk: Disk<Layers>,
        size: u64,
        latency: &DiskLatency,
    ) -> Self {
        Self {
            directory,
            size,
            shown: Mutex::default(),
            opened: AtomicUsize::new(0),
            disk: Mutex::new(disk),
            timing: Mutex::new(Timing::new(latency)),
            line: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    pub(super) fn disk(&self) -> MutexGuard<'_, Disk<Layers>> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_latency(&self, latency: &DiskLatency) {
        *self.timing.lock().unwrap_or_else(PoisonError::into_inner) = Timing::new(latency);
    }

    /// Answers a request, at once or when its time has come.
    pub(super) fn take(&self, job: Job) {
        let now = Instant::now();
        let due = {
            let mut timing = self.timing.lock().unwrap_or_else(PoisonError::into_inner);
            let service = match job {
                Job::Read { .. } => timing.latency.read,
                Job::Written { .. } => timing.latency.write,
                Job::Flush { .. } => timing.latency.flush,
            };
            timing.queue.done_at(now, service.0)
        };
        if due <= now {
            return self.answer(job);
        }
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        line.arrived += 1;
        let arrived = line.arrived;
        line.waiting.push(Waiting { due, arrived, job });
        drop(line);
        self.changed.notify_one();
    }

    /// Answers waiting requests in time. Runs in a thread of its own.
    pub(super) fn answer_in_time(&self) -> ! {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let now = Instant::now();
            let wait = match line.waiting.peek() {
                Some(first) if first.due <= now => {
                    if let Some(first) = line.waiting.pop() {
                        drop(line);
                        self.answer(first.job);
                        line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
                    }
                    continue;
                }
                Some(first) => first.due - now,
                None => Duration::from_secs(3600),
            };
            line = self.changed.wait_timeout(line, wait).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn answer(&self, job: Job) {
        match job {
            Job::Read { offset, length, reply } => {
                let mut buffer = vec![0; index(length)];
                let answer = self.disk().read(offset, &mut buffer);
                match answer {
                    Ok(()) => reply.data(&buffer),
                    Err(e) => reply.error(errno(e)),
                }
            }
            // What was not acknowledged before the cut is not afterwards.
            Job::Written { answer: Ok(()), reply, .. } if !self.disk().is_powered() => {
                reply.error(Errno::EIO);
            }
            Job::Written { answer, length, reply } => match answer {
                Ok(()) => reply.written(length),
                Err(e) => reply.error(errno(e)),
            },
            Job::Flush { request, reply } => {
                let answer = self.disk().flush(request);
                match answer {
                    Ok(()) => reply.ok(),
                    Err(e) => reply.error(errno(e)),
                }
            }
        }
    }
}

// The heap gives the greatest: the earliest is that, and of several the one that arrived first.
impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (other.due, other.arrived).cmp(&(self.due, self.arrived))
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Waiting {}

/// Returns the error number that a request is answered with.
pub(super) fn errno(error: DiskError) -> Errno {
    match error {
        DiskError::Eio => Errno::EIO,
        DiskError::Enospc => Errno::ENOSPC,
    }
}
