//! Observations of a database after a fault, and what its settings promise.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use pgdyno_model::ledger::{Effect, Token};

/// Reason why an observation is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unseen {
    /// The server reported damage when it was read. This is a finding.
    Damaged(String),
    /// The observation could not be made. Nothing is known.
    CouldNotRun(String),
    /// There is nothing to observe, such as checksums in a cluster without them.
    NotApplicable(String),
}

/// Observation, or the reason why it is missing.
pub type Observed<T> = Result<T, Unseen>;

/// One row of the tokens' table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Transaction that left the row.
    pub token: Token,
    /// Changes of the transaction, as the row has them.
    pub effect: Effect,
}

/// The field of a transaction's [`Effect`] that is the key of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffectKey {
    /// [`Effect::account`].
    Account,
    /// [`Effect::teller`].
    Teller,
    /// [`Effect::branch`].
    Branch,
}

impl EffectKey {
    /// Returns the key that `effect` has.
    pub fn key(self, effect: &Effect) -> i64 {
        match self {
            Self::Account => effect.account,
            Self::Teller => effect.teller,
            Self::Branch => effect.branch,
        }
    }
}

/// Amounts of one kind of row, which transactions add to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Amounts {
    /// The kind of row, as text: `account`.
    pub holder: &'static str,
    /// Which key of a transaction names the row.
    pub key: EffectKey,
    /// Amounts that are not 0, by key.
    pub by_key: Observed<BTreeMap<i64, i64>>,
}

/// Numbers that transactions took from one sequence, each with its token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// The number at which the sequence stands: it gives higher ones only.
    pub last: i64,
    /// The highest number of a row; none without rows.
    pub highest: Option<i64>,
    /// Rows beyond the number of different numbers (count).
    pub repeated: i64,
}

/// The write-ahead log's ends, as bytes since its beginning (an LSN).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wal {
    /// Position before which an acknowledged commit ends.
    pub acknowledged: u64,
    /// Position at which recovery ended.
    pub recovered: u64,
}

/// Contents of a database: its rows, and what the server's own checks say of its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// Rows of the tokens' table by a sequential scan, duplicates included.
    pub rows: Observed<Vec<Row>>,
    /// The tokens by the table's primary key.
    pub index: Observed<Vec<Token>>,
    /// Amounts that transactions added to rows beside the tokens' table, one item a kind of row.
    pub amounts: Vec<Amounts>,
    /// Numbers that the tokens have from a sequence.
    pub numbers: Observed<Numbers>,
    /// Complaints about the workload's conditions; not applicable where it has none.
    pub conditions: Observed<Vec<String>>,
    /// Tables of the data set, by sequential scans.
    pub by_scan: Observed<Vec<TableRows>>,
    /// Tables of the data set, by their primary keys.
    pub by_key: Observed<Vec<TableRows>>,
    /// Complaints of amcheck about B-trees.
    pub btrees: Observed<Vec<String>>,
    /// Complaints of amcheck about tables.
    pub heaps: Observed<Vec<String>>,
    /// Entries of B-trees that lead to no tuple of their table, or to one that another row takes
    /// later.
    pub pointers: Observed<Vec<String>>,
    /// Tuples that contradict the visibility map: a page marked all-visible hides its dead and
    /// uncommitted tuples from vacuum and index-only scans.
    pub visibility: Observed<Vec<String>>,
}

impl Contents {
    /// Returns the tokens that are there; none where the table could not be read.
    pub fn tokens(&self) -> Option<BTreeSet<Token>> {
        self.rows.as_ref().ok().map(|rows| tokens(rows))
    }
}

pub(crate) fn tokens(rows: &[Row]) -> BTreeSet<Token> {
    rows.iter().map(|row| row.token).collect()
}

/// Objects of a database, each as text with its definition.
pub type Objects = BTreeSet<String>;

/// Objects of all databases, by the database's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Objects before the fault, when each database could be read.
    pub before: BTreeMap<String, Objects>,
    /// Objects afterwards.
    pub after: BTreeMap<String, Observed<Objects>>,
}

/// Observations in a server that came back after a fault.
///
/// A table is kept once its changes have outlived a clean stop too: until then its pages may be in
/// the server's memory alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Contents once recovery had ended.
    pub recovered: Contents,
    /// The system identifier before the fault and after it.
    pub system_identifier: Observed<(u64, u64)>,
    /// Ends of the write-ahead log.
    pub wal: Observed<Wal>,
    /// Lines of the server's log since the fault that report damage.
    pub log: Observed<Vec<String>>,
    /// Whether the server committed a write to each table.
    pub writes: Observed<()>,
    /// Complaints of `pg_checksums --check`, run while the server is down.
    pub checksums: Observed<Vec<String>>,
    /// Contents after a clean stop and a second start; *damaged* if the server did not start.
    pub restarted: Observed<Contents>,
    /// Tables that lack that last write after the clean stop.
    pub unwritten: Observed<Vec<String>>,
    /// Objects of all databases before the fault and after the second start.
    pub objects: Observed<Census>,
    /// Complaints about the databases beside the load's: what connecting said, and amcheck.
    pub others: Observed<Vec<String>>,
}

impl Found {
    /// Returns the tokens that are there in all that was seen; none where their table could not be
    /// read after recovery.
    pub fn tokens(&self) -> Option<BTreeSet<Token>> {
        let mut there = self.recovered.tokens()?;
        if let Some(again) = self.restarted.as_ref().ok().and_then(Contents::tokens) {
            there.retain(|token| again.contains(token));
        }
        Some(there)
    }
}

/// The rows of one table of the data set, counted by the server in one scan. They were loaded with
/// the keys 1, 2, 3, …, and no transaction adds, deletes or changes more than their amount.
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
    /// Examples of wrong rows, as text.
    pub examples: Vec<String>,
}

/// State of the server after the fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Aftermath {
    /// The server runs.
    Up(Box<Found>),
    /// The server does not start; the last lines of its log.
    WillNotStart(String),
    /// The filesystem cannot be mounted; the error.
    WillNotMount(String),
    /// The fault could not be injected, or the load had ended before; the reason.
    NotTried(String),
}

/// Durability that the server's settings promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// None if acknowledged commits are durable; set for `synchronous_commit = off`.
    pub asynchronous: Option<AsynchronousCommit>,
    /// Time of the fault, on the ledger's clock.
    pub struck_at: Duration,
}

/// Bounds for a server that acknowledges commits before it flushes them.
///
/// A crash takes acknowledged transactions that are at most 3 × `wal_writer_delay` old
/// (PostgreSQL's documentation, "Asynchronous Commit"): the WAL writer may leave WAL for up to
/// three of its cycles. The documentation counts sleep only. Each cycle also flushes, and waits for
/// a CPU to run on. So an honest disk with slow flushes, or an honest but busy machine, loses older
/// ones: they are *late*.
///
/// The server's own word decides between a late WAL writer and a storage that forgets. WAL that the
/// server reported as flushed must be there, however young. WAL that it never reported as flushed
/// was never the storage's to keep, however old: with [`durable_before`](Self::durable_before)
/// known, age alone condemns nobody.
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
    /// Returns the greatest age of a loss that the documentation allows: three cycles of sleep.
    pub fn documented(&self) -> Duration {
        self.wal_writer_delay * 3
    }

    /// Returns that age with the measured flush of each cycle added.
    pub fn with_flushes(&self) -> Duration {
        (self.wal_writer_delay + self.flush_time.unwrap_or_default()) * 3
    }
}
