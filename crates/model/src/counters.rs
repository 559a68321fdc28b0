//! Counters of a load: transactions outside the window, errors, aborted clients, connections.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::flush_accounting::FlushAccounting;

/// Counts that the load engine adds up over its threads, as they are stored.
///
/// In JSON the keys stand among those of [`crate::Measurement`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadCounters {
    /// Transactions that ended well before the window (count).
    pub warm_up_transactions: u64,
    /// Transactions under way when the window closed, that ended well after it (count).
    pub drained_transactions: u64,
    /// Transactions that ended in an error outside the window (count).
    pub failed_outside: u64,
    /// Errors within the window by SQLSTATE (count).
    pub failures: BTreeMap<String, u64>,
    /// Clients that gave up because of an error that is not retried (count).
    pub aborted_clients: u32,
    /// Reasons of the first aborted clients, at most [`LoadCounters::MAX_ABORT_REASONS`].
    pub abort_reasons: Vec<String>,
    /// Connections that were lost and made anew (count). Each left a transaction in doubt, or none
    /// under way.
    #[serde(default)]
    pub lost_connections: u64,
    /// Connections made one by one while the load ran, for single transactions or in place of lost
    /// ones (count).
    #[serde(default)]
    pub reconnections: u64,
    /// Time that those connections took together (seconds).
    #[serde(default)]
    pub reconnect_s: f64,
    /// Result of flush accounting; none unless the experiment asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flush_accounting: Option<FlushAccounting>,
}

impl LoadCounters {
    /// Reasons of aborted clients that are kept.
    pub const MAX_ABORT_REASONS: usize = 10;

    /// Counts a client that gave up; keeps `reason` while there is room.
    pub fn record_abort(&mut self, reason: String) {
        self.aborted_clients += 1;
        if self.abort_reasons.len() < Self::MAX_ABORT_REASONS {
            self.abort_reasons.push(reason);
        }
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.warm_up_transactions += other.warm_up_transactions;
        self.drained_transactions += other.drained_transactions;
        self.failed_outside += other.failed_outside;
        for (code, count) in &other.failures {
            *self.failures.entry(code.clone()).or_default() += count;
        }
        self.aborted_clients += other.aborted_clients;
        let room = Self::MAX_ABORT_REASONS.saturating_sub(self.abort_reasons.len());
        self.abort_reasons.extend(other.abort_reasons.iter().take(room).cloned());
        self.lost_connections += other.lost_connections;
        self.reconnections += other.reconnections;
        self.reconnect_s += other.reconnect_s;
        if let Some(theirs) = &other.flush_accounting {
            self.flush_accounting.get_or_insert_default().merge(theirs);
        }
    }
}
