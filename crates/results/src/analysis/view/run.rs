//! A run, analysed.

use pgdyno_model::Plan;
use pgdyno_model::facts::{BuildSource, HostFacts, StorageFacts};
use pgdyno_model::record::{RunState, SessionEnd};
use pgdyno_model::units::Epoch;
use serde::Serialize;

use super::capacity::CapacityView;
use super::comparison::Comparison;
use super::latency::LatencyView;
use super::noise_floor::NoiseFloor;
use super::note::Note;
use super::scaling::ScalingView;
use super::stage_probe::StageProbeView;
use super::stopping::StoppingView;
use super::treatment::TreatmentView;
use super::trial::TrialView;
use super::why::WhyView;

/// A run, analysed.
#[derive(Clone, Debug, Serialize)]
pub struct RunView {
    /// The run.
    pub run: RunHead,
    /// What the run's question is answered with, in one or two sentences.
    pub answer: Vec<String>,
    /// The index of the treatment with the highest geometric mean of tps; none where none can be
    /// formed.
    pub best: Option<usize>,
    /// Every treatment, in the plan's order.
    pub treatments: Vec<TreatmentView>,
    /// Pairs of treatments that differ in one factor.
    pub comparisons: Vec<Comparison>,
    /// Where the differences lie: of treatments that are told apart under the same load, each
    /// beside the best, and each two that differ in one factor.
    pub why: Vec<WhyView>,
    /// What each treatment's trials tried, where they looked for the highest rate.
    pub capacity: Vec<CapacityView>,
    /// How tps grows with the number of clients, where at least three numbers were measured.
    pub scaling: Vec<ScalingView>,
    /// How far the same treatment differed from itself on the last session's host; none where that
    /// is not known.
    pub noise_floor: Option<NoiseFloor>,
    /// Where a run stands that may end by itself; none for one of fixed repeats.
    pub stopping: Option<StoppingView>,
    /// What a reader must know to trust or doubt the above.
    pub notes: Vec<Note>,
    /// Every attempt at a trial, in the order of recording.
    pub trials: Vec<TrialView>,
    /// What the fsync probe found, in order.
    pub fsync: Vec<FsyncView>,
    /// Probes of the storages before and after the trials, in order.
    pub probes: Vec<StageProbeView>,
    /// Crash tests of the treatments, in order; treatments that differ in their load only share
    /// one.
    pub crashes: Vec<crate::report::CrashView>,
    /// The stretches of work.
    pub sessions: Vec<SessionView>,
    /// Every distinct server.
    pub servers: Vec<ServerView>,
    /// What was to be done.
    pub plan: Plan,
    /// The experiment file's text.
    pub experiment: String,
    /// The `--set key=value` that were given.
    pub overrides: Vec<String>,
}

/// Which run it is and where it stands.
#[derive(Clone, Debug, Serialize)]
pub struct RunHead {
    /// Its name in the store.
    pub id: String,
    /// The recipe's or the file's name.
    pub recipe: String,
    /// Where it stands.
    pub state: RunState,
    /// The question it answers.
    pub question: Option<String>,
    /// When it began.
    #[serde(serialize_with = "pgdyno_model::format::as_text")]
    pub started_at: Epoch,
    /// The pgdyno that ran it.
    pub pgdyno_version: String,
    /// Planned trials (count).
    pub trials_planned: usize,
    /// Planned trials that are completed (count).
    pub trials_completed: usize,
    /// Attempts that failed (count).
    pub attempts_failed: usize,
}

/// What the fsync probe found on a storage.
#[derive(Clone, Debug, Serialize)]
pub struct FsyncView {
    /// The storage's name.
    pub storage: String,
    /// The call, as `wal_sync_method` names it.
    pub method: String,
    /// Bytes written before each flush.
    pub block_bytes: u32,
    /// Flushes (count).
    pub flushes: u64,
    /// Time they took together.
    pub seconds: f64,
    /// Flushes of one writer (1/s); none when there were none.
    pub per_second: Option<f64>,
    /// Latency of a write and its flush.
    pub latency_us: Option<LatencyView>,
    /// When it was measured.
    #[serde(serialize_with = "pgdyno_model::format::as_text")]
    pub measured_at: Epoch,
}

/// A stretch of work.
#[derive(Clone, Debug, Serialize)]
pub struct SessionView {
    /// When it began.
    #[serde(serialize_with = "pgdyno_model::format::as_text")]
    pub started_at: Epoch,
    /// How it ended; none while it has not.
    pub end: Option<SessionEnd>,
    /// The machine.
    pub host: HostFacts,
    /// What lies under each storage.
    pub storage: Vec<StorageFacts>,
}

/// A server, and the trials that ran on it.
#[derive(Clone, Debug, Serialize)]
pub struct ServerView {
    /// `version()`.
    pub version: String,
    /// `server_version_num`.
    pub version_num: u32,
    /// Where its programs came from.
    pub build: BuildSource,
    /// The trials' ordinals.
    pub trials: Vec<u32>,
    /// Its settings.
    pub settings: Vec<SettingView>,
}

/// A setting over all trials of a server.
#[derive(Clone, Debug, Serialize)]
pub struct SettingView {
    /// Its name in `pg_settings`.
    pub name: String,
    /// Its unit in `pg_settings`.
    pub unit: Option<String>,
    /// Where the value came from.
    pub source: String,
    /// Its value, where all trials had the same.
    pub value: Option<String>,
    /// Otherwise: each value and the trials (ordinals) that had it.
    pub values: Vec<(String, Vec<u32>)>,
}
