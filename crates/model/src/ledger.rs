//! The ledger: what clients asked of a server and what it acknowledged, kept outside of it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The name of one transaction of a load: no other has it.
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

/// What a transaction does: TPC-B's one amount, added to an account, a teller and a branch.
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

/// What a client knows of its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Begun; its COMMIT was never sent: it must not be there.
    Issued,
    /// The server acknowledged its COMMIT: it must be there.
    Acknowledged,
    /// The server refused it: it must not be there.
    Failed,
    /// Its COMMIT was sent and never answered: it may be there, whole, or not at all.
    Unknown,
}

/// One transaction in the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub token: Token,
    /// What it was to do.
    pub effect: Effect,
    /// What became of it.
    pub state: State,
    /// When it was begun, on the ledger's own clock: nothing of it was sent before.
    pub begun: Duration,
    /// When its state was known, on the ledger's own clock; for one that is open, when it was
    /// begun.
    pub at: Duration,
}

/// Where the log of the disk under the server was as a transaction was committed, by the numbers of
/// its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPositions {
    /// The newest event right before COMMIT was sent.
    pub committing: u64,
    /// The newest event right after COMMIT was acknowledged; none if it was not.
    pub acknowledged: Option<u64>,
}

/// All transactions of a load, those of each client in the order in which it issued them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// By client.
    pub clients: Vec<Vec<Entry>>,
}

impl History {
    /// Every entry, client by client.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.clients.iter().flatten()
    }

    /// How many are in `state`.
    pub fn count(&self, state: State) -> u64 {
        self.entries().filter(|e| e.state == state).count() as u64
    }
}
