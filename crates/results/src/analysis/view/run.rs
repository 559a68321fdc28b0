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
    /// Answer to the run's question, in one or two sentences.
    pub answer: Vec<String>,
    /// The index of the treatment with the highest geometric mean of tps; none where none can be
    /// formed.
    pub best: Option<usize>,
    /// Every treatment, in the plan's order.
    pub treatments: Vec<TreatmentView>,
    /// Pairs of treatments that differ in one factor.
    pub comparisons: Vec<Comparison>,
    /// Parts of each significant difference: against the best, and between treatments that differ in
    /// one factor.
    pub why: Vec<WhyView>,
    /// Rates that each treatment's searches tried; empty without a search.
    pub capacity: Vec<CapacityView>,
    /// Growth of tps with the number of clients; empty for fewer than three numbers of clients.
    pub scaling: Vec<ScalingView>,
    /// Noise floor of the last session's host; none where it is not known.
    pub noise_floor: Option<NoiseFloor>,
    /// State of a run that may end by itself; none for fixed repeats.
    pub stopping: Option<StoppingView>,
    /// Notes that a reader needs to trust or doubt the figures.
    pub notes: Vec<Note>,
    /// Every attempt at a trial, in the order of recording.
    pub trials: Vec<TrialView>,
    /// Results of fsync probes, oldest first.
    pub fsync: Vec<FsyncView>,
    /// Probes of the storages before and after the trials, in order.
    pub probes: Vec<StageProbeView>,
    /// Crash tests of the treatments, in order; treatments that differ in their load only share
    /// one.
    pub crashes: Vec<crate::report::CrashView>,
    /// Sessions: processes that worked on the run.
    pub sessions: Vec<SessionView>,
    /// Every distinct server.
    pub servers: Vec<ServerView>,
    /// Plan of the run.
    pub plan: Plan,
    /// The experiment file's text.
    pub experiment: String,
    /// The `--set key=value` that were given.
    pub overrides: Vec<String>,
}

/// Identity and state of a run.
#[derive(Clone, Debug, Serialize)]
pub struct RunHead {
    /// Its name in the store.
    pub id: String,
    /// The recipe's or the file's name.
    pub recipe: String,
    /// State.
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
