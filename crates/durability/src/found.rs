//! What was found in a database after a fault, and what should hold there.

use std::collections::BTreeMap;
use std::time::Duration;

use pgdyno_model::ledger::{Effect, Token};

/// Why something could not be observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unseen {
    /// The server says that what it should have read is damaged: that is a finding.
    Damaged(String),
    /// It could not be looked at: nothing is known.
    CouldNotRun(String),
    /// There is nothing to look at.
    NotApplicable(String),
}

/// An observation.
pub type Observed<T> = Result<T, Unseen>;

/// One row of the tokens' table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Which transaction left it.
    pub token: Token,
    /// What it says of the transaction.
    pub effect: Effect,
}

/// The write-ahead log's ends, as bytes since its beginning (an LSN).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wal {
    /// A position that a commit which was acknowledged lies behind.
    pub acknowledged: u64,
    /// Where recovery ended.
    pub recovered: u64,
}

/// What was found in a server that came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The tokens' table by a sequential scan, as it lies there: also what is there twice.
    pub rows: Observed<Vec<Row>>,
    /// The tokens by the table's primary key.
    pub index: Observed<Vec<Token>>,
    /// Accounts whose balance is not 0.
    pub accounts: Observed<BTreeMap<i64, i64>>,
    /// The same of tellers.
    pub tellers: Observed<BTreeMap<i64, i64>>,
    /// The same of branches.
    pub branches: Observed<BTreeMap<i64, i64>>,
    /// The system identifier before the fault and after it.
    pub system_identifier: Observed<(u64, u64)>,
    /// The log's ends.
    pub wal: Observed<Wal>,
    /// Lines of the server's log since the fault that tell of damage.
    pub log: Observed<Vec<String>>,
    /// What amcheck complains of in B-trees.
    pub btrees: Observed<Vec<String>>,
    /// What amcheck complains of in tables.
    pub heaps: Observed<Vec<String>>,
    /// What `pg_checksums --check` complains of, the server being down.
    pub checksums: Observed<Vec<String>>,
    /// Accounts, tellers and branches, by sequential scans.
    pub by_scan: Observed<Vec<TableRows>>,
    /// Accounts, tellers and branches, by their primary keys.
    pub by_key: Observed<Vec<TableRows>>,
    /// Entries of B-trees that lead to no tuple of their table.
    pub pointers: Observed<Vec<String>>,
    /// Tuples that the visibility map says more of than holds.
    pub visibility: Observed<Vec<String>>,
    /// Whether the server committed a write to each table.
    pub writes: Observed<()>,
    /// Whether the server started again after a clean stop.
    pub restarted: Observed<()>,
    /// Tables that lack that last write after the clean stop.
    pub unwritten: Observed<Vec<String>>,
    /// Accounts, tellers and branches after the clean stop, by sequential scans.
    pub after_restart: Observed<Vec<TableRows>>,
}

/// The rows of one table of the data set, counted by the server in one scan. They were loaded with
/// the keys 1, 2, 3, …, and no transaction adds, deletes or changes more than their balance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableRows {
    /// The table's name.
    pub table: String,
    /// Rows that were loaded (count).
    pub loaded: u64,
    /// Rows that are there (count).
    pub rows: u64,
    /// Different keys that are there (count).
    pub keys: u64,
    /// The lowest key; none without rows.
    pub lowest: Option<i64>,
    /// The highest key; none without rows.
    pub highest: Option<i64>,
    /// Rows with a constant column that is not as it was loaded (count).
    pub changed: u64,
    /// Some of what is wrong, in words.
    pub examples: Vec<String>,
}

/// What became of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Aftermath {
    /// It runs.
    Up(Box<Found>),
    /// It does not; what was seen.
    WillNotStart(String),
    /// Not even its filesystem can be mounted; what was seen.
    WillNotMount(String),
    /// The fault could not be brought about, or the load had ended before it; why.
    NotTried(String),
}

/// What the server's settings promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// None: what is acknowledged is durable. Else `synchronous_commit = off`.
    pub asynchronous: Option<AsynchronousCommit>,
    /// When the fault struck, on the ledger's clock.
    pub struck_at: Duration,
}

/// What is known of a server whose commits are acknowledged before they are flushed.
///
/// A crash takes acknowledged transactions that are at most 3 × `wal_writer_delay` old
/// (PostgreSQL's documentation, "Asynchronous Commit"): the WAL writer may leave WAL for up to
/// three of its cycles. The documentation counts sleep only. Each cycle also flushes, and waits for
/// a CPU to run on. So an honest disk with slow flushes, or an honest but busy machine, loses older
/// ones: they are *late*.
///
/// What decides between a late WAL writer and a storage that forgets is the server's own word. WAL
/// that the server reported as flushed must be there, however young. WAL that it never reported as
/// flushed was never the storage's to keep, however old: with
/// [`durable_before`](Self::durable_before) known, age alone condemns nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsynchronousCommit {
    /// The setting: how long the WAL writer sleeps in a cycle.
    pub wal_writer_delay: Duration,
    /// How long a flush of WAL took, measured under this load; none if it was not.
    pub flush_time: Option<Duration>,
    /// Commits acknowledged before this instant (ledger's clock) lay behind a WAL position that the
    /// server reported as flushed before the fault. None if nobody asked the server.
    pub durable_before: Option<Duration>,
}

impl AsynchronousCommit {
    /// How old the oldest loss may be by the documentation: three cycles of sleep.
    #[must_use]
    pub fn documented(&self) -> Duration {
        self.wal_writer_delay * 3
    }

    /// The same with each cycle's flush, as far as that was measured.
    #[must_use]
    pub fn with_flushes(&self) -> Duration {
        (self.wal_writer_delay + self.flush_time.unwrap_or_default()) * 3
    }
}
