//! One round of a crash test, and what it put under test.

use serde::{Deserialize, Serialize};

use super::{Aim, Check, FilesystemRecovery, RoundPower, Verdict};
use crate::ledger::Token;

/// A transaction that was acknowledged and is missing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "LostTransaction"))]
pub struct Lost {
    /// Its name.
    pub token: Token,
    /// From its acknowledgement to the fault (milliseconds).
    pub age_ms: f64,
}

/// One round: load, fault, recovery, verification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(transform = crate::page_schema::add_command))]
pub struct Round {
    /// Its number among the fault's, from 1.
    pub number: u32,
    /// What repeats it.
    #[cfg_attr(feature = "schema", schemars(with = "crate::page_schema::Seed"))]
    pub seed: u64,
    /// During what the fault struck.
    pub aim: Aim,
    /// From the load's beginning to the fault (milliseconds).
    pub struck_after_ms: f64,
    /// Transactions acknowledged (count).
    pub acknowledged: u64,
    /// Transactions whose COMMIT was in flight (count).
    pub in_doubt: u64,
    /// Acknowledged transactions that are missing (count).
    pub lost: u64,
    /// The first of them, oldest first.
    pub tokens: Vec<Lost>,
    /// Age of the oldest of them at the fault (milliseconds).
    pub oldest_lost_ms: Option<f64>,
    /// From the end of the fault until the server took connections (milliseconds); none if it did
    /// not.
    pub recovery_ms: Option<f64>,
    /// Filesystems that were mounted again after a power cut: that of PGDATA, then that of pg_wal
    /// where it has its own. Empty for other faults, and in records of earlier versions.
    #[serde(default)]
    pub filesystems: Vec<FilesystemRecovery>,
    /// What it put under test.
    #[serde(default)]
    pub power: RoundPower,
    /// What is said of it.
    pub verdict: Verdict,
    /// Why.
    pub reason: String,
    /// Every oracle.
    pub checks: Vec<Check>,
    /// What the fault did, where that is not all in its name.
    pub notes: Vec<String>,
    /// Lines of the ledger, for people: lost transactions among their neighbours, or the last ones
    /// before the fault. None if the fault was not tried, and in records of earlier versions.
    #[serde(default)]
    pub ledger: Option<String>,
    /// Lines of the server's log that bear on it.
    pub log: String,
    /// Where what was found is kept, for one that failed.
    pub kept: Option<String>,
}
