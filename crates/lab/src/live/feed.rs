//! Writes the live file of a run.
//!
//! An event is one `write`, without fsync: after a power loss nobody watches. Work that reports
//! many times a second is written four times a second.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pgdyno_model::Failure;
use pgdyno_model::progress::{Event, Progress, Warning};
use pgdyno_model::record::SessionEnd;

use super::error::LiveError;
use super::live_folder::{LiveFolder, RECORDS, STOP, folder};

/// Interval between two events of one piece of work.
const WORKING_EVERY: Duration = Duration::from_millis(250);
/// Events that are kept before the run has its place in the store, at most (count).
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
    /// The work that was written last, and when it was written.
    working: Option<(Event, Instant)>,
}

enum Output {
    /// The run has no id yet: events are kept.
    Waiting(Vec<Event>),
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

    /// Writes the last event: how the run ended, and why it could not go on. Removes a request to
    /// stop.
    pub fn end(&self, end: SessionEnd, error: Option<Failure>) {
        self.write(&Event::Ended { end, error });
        let output = std::mem::replace(&mut self.state().output, Output::Closed);
        if let Output::Open(file) = output {
            // One that stays is removed when the run is gone on with.
            let _ = file.folder.remove(&format!("{}{STOP}", file.run));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes `event`, or keeps it until the run has its id. Warns the first time that this fails,
    /// and then writes no more.
    fn write(&self, event: &Event) {
        let mut state = self.state();
        if state.is_too_soon(event) {
            return;
        }
        let written = match (&mut state.output, event) {
            (Output::Waiting(kept), Event::Begun { run, .. }) => {
                let kept = std::mem::take(kept);
                LiveFile::begin(&self.store, &run.run, event, &kept)
                    .map(|file| state.output = Output::Open(file))
            }
            (Output::Waiting(kept), event) => {
                if kept.len() < MOST_KEPT {
                    kept.push(event.clone());
                }
                Ok(())
            }
            (Output::Open(file), event) => file.append(event),
            (Output::Closed, _) => Ok(()),
        };
        if let Err(error) = written {
            state.output = Output::Closed;
            drop(state);
            let (folder, reason) = (folder(&self.store), Failure::from(&error));
            self.inner.event(&Event::Warning(Warning::NotWatchable { folder, reason }));
        }
    }
}

impl Progress for Feed<'_> {
    fn event(&self, event: &Event) {
        self.inner.event(event);
        self.write(event);
        // Comes once a second while load runs, from the thread that waits for the load's end.
        if matches!(event, Event::Load(_)) {
            self.is_asked_to_stop();
        }
    }
}

impl State {
    /// Returns whether `event` repeats work that was written just now. Notes the work.
    fn is_too_soon(&mut self, event: &Event) -> bool {
        if !matches!(event, Event::Working { .. } | Event::Loading { .. }) {
            self.working = None;
            return false;
        }
        let share = event.share();
        if let Some((last, at)) = &self.working
            && is_same_work(last, event)
            && (last.share() == share
                || (share.is_some_and(|share| share < 1.0) && at.elapsed() < WORKING_EVERY))
        {
            return true;
        }
        self.working = Some((event.clone(), Instant::now()));
        false
    }
}

impl LiveFile {
    /// Makes the file of `run` with its `first` event and the events `kept` from before. Removes
    /// what earlier runs left in the folder.
    fn begin(store: &Path, run: &str, first: &Event, kept: &[Event]) -> Result<Self, LiveError> {
        let folder = LiveFolder::make(store)?;
        folder.clear_leftovers().map_err(|e| folder.failed("clear", "", e))?;
        let (name, stop) = (format!("{run}{RECORDS}"), format!("{run}{STOP}"));
        folder.remove(&stop).map_err(|e| folder.failed("remove", &stop, e))?;
        let mut lines = Vec::new();
        for event in std::iter::once(first).chain(kept) {
            lines.extend(line(event).map_err(|e| folder.failed("write", &name, e))?);
        }
        let file = folder.replace(&name, &lines).map_err(|e| folder.failed("make", &name, e))?;
        Ok(Self { folder, file, run: run.to_owned() })
    }

    fn append(&mut self, event: &Event) -> Result<(), LiveError> {
        let written = line(event).and_then(|line| self.file.write_all(&line));
        let name = || format!("{}{RECORDS}", self.run);
        written.map_err(|e| self.folder.failed("write", &name(), e))
    }
}

/// Returns whether two events report the same work.
fn is_same_work(one: &Event, other: &Event) -> bool {
    match (one, other) {
        (Event::Working { activity: a, .. }, Event::Working { activity: b, .. }) => a == b,
        (Event::Loading { data: a, .. }, Event::Loading { data: b, .. }) => a == b,
        _ => false,
    }
}

fn line(event: &Event) -> std::io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(event)?;
    line.push(b'\n');
    Ok(line)
}
