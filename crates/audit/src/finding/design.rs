//! Conditions of the measurement: what was run, for how long, and beside what.

#![allow(missing_docs, reason = "fields have the names of the report's figures")]

use serde::Serialize;

use crate::recognise::LoadKind;

/// Conditions of a measurement.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum DesignKind {
    /// Report of something else than the command above it asks for.
    OtherThanAsked { asked: Asked, reported: Asked, command_line: usize },
    /// Report of what the command above it asks for.
    AsAsked { compared: Vec<Asked> },
    /// tps against the rate that the command asks for.
    Rate { rate: f64, tps: f64, percent: f64 },
    /// Runs of TPC-B with fewer branches than clients, and the worst of them.
    FewBranches { scale: f64, clients: f64, runs: usize },
    /// Runs of TPC-B with a branch for each client (count).
    EnoughBranches { runs: usize },
    /// Differences of two runs that follow each other.
    UnequalRuns { differences: Vec<Difference> },
    /// Runs that differ in no parameter.
    EqualRuns { runs: usize, pairs: usize },
    /// Read-only runs against the memory that they read.
    ReadOnly {
        storages: Vec<&'static str>,
        scale: f64,
        data_mb: f64,
        memory_mb: f64,
        /// Line of `shared_buffers`.
        memory_line: usize,
    },
    /// Filesystem beside ZFS, whose devices and options a report has or lacks.
    Layout { filesystem: &'static str },
    /// Progress of a run in stretches.
    Progress {
        course: Course,
        stretches: usize,
        median_tps: f64,
        lowest_tps: f64,
        highest_tps: f64,
    },
    /// Failures of all attempts.
    Failures { lost: Lost, failed: f64, of: f64, percent: f64 },
    /// Length of loads against the checkpoint cycle.
    CheckpointCycle(CheckpointCycle),
    /// Length of a load of a fixed count, at the lowest and highest tps of the report's table.
    CountedOut(CountedOut),
    /// Work of a thread of pgbench.
    GeneratorThreads { tps_per_thread: f64, clients_per_thread: f64, threads: f64 },
    /// Idle processors.
    IdleCpu { idle_percent: f64 },
    /// Processors and the busiest device.
    Machine(MachineUse),
}

/// Length of loads against the checkpoint cycle.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckpointCycle {
    pub seconds: f64,
    pub checkpoint_timeout_s: f64,
    /// Line of `checkpoint_timeout`; none where PostgreSQL's default is taken.
    pub timeout_line: Option<usize>,
    pub cycles: f64,
    /// Loads of this length (count).
    pub loads: usize,
    /// Whether they write; none where that is unknown.
    pub writes: Option<bool>,
}

/// Length of a load of a fixed count, at the lowest and highest tps of the report's table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CountedOut {
    pub transactions: f64,
    pub shortest_s: f64,
    pub longest_s: f64,
    pub checkpoint_timeout_s: f64,
    pub timeout_line: Option<usize>,
}

/// Parameter that a command asks for, or that a report has.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Asked {
    /// Clients (count).
    Clients(f64),
    /// Threads (count).
    Threads(f64),
    /// Duration (seconds).
    Seconds(f64),
    /// Transactions of each client (count).
    Transactions(f64),
    /// Query mode.
    QueryMode(String),
    /// Kind of load.
    Load(LoadKind),
    /// Whether the rate was limited.
    Rate(bool),
}

/// Difference of two runs in one parameter: the first run's value and the second's.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Difference {
    /// Duration (seconds).
    Duration(f64, f64),
    /// Scale.
    Scale(f64, f64),
    /// Clients (count).
    Clients(f64, f64),
    /// Query mode.
    QueryMode(String, String),
    /// Version of pgbench.
    Version(String, String),
}

/// Course of tps over a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Course {
    /// No stretch stands out.
    Steady,
    /// Stretches below half the median (count).
    Collapsed { stretches: usize },
    /// Each stretch is below the one before.
    Falling { first: f64, last: f64 },
    /// Each stretch is above the one before.
    Rising { first: f64, last: f64 },
    /// Stretches swing, the most extreme tenth at each end left out.
    Swinging { low: f64, high: f64 },
}

/// Things that are lost to failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lost {
    /// Clients that were aborted.
    Clients,
    /// Transactions that failed.
    Transactions,
    /// Transactions whose errors sysbench ignored.
    IgnoredErrors,
}

/// From this share of CPU time at work on (percent) the processors may have been the limit.
const BUSY: f64 = 60.0;

/// Below this utilisation (percent) a device had time left.
const UTILISED: f64 = 90.0;

/// Use of the processors and of the busiest device while a load ran.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MachineUse {
    /// Name of the busiest device; empty where the source has none.
    pub device: String,
    /// Share of the time in which the device had a request under way (percent).
    pub utilised_percent: f64,
    /// Share of all CPU time that is neither idle nor waits for the disk (percent).
    pub cpu_percent: f64,
}

impl MachineUse {
    /// Returns whether the processors may have been the limit while the device had time left.
    pub fn is_device_idle(&self) -> bool {
        self.utilised_percent < UTILISED && self.cpu_percent >= BUSY
    }
}
