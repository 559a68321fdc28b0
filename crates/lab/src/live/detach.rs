//! Starts a run that goes on without the terminal.
//!
//! The caller calls [`detach`], which starts pgdyno anew and returns once that process has a live
//! file, or has ended. The new process calls [`leave_terminal`] first.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pgdyno_dataset::trust::Trust;
use pgdyno_exec::process::Identity;
pub use pgdyno_exec::program::leave_terminal;
use pgdyno_exec::program::start_detached;
use rustix::process::Signal;

use super::live_folder::{LOG, LiveFolder, RECORDS};
use pgdyno_provision::BenchError;
use pgdyno_provision::stores::open_store_trusting;

/// Interval at which the new process's live file is looked for.
const TICK: Duration = Duration::from_millis(50);
/// Time that the new process has to end after a signal.
const LIMIT: Duration = Duration::from_millis(1800);
/// Size up to which a log is returned (bytes).
const MOST_LOG: u64 = 1 << 20;

/// Outcome of [`detach`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Detached {
    /// The run goes on without the terminal.
    Running {
        run: String,
        pid: u32,
        /// The file that the run prints to.
        log: PathBuf,
    },
    /// The process ended before the run had a place in the store.
    Ended {
        /// Output of the process, its first 1 MiB.
        output: String,
    },
}

/// Starts `words`, a call of pgdyno that runs an experiment on the store at `store`, without the
/// terminal. Returns once the run has its place in the store, or the process has ended.
///
/// # Errors
/// The store cannot be opened, its live folder cannot be made, or the process cannot be started.
/// [`BenchError::Interrupted`] if `stop` became true first; the process was then asked to end.
pub fn detach(
    store: &Path,
    trust: &Trust,
    words: &[OsString],
    stop: &AtomicBool,
) -> Result<Detached, BenchError> {
    drop(open_store_trusting(store, trust)?);
    let folder = LiveFolder::make(store)?;
    // Its name until the run has an id.
    let name = format!("detached-{}{LOG}", std::process::id());
    let failed = |what, e| folder.failed(what, &name, e);
    let log = folder.replace(&name, b"").map_err(|e| failed("make", e))?;
    let mut child = start_detached(words, &log).map_err(|e| failed("start a process into", e))?;
    let pid = child.id();
    let process = i32::try_from(pid).ok().and_then(Identity::from_pid);
    loop {
        let has_ended = child.try_wait().map_err(|e| failed("wait for", e))?.is_some();
        if let Some(run) = process.and_then(|process| run_of(&folder, process)) {
            let (name, log) = (&name, format!("{run}{LOG}"));
            folder.rename(name, &log).map_err(|e| folder.failed("rename", name, e))?;
            return Ok(Detached::Running { log: folder.path_of(&log), run, pid });
        }
        if has_ended {
            let output = read(&folder, &name);
            folder.remove(&name).map_err(|e| failed("remove", e))?;
            return Ok(Detached::Ended { output });
        }
        if stop.load(Ordering::Relaxed) {
            if let Some(process) = process {
                process.signal(Signal::TERM);
                process.wait_gone(LIMIT);
            }
            return Err(BenchError::Interrupted);
        }
        std::thread::sleep(TICK);
    }
}

/// Returns the run that `process` works on, or worked on.
fn run_of(folder: &LiveFolder, process: Identity) -> Option<String> {
    let is_its = |run: &String| {
        let owner = folder.head(run).ok().flatten().map(|head| head.run.owner);
        owner.is_some_and(|owner| {
            (owner.pid, owner.started_ticks) == (process.pid(), process.started_ticks())
        })
    };
    folder.runs_with(RECORDS).ok()?.into_iter().find(is_its)
}

fn read(folder: &LiveFolder, name: &str) -> String {
    let read = |log: File| {
        let mut output = Vec::new();
        log.take(MOST_LOG).read_to_end(&mut output).map(|_| output)
    };
    let output = folder.file(name).and_then(read).unwrap_or_default();
    String::from_utf8_lossy(&output).into_owned()
}
