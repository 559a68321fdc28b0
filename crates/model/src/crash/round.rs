//! One round of a crash test, and what it put under test.

use serde::{Deserialize, Serialize};

use super::{Aim, Check, FilesystemRecovery, RoundPower, Verdict};
use crate::ledger::Token;

/// An acknowledged transaction that is missing after recovery.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "LostTransaction"))]
pub struct Lost {
    /// Name of the transaction.
    pub token: Token,
    /// Time from the acknowledgement to the fault (milliseconds).
    pub age_ms: f64,
}

/// One round: load, fault, recovery, verification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(transform = crate::page_schema::add_command)
)]
pub struct Round {
    /// Number of the round within its fault, from 1.
    pub number: u32,
    /// Seed that repeats the round.
    #[cfg_attr(feature = "schema", schemars(with = "crate::page_schema::Seed"))]
    pub seed: u64,
    /// Moment at which the fault struck.
    pub aim: Aim,
    /// Time from the load's beginning to the fault (milliseconds).
    pub struck_after_ms: f64,
    /// Transactions acknowledged (count).
    pub acknowledged: u64,
    /// Transactions whose COMMIT was in flight (count).
    pub in_doubt: u64,
    /// Acknowledged transactions that are missing (count).
    pub lost: u64,
    /// First lost transactions, oldest first.
    pub tokens: Vec<Lost>,
    /// Age of the oldest lost transaction at the fault (milliseconds).
    pub oldest_lost_ms: Option<f64>,
    /// From the end of the fault until the server took connections (milliseconds); none if it did
    /// not.
    pub recovery_ms: Option<f64>,
    /// Filesystems that were mounted again after a power cut: that of PGDATA, then that of pg_wal
    /// where it has its own. Empty for other faults, and in records of earlier versions.
    #[serde(default)]
    pub filesystems: Vec<FilesystemRecovery>,
    /// Amount of testing that the round did.
    #[serde(default)]
    pub power: RoundPower,
    /// Verdict of the oracles.
    pub verdict: Verdict,
    /// Reason for the verdict.
    pub reason: String,
    /// Result of each oracle.
    pub checks: Vec<Check>,
    /// Details of the fault that its name does not tell.
    pub notes: Vec<String>,
    /// Lines of the ledger, for people: lost transactions among their neighbours, or the last ones
    /// before the fault. None if the fault was not tried, and in records of earlier versions.
    pub ledger: Option<String>,
    /// Lines of the server's log that bear on it.
    pub log: String,
    /// Folder with the remains of a failed round; none where nothing was kept.
    pub kept: Option<String>,
}
