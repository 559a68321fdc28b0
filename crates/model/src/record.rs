//! Records of the store: runs, sessions, trials.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

use crate::experiment::Length;
use crate::facts::{HostFacts, Owner, ServerFacts, StorageFacts};
use crate::names::names;
use crate::target::Target;
use crate::telemetry::Table;
use crate::units::Epoch;
use crate::{Failure, Latencies, Measurement, Plan, Treatment};

/// A run as it was begun.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Id in the store: recipe, start and four letters drawn at random.
    pub id: String,
    /// The recipe's or the file's name.
    pub recipe: String,
    /// When it began.
    pub started_at: Epoch,
    /// pgdyno's version.
    pub pgdyno_version: String,
    /// The experiment file's text, as read (a DSN's password taken out).
    pub experiment: String,
    /// Folder that the experiment's relative paths start from.
    pub folder: String,
    /// Options `--set key=value` as passed, in order (a DSN's password taken out).
    pub overrides: Vec<String>,
    /// Plan of the run.
    pub plan: Plan,
}

/// One stretch of work on a run: the first, or a `--resume`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// When it began.
    pub started_at: Epoch,
    /// The process that works on it.
    pub owner: Owner,
    /// The machine.
    pub host: HostFacts,
    /// Every storage that the plan uses.
    pub storage: Vec<StorageFacts>,
}

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, EnumString, IntoStaticStr)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[strum(serialize_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum SessionEnd {
    /// Every trial it had to do is completed.
    Completed,
    /// It ended by itself, and at least one trial failed or could not be run.
    Failed,
    /// A signal ended it, or its process was killed.
    Interrupted,
}

/// The state of a run, as `show` and `list` name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[strum(serialize_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// A session works on it.
    Running,
    /// Every planned trial is completed.
    Completed,
    /// Trials failed or were not run in the last session.
    Failed,
    /// A signal ended or killed the last session: `run --resume` continues.
    Interrupted,
}

names!(RunState);

/// One execution of a treatment: stored whole before the next begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
    /// Place in the plan.
    pub ordinal: u32,
    /// Round that the trial belongs to, from 1.
    pub block: u32,
    /// Index of the treatment in the plan.
    pub treatment: usize,
    /// Number among the treatment's trials, from 1.
    pub repeat: u32,
    /// Time at which provisioning began.
    pub started_at: Epoch,
    /// Time at which the window opened; none if it never did.
    pub measured_at: Option<Epoch>,
    /// Why the trial failed; none if it is complete.
    pub failure: Option<Failure>,
    /// Measurement of the load engine; for a failed trial, as much as there is.
    pub measurement: Option<Measurement>,
    /// The server's own count of transactions and rows, to compare with the engine's.
    pub server_count: Option<ServerCount>,
    /// The server as it ran; none if it did not start.
    pub server: Option<ServerFacts>,
    /// Tables of samples, one for each telemetry probe.
    #[serde(skip)]
    pub telemetry: Vec<Table>,
    /// Server log from the trial's start to its end.
    #[serde(skip)]
    pub server_log: String,
}

/// A load without an experiment, as it was offered and measured.
///
/// The arguments of its command are not here: a connection string may hold a password.
#[derive(Debug)]
pub struct AdHocRun {
    /// The load.
    pub treatment: Treatment,
    /// Planned end of the load.
    pub length: Length,
    /// The seed of the load.
    pub seed: u64,
    /// When the load began.
    pub started_at: Epoch,
    /// When the measured window opened.
    pub measured_at: Epoch,
    /// Figures of the load.
    pub measurement: Measurement,
    /// The server. The store keeps no password of it.
    pub target: Target,
    /// Whether a signal ended the load: its trial then counts as failed.
    pub is_interrupted: bool,
}

/// Growth of PostgreSQL's own counters from before the load to after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerCount {
    /// Growth of `pg_stat_database.xact_commit` of the loaded database: the load's commits, one for
    /// each connection made, autovacuum's, and those of telemetry as it reads sizes (count).
    pub xact_commit: i64,
    /// Growth of the rows that the workload adds with each transaction (count); none if it names no
    /// such rows.
    pub rows: Option<i64>,
    /// Expected `rows`: acknowledged transactions times rows added by each (count).
    pub rows_expected: Option<i64>,
}

/// The rate at which one writer can make a block durable in a directory: the ceiling for commits
/// that do not share a flush.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FsyncRate {
    /// The storage's name.
    pub storage: String,
    /// The call, named as `wal_sync_method` names it.
    pub method: String,
    /// Bytes written before each flush.
    pub block_bytes: u32,
    /// Write-and-flush pairs (count).
    pub flushes: u64,
    /// Time they took together (seconds).
    pub seconds: f64,
    /// Latency of a write and its flush.
    #[serde(skip)]
    pub latency: Latencies,
    /// When it was measured.
    pub measured_at: Epoch,
}

impl FsyncRate {
    /// Flushes per second; 0 when there were none.
    pub fn per_second(&self) -> f64 {
        if self.seconds > 0.0 { self.flushes as f64 / self.seconds } else { 0.0 }
    }
}
