//! A ledger of transactions: what clients asked and what was acknowledged, kept outside of the
//! server.
//!
//! A load that keeps one runs a script that writes `:sequence` into a row and draws `:aid`, `:tid`,
//! `:bid` and `:delta` before its first statement; its last statement is its COMMIT. A load without
//! one pays a branch a transaction.

mod mapped;
mod transaction;

use std::io;

use pgdyno_model::ledger::Effect;

use crate::schedule::{Clock, Moment};

pub use mapped::{MappedLedger, read};
pub(crate) use transaction::{LedgerBindings, TransactionLedger};

/// Keeps the ledgers of all clients of a load.
pub trait Ledger: Send + Sync {
    /// The ledger of client `client`, whose moments are of `clock`.
    ///
    /// # Errors
    /// It cannot be kept; the load does not begin.
    fn open(&self, client: u32, clock: &Clock) -> io::Result<Box<dyn ClientLedger>>;
}

/// One client's ledger. Its calls stand in the client's way: what they take, the load pays.
pub trait ClientLedger: Send {
    /// The sequence of the transaction that begins.
    fn next(&self) -> u64;

    /// The transaction of that sequence is about to be sent. When this returns, the ledger has it.
    ///
    /// # Errors
    /// The ledger does not have it; the client gives up and sends nothing.
    fn issued(&mut self, effect: &Effect, now: Moment) -> io::Result<()>;

    /// Its COMMIT is about to be sent.
    ///
    /// # Errors
    /// As [`ClientLedger::issued`].
    fn committing(&mut self) -> io::Result<()>;

    /// Its COMMIT was acknowledged.
    ///
    /// # Errors
    /// The ledger does not know of it; the client gives up.
    fn acknowledged(&mut self, now: Moment) -> io::Result<()>;

    /// The server refused it.
    ///
    /// # Errors
    /// As [`ClientLedger::acknowledged`].
    fn failed(&mut self, now: Moment) -> io::Result<()>;
}
