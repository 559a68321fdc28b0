//! Flushes of the disk under a server's WAL, by which the commits of a load are judged.

use std::io;
use std::path::Path;

use crate::mapped_words::PublishedNumbers;

/// How far the flushes of a disk are, as its process publishes it in a file. Reading takes no
/// system call.
#[derive(Clone, Debug)]
pub struct DiskFlushes {
    numbers: PublishedNumbers,
}

impl DiskFlushes {
    /// Maps the file `path`, which begins with the number of the newest flush that was asked for
    /// and that of the newest one that is done. Each is there twice, and the file is a page long.
    ///
    /// # Errors
    /// The file cannot be opened or mapped.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { numbers: PublishedNumbers::open(path)? })
    }

    /// Returns the number of the newest flush that was asked for.
    #[inline]
    pub(crate) fn begun(&self) -> u64 {
        self.numbers.read(0)
    }

    /// Returns the number of the newest flush that is done.
    #[inline]
    pub(crate) fn done(&self) -> u64 {
        self.numbers.read(1)
    }
}
