//! Numbers that a disk publishes, for readers in other processes.
//!
//! The file holds each number twice, as two words of eight bytes. It is a page long, so that a
//! reader can map it. A reader that finds two different words met a store half done, and looks
//! again.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use pgdyno_exec::files::nofollow;

/// The length of the file (bytes).
const LENGTH: u64 = 4096;

/// Returns the file with the number of the newest event of the disk in `directory`.
pub fn position_file(directory: &Path) -> PathBuf {
    directory.join("position")
}

/// Returns the file with the flushes of the disk in `directory`: first the newest that was asked
/// for, then the newest of those that are done.
pub fn flush_file(directory: &Path) -> PathBuf {
    directory.join("flushes")
}

/// The file, as its writer has it.
pub(crate) struct Published {
    file: File,
}

impl Published {
    /// Creates the file. It must not exist.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let mut options = File::options();
        options.write(true).create_new(true).mode(0o600).custom_flags(nofollow());
        let file = options.open(path)?;
        file.write_all_at(&[0; LENGTH as usize], 0)?;
        Ok(Self { file })
    }

    /// Stores `number` in `place`, counted from 0. Called before the event that it numbers is
    /// answered.
    pub(crate) fn store(&self, place: u64, number: u64) -> io::Result<()> {
        let mut words = [0; 16];
        words[..8].copy_from_slice(&number.to_le_bytes());
        words[8..].copy_from_slice(&number.to_le_bytes());
        self.file.write_all_at(&words, place * 16)
    }
}

/// How far the flushes of a disk are.
#[derive(Default)]
pub(crate) struct FlushNumbers {
    /// Flushes that were asked for (count).
    begun: u64,
    /// The newest of them that is done.
    done: u64,
    /// Where other processes read these two.
    file: Option<Published>,
}

impl FlushNumbers {
    /// Publishes them in `file` from now on; none: nowhere.
    pub(crate) fn publish(&mut self, file: Option<Published>) -> io::Result<()> {
        if let Some(file) = &file {
            file.store(0, self.begun)?;
            file.store(1, self.done)?;
        }
        self.file = file;
        Ok(())
    }

    /// Numbers a flush that was asked for, from 1.
    pub(crate) fn begin(&mut self) -> io::Result<u64> {
        self.begun += 1;
        self.store(0, self.begun)?;
        Ok(self.begun)
    }

    /// Notes that flush `number` is done. Called before it is answered.
    pub(crate) fn complete(&mut self, number: u64) -> io::Result<()> {
        self.done = self.done.max(number);
        self.store(1, self.done)
    }

    fn store(&self, place: u64, number: u64) -> io::Result<()> {
        self.file.as_ref().map_or(Ok(()), |file| file.store(place, number))
    }
}
