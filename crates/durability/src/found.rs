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
    /// None: what is acknowledged is durable. Else with `synchronous_commit = off`: how old at most an acknowledged
    /// transaction is that a crash takes: 3 × `wal_writer_delay` (PostgreSQL's documentation, "Asynchronous Commit").
    pub loses_at_most: Option<Duration>,
    /// When the fault struck, on the ledger's clock.
    pub struck_at: Duration,
}
