//! CPU time that observation itself costs: of the sampling threads, and of the server's backends
//! that answer them.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::time::ClockId;

use super::probe::{ProbeError, read};

/// The threads and backends that work on observation.
pub(super) struct ObserverCost {
    /// PGDATA on this host. The cost of backends on another host is unknown.
    data: Option<PathBuf>,
    backends: Mutex<Backends>,
    /// CPU time that sampling threads other than the sampler's reported last (nanoseconds).
    threads: Mutex<Vec<Arc<AtomicU64>>>,
}

#[derive(Default)]
struct Backends {
    /// Each one's pid, and its CPU time when last read.
    present: Vec<(i32, Duration)>,
    /// CPU time of those that were replaced, when last read.
    replaced: Duration,
}

impl ObserverCost {
    /// Starts counting for a server with the data directory `data`.
    pub(super) fn new(data: Option<PathBuf>) -> Self {
        let data = data.map(|d| d.canonicalize().unwrap_or(d));
        Self { data, backends: Mutex::default(), threads: Mutex::default() }
    }

    fn backends(&self) -> MutexGuard<'_, Backends> {
        self.backends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the cost of the backend `pid`.
    pub(super) fn add_backend(&self, pid: i32) {
        self.backends().present.push((pid, Duration::ZERO));
    }

    /// Counts the backend `new` in place of `old`, whose connection was lost.
    pub(super) fn replace_backend(&self, old: i32, new: i32) {
        let Backends { present, replaced } = &mut *self.backends();
        if let Some(backend) = present.iter_mut().find(|(pid, _)| *pid == old) {
            *replaced += backend.1;
            *backend = (new, Duration::ZERO);
        }
    }

    /// Returns the counter into which one more sampling thread writes [`thread_cpu`]
    /// (nanoseconds).
    pub(super) fn add_thread(&self) -> Arc<AtomicU64> {
        let clock = Arc::new(AtomicU64::new(0));
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&clock));
        clock
    }

    /// Returns the CPU time of the other sampling threads (nanoseconds).
    pub(super) fn other_threads_cpu(&self) -> u64 {
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.iter().map(|clock| clock.load(Ordering::Relaxed)).sum()
    }

    /// Returns the CPU time of the backends.
    pub(super) fn backends_cpu(&self) -> Result<Duration, ProbeError> {
        let data = self.data.as_deref().ok_or(ProbeError::UnknownData)?;
        let Backends { present, replaced } = &mut *self.backends();
        let mut sum = *replaced;
        for (pid, used) in present {
            *used = backend_cpu(*pid, data)?;
            sum += *used;
        }
        Ok(sum)
    }
}

/// Returns the CPU time of the calling thread.
pub(super) fn thread_cpu() -> Duration {
    cpu(ClockId::ThreadCPUTime)
}

/// Returns the CPU time of this process, all threads together.
pub(super) fn process_cpu() -> Duration {
    cpu(ClockId::ProcessCPUTime)
}

fn cpu(clock: ClockId) -> Duration {
    let now = rustix::time::clock_gettime(clock);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// Returns the CPU time of a backend. Its working directory must be PGDATA: in another container
/// its pid may belong to another process.
fn backend_cpu(pid: i32, data: &Path) -> Result<Duration, ProbeError> {
    let place = format!("/proc/{pid}/cwd");
    let directory = std::fs::read_link(&place).map_err(ProbeError::read(place))?;
    if directory != data {
        return Err(ProbeError::OtherProcess { pid, directory });
    }
    // Documentation/scheduler/sched-stats.rst: time on the CPU, in nanoseconds, is the first.
    let path = PathBuf::from(format!("/proc/{pid}/schedstat"));
    let nanoseconds = read(&path)?.split_whitespace().next().and_then(|v| v.parse().ok());
    let wanted = "time on the CPU";
    nanoseconds.map(Duration::from_nanos).ok_or(ProbeError::Malformed { path, wanted })
}
