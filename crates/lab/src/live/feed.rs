//! Writes the live file of a run.
//!
//! A record is one `write`, without fsync: after a power loss nobody watches. Work that reports
//! many times a second is written four times a second.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use pgdyno_exec::causes::with_causes;
use pgdyno_model::live::{LiveRecord, LiveRun};
use pgdyno_model::progress::{Event, Progress, Warning};
use pgdyno_model::record::SessionEnd;
use pgdyno_model::units::Epoch;
use pgdyno_report::progress::live_record;

use super::error::LiveError;
use super::live_folder::{LiveFolder, RECORDS, STOP, folder};

/// Interval between two records of one piece of work.
const WORKING_EVERY: Duration = Duration::from_millis(250);
/// Records that are kept before the run has its place in the store, at most (count).
const MOST_KEPT: usize = 1000;

/// Passes progress events on, and writes them to the live file of a run on a store.
pub struct Feed<'a> {
    inner: &'a dyn Progress,
    store: PathBuf,
    state: Mutex<State>,
    is_asked: AtomicBool,
}

struct State {
    output: Output,
    /// The work that was written last, its share, and when it was written.
    working: Option<(String, Option<f64>, Instant)>,
}

enum Output {
    /// The run has no id yet: records are kept.
    Waiting(Vec<LiveRecord>),
    Open(LiveFile),
    /// The file cannot be written, or the run is over.
    Closed,
}

struct LiveFile {
    folder: LiveFolder,
    file: File,
    run: String,
}

impl<'a> Feed<'a> {
    /// Wraps `inner` for a run on the store at `store`.
    pub fn new(inner: &'a dyn Progress, store: &Path) -> Self {
        let state = State { output: Output::Waiting(Vec::new()), working: None };
        Self {
            inner,
            store: store.to_owned(),
            state: Mutex::new(state),
            is_asked: AtomicBool::new(false),
        }
    }

    /// Returns whether somebody asked the run to end after the trial in progress. Tells watchers of
    /// the request the first time.
    pub fn is_asked_to_stop(&self) -> bool {
        if self.is_asked.load(Ordering::Relaxed) {
            return true;
        }
        let has_request = match &self.state().output {
            Output::Open(file) => file.folder.has(&format!("{}{STOP}", file.run)),
            Output::Waiting(_) | Output::Closed => false,
        };
        if has_request && !self.is_asked.swap(true, Ordering::Relaxed) {
            self.event(&Event::Stopping);
        }
        has_request
    }

    /// Writes the last record: how the run ended, and why it could not go on. Removes a request to
    /// stop.
    pub fn end(&self, end: SessionEnd, error: Option<String>) {
        let state: &'static str = end.into();
        self.write(LiveRecord::Ended { state: state.to_owned(), error });
        let output = std::mem::replace(&mut self.state().output, Output::Closed);
        if let Output::Open(file) = output {
            // One that stays is removed when the run is gone on with.
            let _ = file.folder.remove(&format!("{}{STOP}", file.run));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes `record`, or keeps it until the run has its id. Warns the first time that this
    /// fails, and then writes no more.
    fn write(&self, record: LiveRecord) {
        let mut state = self.state();
        if state.is_too_soon(&record) {
            return;
        }
        let written = match (&mut state.output, record) {
            (Output::Waiting(kept), LiveRecord::Begun(run)) => {
                let kept = std::mem::take(kept);
                LiveFile::begin(&self.store, run, kept)
                    .map(|file| state.output = Output::Open(file))
            }
            (Output::Waiting(kept), record) => {
                if kept.len() < MOST_KEPT {
                    kept.push(record);
                }
                Ok(())
            }
            (Output::Open(file), record) => file.append(&record),
            (Output::Closed, _) => Ok(()),
        };
        if let Err(error) = written {
            state.output = Output::Closed;
            drop(state);
            let (folder, reason) = (folder(&self.store), with_causes(&error));
            self.inner.event(&Event::Warning(Warning::NotWatchable { folder, reason }));
        }
    }
}

impl Progress for Feed<'_> {
    fn event(&self, event: &Event<'_>) {
        self.inner.event(event);
        if let Some(record) = live_record(event, Epoch::from_time(SystemTime::now())) {
            self.write(record);
        }
        // Comes once a second while load runs, from the thread that waits for the load's end.
        if matches!(event, Event::Load(_)) {
            self.is_asked_to_stop();
        }
    }
}

impl State {
    /// Returns whether `record` repeats work that was written just now. Notes the work.
    fn is_too_soon(&mut self, record: &LiveRecord) -> bool {
        let LiveRecord::Working { what, share, .. } = record else {
            self.working = None;
            return false;
        };
        if let Some((last, done, at)) = &self.working
            && last == what
            && (done == share
                || (share.is_some_and(|share| share < 1.0) && at.elapsed() < WORKING_EVERY))
        {
            return true;
        }
        self.working = Some((what.clone(), *share, Instant::now()));
        false
    }
}

impl LiveFile {
    /// Makes the file of `run` with its first record and the records `kept` from before. Removes
    /// what earlier runs left in the folder.
    fn begin(store: &Path, run: LiveRun, kept: Vec<LiveRecord>) -> Result<Self, LiveError> {
        let folder = LiveFolder::make(store)?;
        folder.clear_leftovers().map_err(|e| folder.failed("clear", "", e))?;
        let id = run.run.clone();
        let (name, stop) = (format!("{id}{RECORDS}"), format!("{id}{STOP}"));
        folder.remove(&stop).map_err(|e| folder.failed("remove", &stop, e))?;
        let mut lines = Vec::new();
        for record in std::iter::once(LiveRecord::Begun(run)).chain(kept) {
            lines.extend(line(&record).map_err(|e| folder.failed("write", &name, e))?);
        }
        let file = folder.replace(&name, &lines).map_err(|e| folder.failed("make", &name, e))?;
        Ok(Self { folder, file, run: id })
    }

    fn append(&mut self, record: &LiveRecord) -> Result<(), LiveError> {
        let written = line(record).and_then(|line| self.file.write_all(&line));
        let name = || format!("{}{RECORDS}", self.run);
        written.map_err(|e| self.folder.failed("write", &name(), e))
    }
}

fn line(record: &LiveRecord) -> std::io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(record)?;
    line.push(b'\n');
    Ok(line)
}
