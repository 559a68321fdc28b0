//! What watching costs: CPU time of the threads that sample and of the server's backends that
//! answer them.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pgdyno_model::telemetry::{Column, Kind};

use super::{Probe, Watched, column, float, read};

/// Who works on watching.
pub(super) struct Observer {
    /// PGDATA on this machine; backends of a server elsewhere cannot be asked.
    data: Option<PathBuf>,
    backends: Mutex<Vec<i32>>,
    /// CPU time of sampling threads beside the sampler's, as each last told it (nanoseconds).
    threads: Mutex<Vec<Arc<AtomicU64>>>,
}

impl Observer {
    pub(super) fn new(data: Option<PathBuf>) -> Self {
        let data = data.map(|d| d.canonicalize().unwrap_or(d));
        Self { data, backends: Mutex::default(), threads: Mutex::default() }
    }

    pub(super) fn add_backend(&self, pid: i32) {
        self.backends.lock().unwrap_or_else(PoisonError::into_inner).push(pid);
    }

    /// Where a further sampling thread is to put [`thread_cpu`] as it goes.
    pub(super) fn add_thread(&self) -> Arc<AtomicU64> {
        let clock = Arc::new(AtomicU64::new(0));
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&clock));
        clock
    }

    fn backends_cpu(&self) -> Result<Duration, String> {
        let data = self.data.as_deref().ok_or("the server is on another machine")?;
        let backends = self.backends.lock().unwrap_or_else(PoisonError::into_inner);
        backends.iter().try_fold(Duration::ZERO, |sum, pid| Ok(sum + backend_cpu(*pid, data)?))
    }
}

/// CPU time of the calling thread.
pub(super) fn thread_cpu() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// CPU time of a backend: its working directory is PGDATA, which no process in another container
/// can feign by its pid.
fn backend_cpu(pid: i32, data: &Path) -> Result<Duration, String> {
    let place = format!("/proc/{pid}/cwd");
    match std::fs::read_link(&place) {
        Ok(at) if at == data => {}
        Ok(at) => {
            return Err(format!(
                "process {pid} is no backend of this server: it works in {}",
                at.display()
            ));
        }
        Err(e) => return Err(format!("cannot read {place}: {e}")),
    }
    // Documentation/scheduler/sched-stats.rst: time on the CPU, in nanoseconds, is the first.
    let text = read(format!("/proc/{pid}/schedstat"))?;
    let nanoseconds = text.split_whitespace().next().and_then(|v| v.parse().ok());
    nanoseconds
        .map(Duration::from_nanos)
        .ok_or_else(|| format!("/proc/{pid}/schedstat holds `{}`", text.trim()))
}

struct Cost {
    observer: Arc<Observer>,
    columns: Vec<Column>,
    gap: Option<String>,
}

pub(super) fn make(watched: &Watched) -> Result<Option<Box<dyn Probe>>, String> {
    let columns = ["sampler_cpu", "backends_cpu"]
        .into_iter()
        .map(|n| column(n, "s", Kind::Counter))
        .collect();
    Ok(Some(Box::new(Cost { observer: Arc::clone(&watched.observer), columns, gap: None })))
}

impl Probe for Cost {
    fn name(&self) -> &'static str {
        "observer"
    }

    fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Called on the sampler's thread, whose clock it reads.
    fn sample(&mut self) -> Result<Vec<Option<f64>>, String> {
        let threads = self.observer.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let others: u64 = threads.iter().map(|clock| clock.load(Ordering::Relaxed)).sum();
        drop(threads);
        let backends = match self.observer.backends_cpu() {
            Ok(time) => Some(time.as_secs_f64()),
            Err(why) => {
                self.gap =
                    Some(format!("what the server's backends spend on it is not known: {why}"));
                None
            }
        };
        Ok(vec![Some(thread_cpu().as_secs_f64() + float(others) / 1e9), backends])
    }

    fn gap(&self) -> Option<String> {
        self.gap.clone()
    }
}
