//! Reads the live file of a run while it grows.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use pgdyno_exec::beneath::FileIdentity;
use pgdyno_model::live::LiveRun;
use pgdyno_model::progress::Event;

use super::error::LiveError;
use super::live_folder::{Head, LONGEST_LINE, LiveFolder, RECORDS, folder, is_held, is_run_id};
use pgdyno_provision::BenchError;

/// Bytes that one poll reads at most: a week of load is read in a few polls.
const MOST_AT_ONCE: u64 = 32 << 20;

/// Follows the live file of one run, from its first record on.
#[derive(Debug)]
pub struct Follower {
    folder: LiveFolder,
    name: String,
    run: LiveRun,
    file: File,
    identity: FileIdentity,
    /// Bytes that were read so far (count).
    offset: u64,
    /// The beginning of a line whose end was not written yet.
    partial: Vec<u8>,
    /// Whether the line that is read is too long, and skipped.
    is_skipping: bool,
    skipped: u64,
}

impl Follower {
    /// Begins to follow run `run` of the store at `store`.
    ///
    /// # Errors
    /// [`LiveError`]: the run has no live file, or the file cannot be read.
    pub fn open(store: &Path, run: &str) -> Result<Self, BenchError> {
        let not_running = || LiveError::NotRunning { run: run.to_owned(), folder: folder(store) };
        let live = LiveFolder::open(store)?.filter(|_| is_run_id(run)).ok_or_else(not_running)?;
        let name = format!("{run}{RECORDS}");
        let (head, file) = match open(&live, run, &name) {
            Err(LiveError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Err(not_running().into());
            }
            opened => opened?,
        };
        let identity =
            FileIdentity::from_file(&file).map_err(|e| live.failed("look at", &name, e))?;
        Ok(Self {
            folder: live,
            name,
            run: head,
            file,
            identity,
            offset: 0,
            partial: Vec::new(),
            is_skipping: false,
            skipped: 0,
        })
    }

    /// Returns the run, as its first record has it.
    pub fn run(&self) -> &LiveRun {
        &self.run
    }

    /// Returns whether the run's process still runs. If it does not and the file has no last
    /// record, the run died.
    pub fn is_alive(&self) -> bool {
        is_held(&self.file, &self.run.owner)
    }

    /// Returns the lines that were no record, or too long (count).
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Returns the events that were written since the last poll, each of them whole. If another
    /// file took the place of the first, as when the run is resumed, its records come from the
    /// beginning: [`Event::Begun`] again.
    ///
    /// # Errors
    /// [`LiveError`]: the file cannot be read.
    pub fn poll(&mut self) -> Result<Vec<Event>, BenchError> {
        self.follow_replacement()?;
        let mut bytes = Vec::new();
        let read = self.file.by_ref().take(MOST_AT_ONCE).read_to_end(&mut bytes);
        read.map_err(|e| self.folder.failed("read", &self.name, e))?;
        self.offset += bytes.len() as u64;
        let mut records = Vec::new();
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.add(part, &mut records);
        }
        Ok(records)
    }

    /// Takes the next part of the file: a line's end, or its beginning at the end of the file.
    fn add(&mut self, part: &[u8], records: &mut Vec<Event>) {
        let is_whole = part.ends_with(b"\n");
        if (self.partial.len() + part.len()) as u64 > LONGEST_LINE {
            self.is_skipping = true;
            self.partial.clear();
        }
        if !self.is_skipping {
            self.partial.extend_from_slice(part);
        }
        if !is_whole {
            return;
        }
        match serde_json::from_slice(&self.partial) {
            Ok(record) if !self.is_skipping => records.push(record),
            _ => self.skipped += 1,
        }
        self.partial.clear();
        self.is_skipping = false;
    }

    /// Begins again if another file has the name, or the file is shorter than the part that was
    /// read. A file that was removed is read to its end.
    fn follow_replacement(&mut self) -> Result<(), LiveError> {
        let now = self.folder.identity(&self.name);
        let is_same = |(identity, size)| identity == self.identity && size >= self.offset;
        if now.map_or(true, is_same) {
            return Ok(());
        }
        let run = self.run.run.clone();
        let (head, file) = open(&self.folder, &run, &self.name)?;
        self.identity = FileIdentity::from_file(&file)
            .map_err(|e| self.folder.failed("look at", &self.name, e))?;
        (self.run, self.file, self.offset) = (head, file, 0);
        self.partial.clear();
        self.is_skipping = false;
        Ok(())
    }
}

/// Opens the live file `name` of `run`, and reads its first record.
fn open(folder: &LiveFolder, run: &str, name: &str) -> Result<(LiveRun, File), LiveError> {
    let failed = |e| folder.failed("read", name, e);
    let file = folder.file(name).map_err(failed)?;
    let head = folder.head(run).map_err(failed)?;
    match head {
        Some(Head { run, is_readable: true }) => Ok((run, file)),
        Some(_) => Err(LiveError::OtherVersion { run: run.to_owned() }),
        None => Err(LiveError::NoRecord { path: folder.path_of(name) }),
    }
}
