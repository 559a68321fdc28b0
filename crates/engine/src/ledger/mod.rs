//! Ledgers: which transactions were sent and which were acknowledged, recorded outside the server.
//!
//! After a crash, the ledger is compared with the rows that survived. Its load runs a script that
//! writes `:sequence` into a row and sets `:aid`, `:tid`, `:bid` and `:delta` before its first
//! statement; the last statement is COMMIT. For each transaction a client calls
//! [`ClientLedger::issued`], [`ClientLedger::committing`], then [`ClientLedger::acknowledged`] or
//! [`ClientLedger::failed`]. A load without a ledger pays a branch a transaction.

mod mapped;
mod transaction;

use std::io;

pub use mapped::{MappedLedger, read, read_positions};
use pgdyno_model::ledger::Effect;
pub(crate) use transaction::{LedgerBindings, TransactionLedger};

use crate::schedule::{Clock, Moment};

/// Opens the ledgers of a load's clients.
pub trait Ledger: Send + Sync {
    /// Opens the ledger of client `client`, whose times are read from `clock`.
    ///
    /// # Errors
    /// The ledger cannot be opened; the load does not begin.
    fn open(&self, client: u32, clock: &Clock) -> io::Result<Box<dyn ClientLedger>>;
}

/// Ledger of one client. The client waits for each call, so the time it takes adds to latency.
pub trait ClientLedger: Send {
    /// Returns the sequence number of the transaction that begins.
    fn next(&self) -> u64;

    /// Records the transaction that is about to be sent. When this returns, the ledger has it.
    ///
    /// # Errors
    /// The ledger does not have the transaction; the client gives up and sends nothing.
    fn issued(&mut self, effect: &Effect, now: Moment) -> io::Result<()>;

    /// Records that COMMIT is about to be sent.
    ///
    /// # Errors
    /// As [`ClientLedger::issued`].
    fn committing(&mut self) -> io::Result<()>;

    /// Records that COMMIT was acknowledged.
    ///
    /// # Errors
    /// The ledger does not have the acknowledgement; the client gives up.
    fn acknowledged(&mut self, now: Moment) -> io::Result<()>;

    /// Records that the server refused the transaction.
    ///
    /// # Errors
    /// As [`ClientLedger::acknowledged`].
    fn failed(&mut self, now: Moment) -> io::Result<()>;
}
