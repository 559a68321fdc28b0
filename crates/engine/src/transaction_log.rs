//! What can be logged of every transaction.

use std::io;
use std::time::SystemTime;

use crate::failure::FailureKind;

/// Takes what is to be logged; each thread opens a sink of its own, so that none waits for another.
pub trait TransactionLog: Send + Sync {
    /// The sink of thread `thread` (from 0).
    ///
    /// # Errors
    /// It cannot be opened; the load does not begin.
    fn open(&self, thread: usize) -> io::Result<Box<dyn TransactionSink>>;
}

/// Where one thread's transactions are logged. It is called between transactions: what it takes,
/// latency pays.
pub trait TransactionSink: Send {
    /// A transaction has ended or was skipped.
    fn transaction(&mut self, transaction: &LoggedTransaction);

    /// The thread's load is over.
    fn finish(&mut self);
}

/// What became of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoggedOutcome {
    /// It ended well.
    Done,
    /// It was never sent, for it was due too long ago.
    Skipped,
    /// It ended in an error of this kind.
    Failed(FailureKind),
}

/// A transaction that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedTransaction {
    /// The client's number, from 0.
    pub client: u32,
    /// The transaction's number among the client's, from 0; skipped ones count.
    pub number: u64,
    /// The script's index in the load's list.
    pub script: usize,
    /// When it should have been sent.
    pub due: SystemTime,
    /// When it was begun.
    pub sent: SystemTime,
    /// When it ended.
    pub done: SystemTime,
    /// From due to done (nanoseconds).
    pub latency_ns: u64,
    /// From due to sent (nanoseconds).
    pub lag_ns: u64,
    /// What became of it.
    pub outcome: LoggedOutcome,
    /// Tries after the first (count).
    pub retries: u32,
}
