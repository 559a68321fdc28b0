//! The ledger: transactions that clients sent to a server and acknowledgements that they received,
//! kept outside of the server.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Unique name of one transaction of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Token {
    /// The client's number, from 0.
    pub client: u32,
    /// The transaction's number among the client's; each is one more than the one before.
    pub sequence: u64,
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "({}, {})", self.client, self.sequence)
    }
}

/// Effect of a transaction: TPC-B's one amount, added to an account, a teller and a branch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effect {
    /// The account (`aid`).
    pub account: i64,
    /// The teller (`tid`).
    pub teller: i64,
    /// The branch (`bid`).
    pub branch: i64,
    /// The amount.
    pub delta: i64,
}

/// State of a transaction, as its client knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Begun, COMMIT never sent: the transaction must not be there.
    Issued,
    /// COMMIT acknowledged: the transaction must be there.
    Acknowledged,
    /// Refused by the server: the transaction must not be there.
    Failed,
    /// COMMIT sent and never answered: the transaction may be there, whole, or not at all.
    Unknown,
}

/// One transaction in the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Name of the transaction.
    pub token: Token,
    /// Effect that the transaction has once it is committed.
    pub effect: Effect,
    /// Latest state that the client knows.
    pub state: State,
    /// Time of the transaction's begin, on the ledger's own clock: nothing of it was sent before.
    pub begun: Duration,
    /// Time at which the state was known, on the ledger's own clock; for an open transaction, the
    /// time of its begin.
    pub at: Duration,
}

/// Positions in the log of the disk under the server around a commit, by the numbers of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPositions {
    /// The newest event right before COMMIT was sent.
    pub committing: u64,
    /// The newest event right after COMMIT was acknowledged; none if it was not.
    pub acknowledged: Option<u64>,
}

/// All transactions of a load, each client's in the order of issue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Transactions of each client.
    pub clients: Vec<Vec<Entry>>,
}

impl History {
    /// Iterates over every entry, client by client.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.clients.iter().flatten()
    }

    /// Counts the transactions in `state`.
    pub fn count(&self, state: State) -> u64 {
        self.entries().filter(|e| e.state == state).count() as u64
    }
}
