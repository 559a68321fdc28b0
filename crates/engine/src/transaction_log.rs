//! Logs of every transaction.
//!
//! A [`TransactionLog`] opens a [`TransactionSink`] for each thread, so that no thread waits for
//! another.

use std::io;
use std::time::SystemTime;

use crate::failure::FailureKind;

/// Opens the sinks of a load's threads.
pub trait TransactionLog: Send + Sync {
    /// Opens the sink of thread `thread` (from 0).
    ///
    /// # Errors
    /// The sink cannot be opened; the load does not begin.
    fn open(&self, thread: usize) -> io::Result<Box<dyn TransactionSink>>;
}

/// Logs one thread's transactions.
///
/// It is called between transactions: the time it takes adds to their latency.
pub trait TransactionSink: Send {
    /// Logs a transaction that has ended or was skipped.
    fn transaction(&mut self, transaction: &LoggedTransaction);

    /// Ends the log: the thread's load is over.
    fn finish(&mut self);
}

/// Outcome of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoggedOutcome {
    /// The transaction ended well.
    Done,
    /// The transaction was due too long ago and was never sent.
    Skipped,
    /// The transaction ended in an error of this kind.
    Failed(FailureKind),
}

/// A transaction that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedTransaction {
    /// Client's number, from 0.
    pub client: u32,
    /// Transaction's number among the client's, from 0; skipped ones count.
    pub number: u64,
    /// Script's index in the load's list.
    pub script: usize,
    /// Time at which the transaction should have been sent.
    pub due: SystemTime,
    /// Time at which it was sent.
    pub sent: SystemTime,
    /// Time at which it ended.
    pub done: SystemTime,
    /// Time from due to done (nanoseconds).
    pub latency_ns: u64,
    /// Time from due to sent (nanoseconds).
    pub lag_ns: u64,
    /// Outcome.
    pub outcome: LoggedOutcome,
    /// Tries after the first (count).
    pub retries: u32,
}
