//! Reading a log.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use super::record::{DataPlace, DiskEvent, EventKind, Head, Line, VERSION};

/// A log that cannot be read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum LogError {
    /// The log, or a file made from it, cannot be read or written.
    #[error("cannot {what} {}", path.display())]
    Io {
        /// The attempt, as a verb for the message.
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// The file is no disk log.
    #[error("{} is no log of an emulated disk", path.display())]
    NotALog { path: PathBuf },
    /// Another version of pgdyno wrote the log.
    #[error(
        "the disk log {} has version {found} of the format, and this pgdyno reads version \
         {VERSION}",
        path.display()
    )]
    Version { path: PathBuf, found: u32 },
    /// The image is one of another disk.
    #[error(
        "{} has {found} bytes, and the disk of the log {size}: it is not the image that the log \
         began with (help: that is `image-0` beside the log)",
        image.display()
    )]
    OtherDisk {
        image: PathBuf,
        /// Size of the image (bytes).
        found: u64,
        /// Size of the log's disk (bytes).
        size: u64,
    },
    /// A record is not as the format has it.
    #[error("the disk log {} is damaged after event {after}: {found}", path.display())]
    Damaged {
        path: PathBuf,
        /// The last event before the damage; 0 if there is none.
        after: u64,
        found: String,
    },
}

/// A log's events, without the data of its writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskLog {
    /// The disk's size (bytes).
    pub size: u64,
    /// Events of the disk, in order.
    pub events: Vec<DiskEvent>,
}

impl DiskLog {
    /// Reads the log at `path`. The data of its writes stay in the file.
    pub fn read(path: &Path) -> Result<Self, LogError> {
        let failed = |source| LogError::Io { what: "read", path: path.to_owned(), source };
        let mut file = BufReader::with_capacity(1 << 20, File::open(path).map_err(failed)?);
        let end = file.get_ref().metadata().map_err(failed)?.len();
        let mut line = Vec::new();
        let mut at = file.read_until(b'\n', &mut line).map_err(failed)? as u64;
        let not_a_log = || LogError::NotALog { path: path.to_owned() };
        let head: Head = serde_json::from_slice(&line).map_err(|_| not_a_log())?;
        if head.version != VERSION {
            return Err(LogError::Version { path: path.to_owned(), found: head.version });
        }
        let mut events: Vec<DiskEvent> = Vec::new();
        loop {
            line.clear();
            let read = file.read_until(b'\n', &mut line).map_err(failed)?;
            if read == 0 {
                return Ok(Self { size: head.size, events });
            }
            at += read as u64;
            let after = events.last().map_or(0, |event| event.number);
            let damaged = |found: String| LogError::Damaged { path: path.to_owned(), after, found };
            let record: Line = serde_json::from_slice(&line).map_err(|e| damaged(e.to_string()))?;
            let (event, stored) = event_of(record, at);
            at += stored;
            if at > end {
                return Err(damaged("the file ends within a write".into()));
            }
            if stored > 0 {
                file.seek_relative(i64::try_from(stored).unwrap_or(i64::MAX)).map_err(failed)?;
            }
            events.push(event);
        }
    }

    /// Returns the number of the newest event; 0 without events.
    pub fn newest(&self) -> u64 {
        self.events.last().map_or(0, |event| event.number)
    }
}

/// Returns the event of a line that ends at `at`, and the length of the data that follow it.
fn event_of(line: Line, at: u64) -> (DiskEvent, u64) {
    let mut stored = 0;
    let (number, t, kind) = match line {
        Line::Write { n, t, offset, length, hash, at: earlier } => {
            stored = if earlier.is_none() { length } else { 0 };
            let data = DataPlace::Stored { at: earlier.unwrap_or(at), hash };
            (n, t, EventKind::Write { offset, length, data })
        }
        Line::Discard { n, t, offset, length } => {
            (n, t, EventKind::Write { offset, length, data: DataPlace::Zeros })
        }
        Line::Flush { n, t, covers, done } => (n, t, EventKind::Flush { covers, is_done: done }),
        Line::Lost { n, t, write, kept } => (n, t, EventKind::Lost { write, kept }),
    };
    (DiskEvent { number, at: t, kind }, stored)
}
