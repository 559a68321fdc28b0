//! Words of a file that is mapped into memory, and numbers that another process stores in such
//! words.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// The length of a word (bytes).
pub(crate) const WORD: usize = size_of::<u64>();
/// Words of a page.
pub(crate) const PAGE: usize = 4096 / WORD;

/// Numbers in a file of one page, which another process stores, each twice.
#[derive(Clone, Debug)]
pub(crate) struct PublishedNumbers {
    words: Arc<MappedWords>,
}

impl PublishedNumbers {
    /// Maps the file `path`.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::options().read(true).write(true).open(path)?;
        Ok(Self { words: Arc::new(MappedWords::map(&file, PAGE)?) })
    }

    /// Returns the number in `place`, counted from 0. It is read until both words are equal; of a
    /// store that was never finished it is the smaller one.
    #[inline]
    pub(crate) fn read(&self, place: usize) -> u64 {
        const TRIES: u32 = 1000;
        let at = place * 2;
        let read = || (self.words.get(at + 1), self.words.get(at));
        let mut tries = (0..TRIES).map(|_| read());
        let equal = tries.find(|(second, first)| first == second);
        let (second, first) = equal.unwrap_or_else(read);
        first.min(second)
    }
}

/// Mapped words of a file.
#[derive(Debug)]
pub(crate) struct MappedWords {
    start: NonNull<AtomicU64>,
    count: usize,
}

// SAFETY: all access to the memory is by atomics, and the mapping belongs to no thread.
unsafe impl Send for MappedWords {}
// SAFETY: as above.
unsafe impl Sync for MappedWords {}

impl MappedWords {
    /// Maps the first `count` words of `file`, which is at least as long.
    pub(crate) fn map(file: &File, count: usize) -> io::Result<Self> {
        // SAFETY: the kernel chooses the address, so that no memory in use is replaced. The file is
        // pgdyno's own, its blocks allocated, and never shortened while it is mapped: a ledger,
        // just made and open to nobody else, or numbers that a disk publishes, whose process only
        // writes to them.
        let start = unsafe {
            mmap(
                std::ptr::null_mut(),
                count * WORD,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::POPULATE,
                file,
                0,
            )?
        };
        let start =
            NonNull::new(start.cast()).ok_or_else(|| io::Error::other("mapped at address 0"))?;
        Ok(Self { start, count })
    }

    fn all(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is `count` words long, aligned to a page, readable and writable, and
        // lives as long as `self`; atomics may be shared.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.count) }
    }

    pub(crate) fn get(&self, word: usize) -> u64 {
        u64::from_le(self.all()[word].load(Ordering::Acquire))
    }

    /// Stores in order: a reader that sees this word sees all words that were stored before it.
    pub(crate) fn set(&self, word: usize, value: u64) {
        self.all()[word].store(value.to_le(), Ordering::Release);
    }
}

impl Drop for MappedWords {
    fn drop(&mut self) {
        // SAFETY: this very mapping, whole; nobody borrows from it any more.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.count * WORD) };
    }
}
