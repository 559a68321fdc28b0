//! The write log: records every write in order, and rebuilds the disk as of any of them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use pgdyno_exec::files::nofollow;
use serde::{Deserialize, Serialize};

use super::cache::{Cached, Data};
use super::medium::Medium;

/// Returns the log of the disk in `directory`.
pub(super) fn write_log_of(directory: &Path) -> PathBuf {
    directory.join("writes")
}

/// An event on the disk.
pub(super) enum Record<'a> {
    /// A write, as far as it reached the disk.
    Write(&'a Cached),
    /// A flush, done after this number of writes.
    Flush { after: u64 },
    /// A cut lost a write, but for its first `kept` bytes.
    Lost { write: u64, kept: u64 },
}

/// The head of a record, one line of JSON before its bytes.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Head {
    Write { n: u64, offset: u64, length: u64 },
    Discard { n: u64, offset: u64, length: u64 },
    Flush { after: u64 },
    Lost { n: u64, kept: u64 },
}

/// The log's file, which is appended to.
pub(super) struct WriteLog {
    file: BufWriter<File>,
}

impl WriteLog {
    /// Creates a log. The file must not exist.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let file = File::options()
            .append(true)
            .create_new(true)
            .mode(0o600)
            .custom_flags(nofollow())
            .open(path)?;
        Ok(Self { file: BufWriter::with_capacity(1 << 20, file) })
    }

    pub(super) fn append(&mut self, record: &Record<'_>) -> io::Result<()> {
        let (head, bytes): (Head, &[u8]) = match record {
            Record::Write(Cached { sequence, offset, data }) => match data {
                Data::Bytes(bytes) => {
                    (Head::Write { n: *sequence, offset: *offset, length: data.length() }, bytes)
                }
                Data::Zeros(length) => {
                    (Head::Discard { n: *sequence, offset: *offset, length: *length }, &[])
                }
            },
            Record::Flush { after } => (Head::Flush { after: *after }, &[]),
            Record::Lost { write, kept } => (Head::Lost { n: *write, kept: *kept }, &[]),
        };
        let mut head = serde_json::to_vec(&head)?;
        head.push(b'\n');
        self.file.write_all(&head)?;
        self.file.write_all(bytes)
    }

    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A summary of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogFacts {
    /// The newest write.
    pub writes: u64,
    /// The numbers of the writes after which the disk was flushed, in order.
    pub flushed_after: Vec<u64>,
}

/// Reads through a log: `each` gets every write up to `up_to` that no cut lost, whole or in part.
fn replay(
    log: &Path,
    up_to: u64,
    each: &mut dyn FnMut(u64, Data) -> io::Result<()>,
) -> io::Result<LogFacts> {
    // A cut comes after the writes that it loses; whether it counts is known only when it is found.
    let mut facts = LogFacts::default();
    let mut lost: BTreeMap<u64, u64> = BTreeMap::new();
    let mut newest = 0;
    read(log, &mut |head, _| {
        match head {
            Head::Write { n, .. } | Head::Discard { n, .. } => newest = *n,
            Head::Flush { after } => facts.flushed_after.push(*after),
            // The cut came after write `newest`: a disk that had no more writes than `up_to` may
            // not have seen it.
            Head::Lost { n, kept } if newest < up_to => {
                lost.insert(*n, *kept);
            }
            Head::Lost { .. } => {}
        }
        Ok(())
    })?;
    facts.writes = newest;
    read(log, &mut |head, bytes| {
        let (n, offset, data) = match head {
            Head::Write { n, offset, .. } => (*n, *offset, Data::Bytes(bytes.into())),
            Head::Discard { n, offset, length } => (*n, *offset, Data::Zeros(*length)),
            Head::Flush { .. } | Head::Lost { .. } => return Ok(()),
        };
        match lost.get(&n) {
            _ if n > up_to => Ok(()),
            None => each(offset, data),
            Some(0) => Ok(()),
            Some(&kept) => each(offset, data.first(kept)),
        }
    })?;
    Ok(facts)
}

fn read(log: &Path, each: &mut dyn FnMut(&Head, &[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut file = BufReader::with_capacity(1 << 20, File::open(log)?);
    let mut line = Vec::new();
    let mut bytes = Vec::new();
    loop {
        line.clear();
        if io::BufRead::read_until(&mut file, b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let head: Head = serde_json::from_slice(&line)?;
        bytes.clear();
        if let Head::Write { length, .. } = &head {
            let read = (&mut file).take(*length).read_to_end(&mut bytes)?;
            if read as u64 != *length {
                let told = format!("{} ends within a write", log.display());
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, told));
            }
        }
        each(&head, &bytes)?;
    }
}

/// Reads the summary of `log`.
///
/// # Errors
/// It cannot be read, or is no write log.
pub fn log_facts(log: &Path) -> io::Result<LogFacts> {
    replay(log, 0, &mut |_, _| Ok(()))
}

/// Makes `image`, which must not exist, a disk of `size` bytes as it was after write `n` of `log`:
/// every write up to it in order, but for those that a cut before lost.
///
/// # Errors
/// The log cannot be read, or the image cannot be written.
pub fn image_at(log: &Path, size: u64, n: u64, image: &Path) -> io::Result<()> {
    let mut file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .custom_flags(nofollow())
        .open(image)?;
    file.set_len(size)?;
    replay(log, n, &mut |offset, data| match data {
        Data::Bytes(bytes) => file.write_all_at(&bytes, offset),
        Data::Zeros(length) => file.zero_at(offset, length),
    })?;
    Ok(())
}
