//! Lists the runs that can be watched, and asks one to stop.

use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use pgdyno_exec::process::{Identity, is_of_this_host};
use pgdyno_model::Failure;
use pgdyno_model::facts::Owner;
use pgdyno_model::progress::Event;
use pgdyno_model::record::SessionEnd;
use pgdyno_model::units::Epoch;
use rustix::process::Signal;

use super::error::LiveError;
use super::live_folder::{Head, LiveFolder, RECORDS, STOP, folder, is_held};
use pgdyno_provision::BenchError;

/// Length of a live file's end that is read to see whether the run ended (bytes): more than the
/// last record takes.
const TAIL: u64 = 64 << 10;

/// A run that has a live file.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveSummary {
    /// The run's id.
    pub run: String,
    /// The recipe's or the file's name.
    pub recipe: String,
    /// When the session began.
    pub started_at: Epoch,
    /// The process that works on the run.
    pub owner: Owner,
    /// Whether that process still runs.
    pub is_alive: bool,
    /// How the run ended, and why it could not go on; none while the run works, and if its process
    /// died.
    pub ended: Option<(SessionEnd, Option<Failure>)>,
}

/// Returns the runs of the store at `store` that have a live file, the newest first. Skips files
/// that are no live files.
///
/// # Errors
/// [`LiveError`]: the folder cannot be read, or belongs to somebody else.
pub fn runs(store: &Path) -> Result<Vec<LiveSummary>, BenchError> {
    Ok(listed(store)?)
}

fn listed(store: &Path) -> Result<Vec<LiveSummary>, LiveError> {
    let Some(folder) = LiveFolder::open(store)? else { return Ok(Vec::new()) };
    let names = folder.runs_with(RECORDS).map_err(|e| folder.failed("read", "", e))?;
    let mut runs: Vec<LiveSummary> =
        names.iter().filter_map(|run| summary(&folder, run).ok().flatten()).collect();
    runs.sort_by(|a, b| (b.started_at, &b.run).cmp(&(a.started_at, &a.run)));
    Ok(runs)
}

/// Returns the run that `named` means among those that have a live file: `latest`, its id, or the
/// beginning of its id.
///
/// # Errors
/// [`LiveError`]: no run has the name, or several have it.
pub fn find(store: &Path, named: &str) -> Result<LiveSummary, BenchError> {
    let mut runs = runs(store)?;
    if let Some(exact) = runs.iter().position(|run| run.run == named) {
        return Ok(runs.swap_remove(exact));
    }
    runs.retain(|run| named == "latest" || run.run.starts_with(named));
    if named == "latest" {
        runs.truncate(1);
    }
    match runs.len() {
        1 => Ok(runs.swap_remove(0)),
        0 => Err(LiveError::NotRunning { run: named.to_owned(), folder: folder(store) }.into()),
        _ => {
            let runs = runs.into_iter().map(|run| run.run).collect();
            Err(LiveError::Ambiguous { named: named.to_owned(), runs }.into())
        }
    }
}

/// Asks run `run` of the store at `store` to end after the trial in progress. The run sees the
/// request within about a second of load.
///
/// # Errors
/// [`LiveError`]: no process works on the run, or the caller may not ask it.
pub fn ask_to_stop(store: &Path, run: &str) -> Result<(), BenchError> {
    let found = running(store, run)?;
    let folder = LiveFolder::make(store)?;
    let name = format!("{}{STOP}", found.run);
    Ok(folder.touch(&name).map_err(|e| folder.failed("make", &name, e))?)
}

/// Sends SIGINT to the process of run `run` of the store at `store`: the run ends at once, and the
/// trial in progress is lost. The process must belong to the caller's account.
///
/// # Errors
/// [`LiveError`]: no process works on the run, or it belongs to another account.
pub fn interrupt(store: &Path, run: &str) -> Result<(), BenchError> {
    let found = running(store, run)?;
    let pid = found.owner.pid;
    if !is_of_this_host(&found.owner) {
        return Err(LiveError::OtherHost { run: found.run, pid }.into());
    }
    let gone = || LiveError::Gone { run: found.run.clone(), pid };
    // Whatever the file says: only the very process that it names, and one of ours.
    let process = Identity::from_pid(pid)
        .filter(|process| process.started_ticks() == found.owner.started_ticks)
        .ok_or_else(gone)?;
    let uid = std::fs::metadata(format!("/proc/{pid}")).map_err(|_| gone())?.uid();
    if uid != rustix::process::geteuid().as_raw() {
        return Err(LiveError::ForeignProcess { run: found.run, pid, uid }.into());
    }
    process.signal(Signal::INT);
    Ok(())
}

/// Returns run `run`, whose process must still work on it.
fn running(store: &Path, run: &str) -> Result<LiveSummary, LiveError> {
    let not_running = || LiveError::NotRunning { run: run.to_owned(), folder: folder(store) };
    let found = listed(store)?.into_iter().find(|one| one.run == run).ok_or_else(not_running)?;
    match found.is_alive && found.ended.is_none() {
        true => Ok(found),
        false => Err(LiveError::Gone { run: found.run, pid: found.owner.pid }),
    }
}

fn summary(folder: &LiveFolder, run: &str) -> io::Result<Option<LiveSummary>> {
    let Some(Head { run: head, .. }) = folder.head(run)? else { return Ok(None) };
    Ok(Some(LiveSummary {
        is_alive: is_held(&folder.file(&format!("{run}{RECORDS}"))?, &head.owner),
        ended: ended(folder, run)?,
        run: head.run,
        recipe: head.recipe,
        started_at: head.started_at,
        owner: head.owner,
    }))
}

/// Returns the last record of `run`, if it is the end.
fn ended(folder: &LiveFolder, run: &str) -> io::Result<Option<(SessionEnd, Option<Failure>)>> {
    let mut file = folder.file(&format!("{run}{RECORDS}"))?;
    let size = file.metadata()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(TAIL)))?;
    let mut tail = Vec::new();
    file.take(TAIL).read_to_end(&mut tail)?;
    let lines = tail.strip_suffix(b"\n").and_then(|lines| lines.rsplit(|b| *b == b'\n').next());
    Ok(match lines.and_then(|last| serde_json::from_slice(last).ok()) {
        Some(Event::Ended { end, error }) => Some((end, error)),
        _ => None,
    })
}
