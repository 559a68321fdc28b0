//! A ledger in a file that is mapped into memory.
//!
//! It outlives the process without a system call a transaction. It does not survive a power loss of
//! the machine.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pgdyno_model::ledger::{Effect, Entry, History, State, Token};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::{ClientLedger, Ledger};
use crate::schedule::{Clock, Moment};

/// First word of the file.
const MAGIC: u64 = u64::from_le_bytes(*b"pgdyled1");
/// Words of a transaction: sequence, state, account, teller, branch, delta, when it was issued,
/// when its end was known (nanoseconds of the ledger's clock).
const RECORD: usize = 8;
const WORD: usize = size_of::<u64>();
/// Words of the head: magic, clients, transactions a client, the first sequence.
const HEAD: usize = 4096 / WORD;

/// States in the file; 0 is a transaction that was never issued.
const ISSUED: u64 = 1;
const COMMITTING: u64 = 2;
const ACKNOWLEDGED: u64 = 3;
const FAILED: u64 = 4;

/// The ledger of a load, in a file.
#[derive(Debug)]
pub struct MappedLedger {
    words: Arc<MappedWords>,
    clients: u32,
    capacity: usize,
    first: u64,
    epoch: Instant,
}

impl MappedLedger {
    /// Creates the file with room for `capacity` transactions of each of `clients` clients. Their
    /// sequences begin with `first`.
    ///
    /// All blocks are allocated: a write to a mapped block that the disk has no room for would end
    /// the process.
    ///
    /// # Errors
    /// The file exists, there is no room for it, or it cannot be mapped.
    pub fn create(path: &Path, clients: u32, capacity: usize, first: u64) -> io::Result<Self> {
        let too_large =
            || io::Error::new(io::ErrorKind::FileTooLarge, "the ledger is larger than memory");
        let count = usize::try_from(clients).map_err(|_| too_large())?;
        let words = count
            .checked_mul(capacity)
            .and_then(|n| n.checked_mul(RECORD))
            .and_then(|n| n.checked_add(HEAD))
            .ok_or_else(too_large)?;
        let file =
            File::options().read(true).write(true).create_new(true).mode(0o600).open(path)?;
        fallocate(&file, FallocateFlags::empty(), 0, (words * WORD) as u64)?;
        let words = MappedWords::map(&file, words)?;
        words.set(1, clients.into());
        words.set(2, capacity as u64);
        words.set(3, first);
        words.set(0, MAGIC);
        Ok(Self { words: Arc::new(words), clients, capacity, first, epoch: Instant::now() })
    }

    /// Converts `at` to the ledger's clock.
    pub fn time_of(&self, at: Instant) -> Duration {
        at.saturating_duration_since(self.epoch)
    }

    /// Returns the number of transactions acknowledged so far, for progress only.
    pub fn acknowledged(&self) -> u64 {
        let states = |client: usize| {
            let records =
                (0..self.capacity).map(move |n| HEAD + (client * self.capacity + n) * RECORD);
            records.map(|at| self.words.get(at + 1)).take_while(|state| *state != 0)
        };
        let all = (0..self.clients as usize).flat_map(states);
        all.filter(|state| *state == ACKNOWLEDGED).count() as u64
    }
}

impl Ledger for MappedLedger {
    fn open(&self, client: u32, clock: &Clock) -> io::Result<Box<dyn ClientLedger>> {
        if client >= self.clients {
            return Err(io::Error::other(format!("the ledger has no room for client {client}")));
        }
        let base = self.time_of(clock.instant(Moment(0)));
        Ok(Box::new(MappedClientLedger {
            words: Arc::clone(&self.words),
            begin: HEAD + client as usize * self.capacity * RECORD,
            capacity: self.capacity,
            used: 0,
            first: self.first,
            base: u64::try_from(base.as_nanos()).unwrap_or(u64::MAX),
        }))
    }
}

/// Part of the file that belongs to one client.
struct MappedClientLedger {
    words: Arc<MappedWords>,
    /// First word of the part.
    begin: usize,
    capacity: usize,
    used: usize,
    first: u64,
    /// Base of the load on the ledger's clock (nanoseconds).
    base: u64,
}

impl MappedClientLedger {
    /// Returns the first word of the current transaction.
    fn present(&self) -> usize {
        self.begin + self.used.saturating_sub(1) * RECORD
    }

    fn end(&self, state: u64, now: Moment) {
        let at = self.present();
        self.words.set(at + 7, self.base.saturating_add(now.0));
        self.words.set(at + 1, state);
    }
}

impl ClientLedger for MappedClientLedger {
    fn next(&self) -> u64 {
        self.first + self.used as u64
    }

    fn issued(&mut self, effect: &Effect, now: Moment) -> io::Result<()> {
        if self.used == self.capacity {
            return Err(io::Error::new(
                io::ErrorKind::StorageFull,
                "the ledger is full: the load lasted longer than it was made for",
            ));
        }
        let sequence = self.next();
        self.used += 1;
        let at = self.present();
        let Effect { account, teller, branch, delta } = effect;
        let values = [*account, *teller, *branch, *delta];
        for (word, value) in (at + 2..).zip(values) {
            self.words.set(word, value.cast_unsigned());
        }
        self.words.set(at + 6, self.base.saturating_add(now.0));
        self.words.set(at, sequence);
        self.words.set(at + 1, ISSUED);
        Ok(())
    }

    fn committing(&mut self) -> io::Result<()> {
        self.words.set(self.present() + 1, COMMITTING);
        Ok(())
    }

    fn acknowledged(&mut self, now: Moment) -> io::Result<()> {
        self.end(ACKNOWLEDGED, now);
        Ok(())
    }

    fn failed(&mut self, now: Moment) -> io::Result<()> {
        self.end(FAILED, now);
        Ok(())
    }
}

/// Reads a ledger's file, also after its writer crashed.
///
/// # Errors
/// The file cannot be read, or is not a ledger.
pub fn read(path: &Path) -> io::Result<History> {
    let damaged = |what: &str| {
        io::Error::new(io::ErrorKind::InvalidData, format!("{}: {what}", path.display()))
    };
    let file = File::open(path)?;
    let mut head = [0_u8; 4 * WORD];
    file.read_exact_at(&mut head, 0)?;
    let [magic, clients, capacity, _] = words_of::<4>(&head);
    if magic != MAGIC {
        return Err(damaged("no ledger of pgdyno's"));
    }
    let mut history = History::default();
    let mut record = [0_u8; RECORD * WORD];
    for client in 0..clients {
        let number = u32::try_from(client).map_err(|_| damaged("so many clients"))?;
        let mut entries = Vec::new();
        for n in 0..capacity {
            let at = HEAD as u64 + (client * capacity + n) * RECORD as u64;
            file.read_exact_at(&mut record, at * WORD as u64)?;
            let [sequence, state, account, teller, branch, delta, issued, ended] =
                words_of::<RECORD>(&record);
            let (state, at) = match state {
                0 => break,
                ISSUED => (State::Issued, issued),
                COMMITTING => (State::Unknown, issued),
                ACKNOWLEDGED => (State::Acknowledged, ended),
                FAILED => (State::Failed, ended),
                _ => return Err(damaged("a transaction in no known state")),
            };
            entries.push(Entry {
                token: Token { client: number, sequence },
                effect: Effect {
                    account: account.cast_signed(),
                    teller: teller.cast_signed(),
                    branch: branch.cast_signed(),
                    delta: delta.cast_signed(),
                },
                state,
                begun: Duration::from_nanos(issued),
                at: Duration::from_nanos(at),
            });
        }
        history.clients.push(entries);
    }
    Ok(history)
}

fn words_of<const N: usize>(bytes: &[u8]) -> [u64; N] {
    std::array::from_fn(|n| {
        let word = bytes.get(n * WORD..(n + 1) * WORD).and_then(|b| b.try_into().ok());
        u64::from_le_bytes(word.unwrap_or_default())
    })
}

/// Mapped words of a file.
#[derive(Debug)]
struct MappedWords {
    start: NonNull<AtomicU64>,
    count: usize,
}

// SAFETY: all access to the memory is by atomics, and the mapping belongs to no thread.
unsafe impl Send for MappedWords {}
// SAFETY: as above.
unsafe impl Sync for MappedWords {}

impl MappedWords {
    /// Maps the first `count` words of `file`, which is at least as long.
    fn map(file: &File, count: usize) -> io::Result<Self> {
        // SAFETY: the kernel chooses the address, so that no memory in use is replaced. The file is
        // this process's own: just made, open to nobody else, its blocks allocated, and never
        // shortened while it is mapped.
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

    fn get(&self, word: usize) -> u64 {
        u64::from_le(self.all()[word].load(Ordering::Acquire))
    }

    /// Stores in order: a reader that sees this word sees all words that were stored before it.
    fn set(&self, word: usize, value: u64) {
        self.all()[word].store(value.to_le(), Ordering::Release);
    }
}

impl Drop for MappedWords {
    fn drop(&mut self) {
        // SAFETY: this very mapping, whole; nobody borrows from it any more.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.count * WORD) };
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]
mod tests {
    use super::*;

    #[test]
    fn what_clients_did_is_read_back_from_the_file_alone() {
        let folder = std::env::temp_dir().join(format!("pgdyno-ledger-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("ledger");
        let ledger = MappedLedger::create(&path, 2, 3, 100).unwrap();
        let clock = Clock::new(Instant::now());
        let mut client = ledger.open(1, &clock).unwrap();
        assert!(ledger.open(2, &clock).is_err());
        let effect = Effect { account: 3, teller: 4, branch: 5, delta: -6 };
        type End<'a> = &'a dyn Fn(&mut dyn ClientLedger);
        let ends: [End<'_>; 3] = [
            &|c| c.committing().and_then(|()| c.acknowledged(Moment(7))).unwrap(),
            &|c| c.failed(Moment(8)).unwrap(),
            &|c| c.committing().unwrap(),
        ];
        for (n, end) in (0..).zip(ends) {
            assert_eq!(client.next(), 100 + n);
            client.issued(&effect, Moment(n)).unwrap();
            end(client.as_mut());
        }
        assert_eq!(
            client.issued(&effect, Moment(9)).unwrap_err().kind(),
            io::ErrorKind::StorageFull
        );
        assert_eq!(ledger.acknowledged(), 1);
        let mut other = ledger.open(0, &clock).unwrap();
        other.issued(&effect, Moment(1)).unwrap();

        // Read while it is mapped, as after a crash of the process nobody unmaps it.
        let history = read(&path).unwrap();
        let seen = |client: usize| -> Vec<(u64, State)> {
            history.clients[client].iter().map(|e| (e.token.sequence, e.state)).collect()
        };
        assert_eq!(seen(0), [(100, State::Issued)]);
        assert_eq!(
            seen(1),
            [(100, State::Acknowledged), (101, State::Failed), (102, State::Unknown)]
        );
        assert!(history.entries().all(|e| e.effect == effect));
        assert!(MappedLedger::create(&path, 1, 1, 1).is_err(), "a file that is there stays");
        std::fs::write(folder.join("other"), [0_u8; 64]).unwrap();
        assert_eq!(read(&folder.join("other")).unwrap_err().kind(), io::ErrorKind::InvalidData);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
