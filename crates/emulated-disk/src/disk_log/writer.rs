//! Writing a log.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use pgdyno_exec::files::nofollow;
use pgdyno_exec::monotonic::MonotonicTime;
use sha2::{Digest, Sha256};

use super::record::{Head, Line, Record, VERSION};
use crate::cache::{Cached, Data};

/// Returns the log of the disk in `directory`.
pub(crate) fn log_file(directory: &Path) -> PathBuf {
    directory.join("writes")
}

/// A log that is appended to.
pub(crate) struct LogWriter {
    file: BufWriter<File>,
    /// The file's length with what is buffered (bytes).
    length: u64,
    /// Where data of a hash begin.
    stored: HashMap<[u8; 16], u64>,
}

impl LogWriter {
    /// Creates the log of a disk of `size` bytes. The file must not exist.
    pub(crate) fn create(path: &Path, size: u64) -> io::Result<Self> {
        let file = File::options()
            .append(true)
            .create_new(true)
            .mode(0o600)
            .custom_flags(nofollow())
            .open(path)?;
        let file = BufWriter::with_capacity(1 << 20, file);
        let mut log = Self { file, length: 0, stored: HashMap::new() };
        log.put(&serde_json::to_vec(&Head { version: VERSION, size })?)?;
        log.put(b"\n")?;
        Ok(log)
    }

    pub(crate) fn append(&mut self, record: &Record<'_>) -> io::Result<()> {
        let t = MonotonicTime::now();
        match *record {
            Record::Write(Cached { sequence: n, offset, data: Data::Bytes(bytes) }) => {
                self.append_write(*n, t, *offset, bytes)
            }
            Record::Write(Cached { sequence, offset, data: Data::Zeros(length) }) => {
                let (n, offset, length) = (*sequence, *offset, *length);
                self.append_line(&Line::Discard { n, t, offset, length })
            }
            Record::Flush { number: n, covers, is_done: done } => {
                self.append_line(&Line::Flush { n, t, covers, done })
            }
            Record::Lost { number: n, write, kept } => {
                self.append_line(&Line::Lost { n, t, write, kept })
            }
        }
    }

    fn append_write(
        &mut self,
        n: u64,
        t: MonotonicTime,
        offset: u64,
        data: &[u8],
    ) -> io::Result<()> {
        let mut key = [0; 16];
        key.copy_from_slice(&Sha256::digest(data)[..16]);
        let at = self.stored.get(&key).copied();
        let (length, hash) = (data.len() as u64, hexadecimal(&key));
        self.append_line(&Line::Write { n, t, offset, length, hash, at })?;
        if at.is_none() {
            self.stored.insert(key, self.length);
            self.put(data)?;
        }
        Ok(())
    }

    fn append_line(&mut self, line: &Line) -> io::Result<()> {
        let mut line = serde_json::to_vec(line)?;
        line.push(b'\n');
        self.put(&line)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.length += bytes.len() as u64;
        self.file.write_all(bytes)
    }

    /// Writes what is buffered to the file.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Returns `bytes` in hexadecimal digits.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
