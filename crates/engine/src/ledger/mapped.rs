//! A ledger in a file that is mapped into memory.
//!
//! It outlives the process without a system call a transaction. It does not survive a power loss of
//! the machine.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pgdyno_model::ledger::{Effect, Entry, History, LogPositions, State, Token};
use rustix::fs::{FallocateFlags, fallocate};

use super::{ClientLedger, Ledger};
use crate::mapped_words::{MappedWords, PAGE, PublishedNumbers, WORD};
use crate::schedule::{Clock, Moment};

/// First word of the file.
const MAGIC: u64 = u64::from_le_bytes(*b"pgdyled2");
/// Words of a transaction: sequence, state, account, teller, branch, delta, when it was issued,
/// when its end was known (nanoseconds of the ledger's clock), the disk's newest event when COMMIT
/// was about to be sent, and when it was acknowledged (0 without a disk that is recorded).
const RECORD: usize = 10;
/// Words of the head: magic, clients, transactions a client, the first sequence.
const HEAD: usize = PAGE;

/// States in the file; 0 is a transaction that was never issued.
const ISSUED: u64 = 1;
const COMMITTING: u64 = 2;
const ACKNOWLEDGED: u64 = 3;
const FAILED: u64 = 4;

/// The ledger of a load, in a file.
#[derive(Debug)]
pub struct MappedLedger {
    words: Arc<MappedWords>,
    disk: Option<PublishedNumbers>,
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
        let words = Arc::new(words);
        Ok(Self { words, disk: None, clients, capacity, first, epoch: Instant::now() })
    }

    /// Notes with each COMMIT and each acknowledgement the number of the disk's newest event, which
    /// the disk keeps twice in the first words of the file `position`, a page long.
    ///
    /// # Errors
    /// The file cannot be opened or mapped.
    pub fn with_disk_position(mut self, position: &Path) -> io::Result<Self> {
        self.disk = Some(PublishedNumbers::open(position)?);
        Ok(self)
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
            disk: self.disk.clone(),
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
    disk: Option<PublishedNumbers>,
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

    /// Notes the disk's newest event in `word` of the current transaction.
    fn note_position(&self, word: usize) {
        if let Some(disk) = &self.disk {
            self.words.set(self.present() + word, disk.read(0));
        }
    }

    fn end(&self, state: u64, now: Moment) {
        let at = self.present();
        self.note_position(9);
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
        self.note_position(8);
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
    let mut history = History::default();
    records(path, &mut |client, entry, _| {
        let client = client as usize;
        history.clients.resize_with(history.clients.len().max(client + 1), Vec::new);
        history.clients[client].extend(entry);
    })?;
    Ok(history)
}

/// Reads from a ledger's file where the disk's log was as each transaction was sent and
/// acknowledged. Transactions whose COMMIT was never sent are left out.
///
/// # Errors
/// As [`read`].
pub fn read_positions(path: &Path) -> io::Result<BTreeMap<Token, LogPositions>> {
    let mut positions = BTreeMap::new();
    records(path, &mut |_, entry, [committing, acknowledged]| {
        if let Some(entry) = entry.filter(|entry| entry.state != State::Issued) {
            let acknowledged = (entry.state == State::Acknowledged).then_some(acknowledged);
            positions.insert(entry.token, LogPositions { committing, acknowledged });
        }
    })?;
    Ok(positions)
}

/// Gives `each` client with every transaction and its two positions, and once without one.
fn records(path: &Path, each: &mut dyn FnMut(u32, Option<Entry>, [u64; 2])) -> io::Result<()> {
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
    let mut record = [0_u8; RECORD * WORD];
    for client in 0..clients {
        let number = u32::try_from(client).map_err(|_| damaged("so many clients"))?;
        each(number, None, [0; 2]);
        for n in 0..capacity {
            let at = HEAD as u64 + (client * capacity + n) * RECORD as u64;
            file.read_exact_at(&mut record, at * WORD as u64)?;
            let [sequence, state, account, teller, branch, delta, issued, ended, positions @ ..] =
                words_of::<RECORD>(&record);
            let (state, at) = match state {
                0 => break,
                ISSUED => (State::Issued, issued),
                COMMITTING => (State::Unknown, issued),
                ACKNOWLEDGED => (State::Acknowledged, ended),
                FAILED => (State::Failed, ended),
                _ => return Err(damaged("a transaction in no known state")),
            };
            let entry = Entry {
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
            };
            each(number, Some(entry), positions);
        }
    }
    Ok(())
}

fn words_of<const N: usize>(bytes: &[u8]) -> [u64; N] {
    std::array::from_fn(|n| {
        let word = bytes.get(n * WORD..(n + 1) * WORD).and_then(|b| b.try_into().ok());
        u64::from_le_bytes(word.unwrap_or_default())
    })
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
        let position = folder.join("position");
        let store = |number: u64| {
            let words = [number.to_le_bytes(), number.to_le_bytes()].concat();
            let file = File::options().write(true).create(true).truncate(false).open(&position);
            let file = file.unwrap();
            file.set_len(4096).unwrap();
            file.write_all_at(&words, 0).unwrap();
        };
        store(40);
        let ledger = MappedLedger::create(&path, 2, 3, 100).unwrap();
        let ledger = ledger.with_disk_position(&position).unwrap();
        let clock = Clock::new(Instant::now());
        let mut client = ledger.open(1, &clock).unwrap();
        assert!(ledger.open(2, &clock).is_err());
        let effect = Effect { account: 3, teller: 4, branch: 5, delta: -6 };
        type End<'a> = &'a dyn Fn(&mut dyn ClientLedger);
        let ends: [End<'_>; 3] = [
            &|c| {
                c.committing().unwrap();
                store(300);
                c.acknowledged(Moment(7)).unwrap();
            },
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
        let positions = read_positions(&path).unwrap();
        let of = |sequence| positions.get(&Token { client: 1, sequence }).copied();
        let whole = LogPositions { committing: 40, acknowledged: Some(300) };
        assert_eq!(of(100), Some(whole));
        assert_eq!(of(102), Some(LogPositions { committing: 300, acknowledged: None }));
        assert_eq!(positions.len(), 3, "one was issued and never sent to be committed");
        assert!(MappedLedger::create(&path, 1, 1, 1).is_err(), "a file that is there stays");
        std::fs::write(folder.join("other"), [0_u8; 64]).unwrap();
        assert_eq!(read(&folder.join("other")).unwrap_err().kind(), io::ErrorKind::InvalidData);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
