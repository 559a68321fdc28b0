//! A run, analysed, and the views that stand directly in it.

use pgdyno_model::facts::{BuildSource, HostFacts, StorageFacts};
use pgdyno_model::probe::Suspicion;
use pgdyno_model::record::{FsyncRate, RunState, SessionEnd};
use pgdyno_model::units::Epoch;
use pgdyno_model::{CrashRecord, Plan};
use pgdyno_stats::{NoFit, PriorUse, Scaling};
use pgdyno_store::Thinning;
use serde::Serialize;

use super::comparison::{Comparison, Effect, RatioView};
use super::factors::{CourseView, EffectView, InteractionView};
use super::latency::LatencyView;
use super::pairs::PairsView;
use super::treatment::TreatmentView;
use super::trial::TrialView;
use super::why::WhyView;
use crate::gate::Measure;
use crate::observations::Observations;

/// A run, analysed.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunView {
    /// The run.
    pub run: RunHead,
    /// Whether `pgdyno pgbench --store` stored it: nothing but the load was controlled.
    pub ad_hoc: bool,
    /// Removals of detail from its records, oldest first: when, and how much.
    pub thinned: Vec<Thinning>,
    /// The index of the treatment with the highest geometric mean of tps; none where none can be
    /// formed.
    pub best: Option<usize>,
    /// Every treatment, in the plan's order.
    #[serde(skip)]
    pub treatments: Vec<TreatmentView>,
    /// Pairs of treatments that differ in one factor.
    #[serde(skip)]
    pub comparisons: Vec<Comparison>,
    /// Effects of the asked level, one for each combination of the other factors' levels.
    #[serde(skip)]
    pub effects: Vec<Effect>,
    /// Ratio of the two equal treatments of an A/A run: the second's tps to the first's.
    #[serde(skip)]
    pub equal_ratio: Option<RatioView>,
    /// Ratios of any two treatments. Pages have them; the run's JSON does not.
    #[serde(skip)]
    pub pairs: PairsView,
    /// Parts of each significant difference: against the best, and between treatments that differ
    /// in one factor.
    #[serde(skip)]
    pub why: Vec<WhyView>,
    /// Rates that each treatment's searches tried; empty without a search.
    #[serde(skip)]
    pub capacity: Vec<CapacityView>,
    /// Growth of tps with the number of clients; empty for fewer than three numbers of clients.
    #[serde(skip)]
    pub scaling: Vec<ScalingView>,
    /// Average effect that the question asks for; none without such a question, with one
    /// combination of the other factors, or before a run is complete.
    pub effect: Option<EffectView>,
    /// Courses over ordered factors of three levels or more; empty before a run is complete.
    pub courses: Vec<CourseView>,
    /// Interactions of each two factors; empty before a run is complete.
    pub interactions: Vec<InteractionView>,
    /// Noise that earlier runs on the host predicted, and whether it counts; none if they told
    /// nothing.
    pub noise_prior: Option<NoisePriorView>,
    /// Noise floor of the last session's host; none where it is not known.
    pub noise_floor: Option<NoiseFloor>,
    /// State of a run that may end by itself; none for fixed repeats.
    #[serde(skip)]
    pub stopping: Option<StoppingView>,
    /// Facts of trials that other views do not have.
    #[serde(skip)]
    pub observations: Observations,
    /// Every attempt at a trial, in the order of recording.
    #[serde(skip)]
    pub trials: Vec<TrialView>,
    /// Results of fsync probes, oldest first.
    pub fsync: Vec<FsyncView>,
    /// Probes of the storages before and after the trials, in order.
    #[serde(skip)]
    pub probes: Vec<StageProbeView>,
    /// Crash tests of the treatments, in order; treatments that differ in their load only share
    /// one.
    #[serde(skip)]
    pub crashes: Vec<CrashRecord>,
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

/// Noise between a run's trials, as earlier runs on the host predict it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NoisePriorView {
    /// Whether it counts beside the run's own.
    pub used: PriorUse,
    /// Relative standard deviation of the earlier runs' tps between trials (a share).
    pub spread: f64,
    /// Degrees of freedom that it counts for.
    pub freedom: f64,
    /// Earlier runs that it was computed from (count).
    pub runs: usize,
    /// The run's own spread (a share).
    pub own_spread: f64,
    /// Degrees of freedom of the run's own spread.
    pub own_freedom: f64,
}

/// Identity and state of a run.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunHead {
    /// Id in the store: recipe, start and four letters drawn at random.
    pub id: String,
    /// The recipe's or the file's name.
    pub recipe: String,
    /// The name by which `pgdyno run --hosts` knew its machine.
    #[serde(skip)]
    pub host: Option<String>,
    /// State.
    pub state: RunState,
    /// The question it answers.
    pub question: Option<String>,
    /// When it began.
    #[serde(serialize_with = "pgdyno_text::format::as_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub started_at: Epoch,
    /// The pgdyno that ran it.
    pub pgdyno_version: String,
    /// Planned trials (count).
    pub trials_planned: usize,
    /// Planned trials that are completed (count).
    pub trials_completed: usize,
    /// Attempts that failed (count).
    pub attempts_failed: usize,
    /// Treatments whose crash tests were asked for and are not done to the end, by label. Those
    /// whose storage is not available are left out.
    pub not_crashed: Vec<String>,
}

/// Result of the fsync probe on a storage.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    #[serde(serialize_with = "pgdyno_text::format::as_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub measured_at: Epoch,
}

impl From<&FsyncRate> for FsyncView {
    fn from(rate: &FsyncRate) -> Self {
        let per_second = rate.per_second();
        Self {
            storage: rate.storage.clone(),
            method: rate.method.clone(),
            block_bytes: rate.block_bytes,
            flushes: rate.flushes,
            seconds: rate.seconds,
            per_second: (per_second > 0.0).then_some(per_second),
            latency_us: LatencyView::new(&rate.latency),
            measured_at: rate.measured_at,
        }
    }
}

/// Session of a run: a process that worked on it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionView {
    /// When it began.
    #[serde(serialize_with = "pgdyno_text::format::as_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub started_at: Epoch,
    /// How it ended; none while it has not.
    pub end: Option<SessionEnd>,
    /// The machine.
    pub host: HostFacts,
    /// Facts of each storage.
    pub storage: Vec<StorageFacts>,
}

/// A server, and the trials that ran on it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerView {
    /// `version()`.
    pub version: String,
    /// `server_version_num`.
    pub version_num: u32,
    /// Origin of its programs.
    pub build: BuildSource,
    /// The trials' ordinals.
    pub trials: Vec<u32>,
    /// Settings over all its trials.
    pub settings: Vec<SettingView>,
}

/// A setting over all trials of a server.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SettingView {
    /// Name in `pg_settings`.
    pub name: String,
    /// Unit in `pg_settings`.
    pub unit: Option<String>,
    /// Origin of the value, as in `pg_settings`.
    pub source: String,
    /// Value, if all trials had the same.
    pub value: Option<String>,
    /// Each value with the trials (ordinals) that had it, if they differ.
    pub values: Vec<(String, Vec<u32>)>,
    /// The value, or each of `values` in their order, as `SHOW` prints it.
    pub shown: Vec<String>,
}

/// Rates that a treatment's searches tried.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapacityView {
    /// The treatment's index.
    pub treatment: usize,
    /// Latency that a rate must keep; none where the objective names none.
    pub objective: Option<ObjectiveView>,
    /// The rates with their latencies, over all completed trials: the lower rate first.
    pub curve: Vec<CurvePoint>,
}

/// The limit of latency in an objective; the first where there are several.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ObjectiveView {
    /// The percentile: `p99`.
    pub percentile: String,
    /// The limit (microseconds).
    pub limit_us: f64,
    /// The whole objective: `p99 < 20ms, failed < 0.1%`.
    pub text: String,
}

/// Step of a search: a rate that one trial tried.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CurvePoint {
    /// Transactions offered per second.
    pub rate: f64,
    /// The trial's place in the plan, from 0.
    pub ordinal: u32,
    /// Whether the step was to confirm the answer of the search.
    pub confirming: bool,
    /// Median latency (microseconds).
    pub latency_us_p50: Option<f64>,
    /// 95th percentile of latency.
    pub latency_us_p95: Option<f64>,
    /// 99th percentile of latency.
    pub latency_us_p99: Option<f64>,
    /// Reason why the step did not keep the objective; none if it did.
    pub broken: Option<String>,
}

/// Treatments that differ in the number of clients only.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScalingView {
    /// Levels of the other factors, which all share, in one line; empty where clients are all that
    /// varies.
    pub given: String,
    /// Indices of the treatments.
    pub treatments: Vec<usize>,
    /// Universal Scalability Law through them, or the reason why none is fitted.
    #[serde(skip)]
    pub law: Result<Scaling, NoFit>,
}

/// Probe of one of the run's storages, in brief. `pgdyno show ID` has all of it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StageProbeView {
    /// Id in the store: kind, start and four letters drawn at random.
    pub id: String,
    /// `fsync` or `disk`.
    pub kind: &'static str,
    /// The storage's name.
    pub storage: String,
    /// When it began.
    #[serde(serialize_with = "pgdyno_text::format::as_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub started_at: Epoch,
    /// Attempts at trials that had begun before it (count): 0 before the first trial.
    pub attempts_before: usize,
    /// Whether the storage's free blocks were discarded right before.
    pub after_trim: bool,
    /// Whether the whole probe was measured.
    pub complete: bool,
    /// Of an fsync probe: writes of one block with fdatasync by one writer (1/s).
    pub flushes_per_second: Option<f64>,
    /// Of a disk probe: sequential writes (bytes/s), the mean of its zones.
    pub write_bytes_per_second: Option<f64>,
    /// Of a disk probe: sequential reads (bytes/s), the mean of its zones.
    pub read_bytes_per_second: Option<f64>,
    /// Of a disk probe: random reads of 8 kB (1/s), at the queue depth that gave most.
    pub randread_iops: Option<f64>,
    /// Of a disk probe: random writes of 8 kB (1/s), at the queue depth that gave most.
    pub randwrite_iops: Option<f64>,
    /// Warnings about figures that may be wrong.
    pub warnings: Vec<String>,
    /// Of an fsync probe: signs that the storage acknowledges what is not yet durable.
    #[serde(skip)]
    pub acknowledges_from_cache: Vec<Suspicion>,
}

/// A run that may end before its most repeats.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StoppingView {
    /// Blocks that are run in any case.
    pub floor: u32,
    /// The most blocks.
    pub ceiling: u32,
    /// Numbers of blocks after which an interim analysis judges the run.
    pub looks: Vec<u32>,
    /// Blocks of the treatment that was measured most (count).
    pub blocks: u32,
    /// Comparisons that are decided (count).
    pub decided: usize,
    /// Every comparison, or every treatment where none is planned, with its state.
    #[serde(skip)]
    pub states: Vec<(Compared, Decision)>,
    /// Reason for its end; none while it goes on.
    pub ended: Option<Ended>,
}

/// Subject of a decision, by indices of treatments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// One treatment, of a plan that compares none.
    Alone(usize),
    /// The first treatment, compared with the second.
    With(usize, usize),
}

/// State of one comparison of a run that may end by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The difference is significant.
    Different,
    /// The difference is within the margin.
    Equivalent,
    /// The interval is as narrow as was asked.
    Precise,
    /// One of the two has no completed trial.
    Nothing,
    /// None of these: more blocks may decide.
    Open,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    /// Every comparison is decided.
    Decided,
    /// The most repeats are run.
    Ceiling,
    /// The time budget is spent.
    Budget,
}

/// Noise floor of a host, from the newest completed A/A run there.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NoiseFloor {
    /// The run.
    pub run: String,
    /// When it began.
    #[serde(serialize_with = "pgdyno_text::format::as_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub started_at: Epoch,
    /// Names of the two equal treatments.
    pub names: [String; 2],
    /// Ratio of their tps.
    pub ratio: f64,
    /// 95% confidence interval of `ratio`.
    pub ci95: [f64; 2],
    /// Blocks that had both (count).
    pub blocks: usize,
    /// The farther end of the interval as a share: a difference below it may be none.
    pub floor: f64,
    /// Noise floors of percentiles of latency, for those that have an interval.
    pub latency: Vec<LatencyFloor>,
}

/// Noise floor of a percentile of latency.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyFloor {
    /// Name of the percentile.
    pub percentile: &'static str,
    /// The farther end of the ratio's interval as a share.
    pub floor: f64,
}

impl NoiseFloor {
    /// Returns the floor of `measure` (a share); none if it has no interval.
    pub fn of_measure(&self, measure: Measure) -> Option<f64> {
        let of_latency =
            || self.latency.iter().find(|l| l.percentile == measure.name()).map(|l| l.floor);
        if measure == Measure::Tps { Some(self.floor) } else { of_latency() }
    }
}
