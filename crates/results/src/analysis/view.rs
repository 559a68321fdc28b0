//! What `pgdyno show RUN --json` prints and the reports show. Keys are only ever added.

use std::collections::BTreeMap;

use pgdyno_model::facts::{BuildSource, HostFacts, StorageFacts};
use pgdyno_model::measurement::EventLoopLag;
use pgdyno_model::record::{RunState, ServerCount, SessionEnd};
use pgdyno_model::units::Epoch;
use pgdyno_model::{Levels, Plan, Search};
use serde::Serialize;

use super::capacity::CapacityView;
use super::floor::NoiseFloor;
use super::scaling::ScalingView;
use super::stopping::StoppingView;
use super::why::WhyView;
use pgdyno_stats::{Autocorrelation, Method, Trend};

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
    pub notes: Vec<String>,
    /// Every attempt at a trial, in the order of recording.
    pub trials: Vec<TrialView>,
    /// What the fsync probe found, in order.
    pub fsync: Vec<FsyncView>,
    /// Probes of the storages before and after the trials, in order.
    pub probes: Vec<super::StageProbeView>,
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

/// What crash tests say of a treatment, in brief.
#[derive(Clone, Debug, Serialize)]
pub struct TreatmentCrash {
    /// The crash tests, of [`RunView::crashes`].
    pub id: String,
    /// The verdict.
    pub verdict: pgdyno_model::Verdict,
    /// Why.
    pub reason: String,
    /// Transactions acknowledged in all faults' rounds together (count).
    pub acknowledged: u64,
    /// Of these missing (count). No share of `acknowledged`: other faults' rounds dilute it.
    pub lost: u64,
    /// The fault whose verdict it is, with its own loss; none if none was tried.
    pub gravest: Option<crate::report::GravestFault>,
}

impl TreatmentCrash {
    /// The fault that the treatment failed, as planted or not.
    pub(crate) fn broken(&self) -> Option<&crate::report::GravestFault> {
        self.gravest.as_ref().filter(|gravest| gravest.is_broken())
    }
}

/// A treatment over its completed trials.
#[derive(Clone, Debug, Serialize)]
pub struct TreatmentView {
    /// Its index in the plan.
    pub index: usize,
    /// Its factors' levels in one line.
    pub label: String,
    /// Its factors' levels.
    pub factors: Levels,
    /// Trials completed (count).
    pub trials: usize,
    /// Trials planned (count).
    pub trials_planned: usize,
    /// Attempts that failed (count).
    pub attempts_failed: usize,
    /// Transactions per second, or the maximum rate where trials looked for it; none without a
    /// completed trial.
    pub tps: Option<TpsView>,
    /// What crash tests say of it; none where there were none.
    pub crash: Option<TreatmentCrash>,
    /// Why `tps` or its interval is missing.
    pub reason: Option<String>,
    /// Latency of all its transactions together; none without one.
    pub latency_us: Option<LatencyView>,
    /// Why its storage is not to be had on the last session's machine, where that is so.
    pub unavailable: Option<String>,
    /// Percentiles of latency over its trials, with intervals.
    pub latency_intervals: Vec<LatencyInterval>,
    /// Completed trials in which the load generator may have been the limit (count).
    pub generator_limited: usize,
    /// Whether tps rises or falls over its repeats, judged with all treatments of the run; none for
    /// fewer than four.
    pub drift: Option<Trend>,
    /// With a rate, where latency counts from when a transaction was due: the same from when it was
    /// sent.
    pub service_us: Option<LatencyView>,
    /// Why it is not among those of which the best is chosen: it is known not to keep what it
    /// promises.
    pub not_ranked: Option<String>,
    /// Its tps over that of the treatment with the highest mean; none without a completed trial.
    pub ratio_to_best: Option<RatioView>,
    /// Transactions in its completed trials' windows (count).
    pub transactions: u64,
    /// Transactions that ended in an error in its completed trials' windows (count).
    pub failed: u64,
    /// The same by SQLSTATE.
    pub failures: BTreeMap<String, u64>,
    /// Whether a commit waits for a flush, as the server said; none if that is not known.
    pub commits_wait: Option<bool>,
    /// The rate of flushes of one writer on its storage (1/s), where commits wait for one; none
    /// where most transactions wrote nothing.
    pub fsync_per_second: Option<f64>,
    /// Flushes of the write-ahead log (1/s), where commits wait for one and the server counts them.
    pub wal_flushes_per_second: Option<f64>,
    /// Transactions for each of them: above 1 commits share flushes.
    pub commits_per_flush: Option<f64>,
    /// tps × mean latency ÷ clients: 1 by Little's law in a closed loop; none for another one, or
    /// with failures.
    pub little: Option<f64>,
    /// Its statements, over all its completed trials.
    pub statements: Vec<StatementView>,
    /// What its backends did or waited for over all its completed trials, the commonest first.
    pub waits: Vec<WaitView>,
    /// Latency by quantile: (share of transactions, microseconds), to where ten transactions are
    /// left.
    pub quantiles: Vec<(f64, f64)>,
}

/// Transactions per second over repeats.
#[derive(Clone, Debug, Serialize)]
pub struct TpsView {
    /// The mean of the trials' tps.
    pub mean: f64,
    /// Student's 95% confidence interval of the mean, cut at 0; none where the treatment's `reason`
    /// says why.
    pub ci95: Option<[f64; 2]>,
    /// The trials' sample standard deviation; none for one trial.
    pub sd: Option<f64>,
    /// The slowest trial's.
    pub min: f64,
    /// The fastest trial's.
    pub max: f64,
}

/// A latency distribution in microseconds. A quantile beyond the sample's size equals the maximum.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct LatencyView {
    pub count: u64,
    pub mean: f64,
    pub p50: f64,
    pub p90: f64,
    pub p95: f64,
    pub p99: f64,
    pub p99_9: f64,
    pub p99_99: f64,
    pub max: f64,
}

/// The percentiles of latency that are given intervals: name and quantile.
pub(super) const PERCENTILES: [(&str, f64); 3] = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)];

/// A percentile of latency over the trials that have ten transactions beyond it.
#[derive(Clone, Debug, Serialize)]
pub struct LatencyInterval {
    /// Which.
    pub percentile: &'static str,
    /// The geometric mean of the trials' (microseconds).
    pub us: f64,
    /// Its 95% confidence interval, Student's on logarithms; none for one trial or equal ones.
    pub ci95: Option<[f64; 2]>,
}

/// A percentile of latency over another treatment's.
#[derive(Clone, Debug, Serialize)]
pub struct LatencyRatio {
    /// Which.
    pub percentile: &'static str,
    /// The geometric mean of the ratio.
    pub value: f64,
    /// Its 95% confidence interval, for itself alone.
    pub ci95: Option<[f64; 2]>,
    /// How the interval was made.
    pub method: Option<Method>,
}

/// A treatment's tps over another's.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RatioView {
    /// The geometric mean of the ratio; none where none can be formed.
    pub value: Option<f64>,
    /// Its 95% confidence interval, for itself alone; of a ratio to the best, wider, so that it
    /// holds although the data chose the best.
    pub ci95: Option<[f64; 2]>,
    /// The interval that the trials of two runs give by themselves, which leaves out how far equal
    /// runs differ; none within one run.
    pub within_runs: Option<[f64; 2]>,
    /// How the interval was made.
    pub method: Option<Method>,
    /// The p-value of no difference, for itself alone.
    pub p: Option<f64>,
    /// The same when all pairs of the run's treatments are judged together (Holm, with weights).
    pub p_together: Option<f64>,
    /// Whether `p_together` is at most 5%; none without an interval, or where `withheld` says why.
    pub told_apart: Option<bool>,
    /// Why there is an interval and no verdict: the run is not finished, or runs are compared and
    /// nothing tells how far equal ones differ.
    pub withheld: Option<String>,
    /// Whether the two are equivalent within the plan's margin (two one-sided tests, Holm); none
    /// without an interval or a margin.
    pub equivalent: Option<bool>,
    /// The smallest true difference (a share) that is told apart in 80% of runs like this one.
    pub detectable: Option<f64>,
    /// The same in words.
    pub verdict: String,
}

/// Two treatments that differ in one factor only.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The factor in which they differ.
    pub factor: String,
    /// What they share, in one line; empty for an experiment of one factor.
    pub given: String,
    /// The compared treatment's index.
    pub treatment: usize,
    /// The index of the treatment it is compared to.
    pub to: usize,
    /// The ratio of their tps.
    pub ratio: RatioView,
    /// The same as the ratio's `told_apart`.
    pub holm: Option<bool>,
    /// The ratios of percentiles of latency.
    pub latency: Vec<LatencyRatio>,
    /// Whether a trial of either was generator-limited, so that the difference may be the
    /// generator's.
    pub generator_limited: bool,
    /// All of it in a sentence.
    pub words: String,
}

/// One attempt at a trial.
#[derive(Clone, Debug, Serialize)]
pub struct TrialView {
    /// Its place in the plan, from 0.
    pub ordinal: u32,
    /// The round it belongs to, from 1.
    pub block: u32,
    /// Its treatment's index.
    pub treatment: usize,
    /// Its treatment's levels.
    pub factors: Levels,
    /// Which of its treatment's trials it is, from 1.
    pub repeat: u32,
    /// Whether it is completed, failed, or completed though another attempt already was (and left
    /// out).
    pub state: TrialState,
    /// Why it failed.
    pub failure: Option<String>,
    /// Its session's index.
    pub session: Option<usize>,
    /// Its server's index.
    pub server: Option<usize>,
    /// When its provisioning began.
    #[serde(serialize_with = "pgdyno_model::format::as_text")]
    pub started_at: Epoch,
    /// When its window opened.
    #[serde(serialize_with = "pgdyno_model::format::as_optional_text")]
    pub measured_at: Option<Epoch>,
    /// Transactions per second in the window; none unless it is completed.
    pub tps: Option<f64>,
    /// Transactions that ended well in the window (count).
    pub transactions: Option<u64>,
    /// Transactions that ended in an error in the window (count).
    pub failed: Option<u64>,
    /// The same by SQLSTATE.
    pub failures: BTreeMap<String, u64>,
    /// The window's length.
    pub measured_s: Option<f64>,
    /// Load offered before the window opened.
    pub warm_up_s: Option<f64>,
    /// Transactions that ended well before the window (count).
    pub warm_up_transactions: Option<u64>,
    /// Until all clients were connected.
    pub connect_s: Option<f64>,
    /// Clients that gave up (count).
    pub aborted_clients: u32,
    /// What they met.
    pub abort_reasons: Vec<String>,
    /// CPU that the load generator used (cores: seconds of CPU a second).
    pub generator_cpus: Option<f64>,
    /// How long replies and due transactions waited for the load generator's event loops; none if
    /// stored before that was measured.
    pub event_loop_lag: Option<EventLoopLag>,
    /// CPU that the busiest of its threads used (cores).
    pub busiest_thread: Option<f64>,
    /// Why the load generator may have been the limit; none if it was not.
    pub generator_limit: Option<String>,
    /// Where the highest rate was looked for: every rate that was tried. All else is then of the
    /// step that confirmed the answer, or of the last where none did.
    pub search: Option<Search>,
    /// Whether its series is steady; none where there is none.
    pub steadiness: Option<Steadiness>,
    /// Latency of its transactions.
    pub latency_us: Option<LatencyView>,
    /// With a rate: the same from sent to done.
    pub service_us: Option<LatencyView>,
    /// The server's own count.
    pub server_count: Option<ServerCount>,
    /// Its scripts and their statements.
    pub statements: Vec<StatementView>,
    /// One element a second.
    pub series: Vec<SecondView>,
    /// What was watched, as rates.
    pub telemetry: Vec<RateTable>,
    /// The sizes of the largest tables and indexes, those that grew most first.
    pub sizes: Vec<super::RelationSize>,
    /// What watching cost; none where it was not measured.
    pub observer: Option<ObserverView>,
    /// Checkpoints and autovacuum, as the server's log has them; none where the log is out of
    /// reach.
    pub events: Option<Vec<LogEvent>>,
}

/// CPU that watching took, beside the load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ObserverView {
    /// Of pgdyno's sampling threads (cores: seconds of CPU a second).
    pub sampler_cpus: f64,
    /// Of the server's backends that answer them (cores); none where they run on another machine.
    pub backends_cpus: Option<f64>,
}

impl ObserverView {
    /// Both together (cores).
    #[must_use]
    pub fn cpus(&self) -> f64 {
        self.sampler_cpus + self.backends_cpus.unwrap_or(0.0)
    }
}

/// How steady a trial's tps was from second to second. Whole seconds of the window only.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Steadiness {
    /// Seconds at the window's beginning that still look like warm-up (MSER-5); 0 for none; none
    /// where that cannot be told: fewer than 40 seconds, seconds that resemble each other too much,
    /// or never steady.
    pub warm_up_s: Option<u32>,
    /// What tps would gain without those seconds (a share).
    pub warm_up_gain: Option<f64>,
    /// Whether it became steady at all; none where `steady_why` says why that is not judged.
    pub steady: Option<bool>,
    /// Why it is not judged whether it became steady: too few seconds, or too few independent ones.
    pub steady_why: Option<String>,
    /// How many independent seconds its seconds are worth, where those are too few to judge that
    /// (count).
    pub too_alike: Option<f64>,
    /// How neighbouring seconds resemble each other.
    pub autocorrelation: Option<Autocorrelation>,
    /// The 95% interval of the mean over seconds, as a share of it to either side; it holds for
    /// this trial only and says nothing of another one. None where `within_why` says why.
    pub within: Option<f64>,
    /// Why there is no such interval.
    pub within_why: Option<String>,
    /// Where tps changed; none where that was not looked for (fewer than 20 seconds).
    pub changes: Option<Vec<Change>>,
}

/// A change of the mean tps within a trial.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// From the window's opening (seconds).
    pub t_s: u32,
    /// Mean tps before it, back to the change before.
    pub before: f64,
    /// Mean tps after it, up to the next change.
    pub after: f64,
    /// What happened or changed at that time by the server's log and telemetry. It need not be the
    /// cause.
    pub with: Vec<String>,
}

/// Something of the server's own that the load may have felt.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LogEvent {
    /// When it was logged (seconds from the window's opening); none where the log's times cannot be
    /// read.
    pub t_s: Option<f64>,
    /// `checkpoint starting`, `checkpoint complete`, `automatic vacuum`, `automatic analyze`, …, in
    /// the log's own words.
    pub kind: String,
    /// What it was about: the checkpoint's reasons, or the table.
    pub of: String,
    /// The log's numbers by the log's names, in its units.
    pub numbers: BTreeMap<String, f64>,
}

/// What the backends of a treatment's load did or waited for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaitView {
    /// `type:event` as in `pg_stat_activity`, or `CPU`: runs or wants to.
    pub event: String,
    /// Share of all sightings (0 to 1).
    pub share: f64,
    /// Backends in it on average.
    pub backends: f64,
}

/// What became of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TrialState {
    /// It counts.
    Completed,
    /// It does not: something went wrong.
    Failed,
    /// It does not: the same trial was completed by an earlier attempt.
    Superfluous,
}

/// One SQL command.
#[derive(Clone, Debug, Serialize)]
pub struct StatementView {
    /// Its script's name.
    pub script: String,
    /// The line it begins on.
    pub line: u32,
    /// The command.
    pub text: String,
    /// Errors within the window (count).
    pub failed: u64,
    /// Latency from sent to done; none if it never ended.
    pub latency_us: Option<LatencyView>,
    /// From sent to the first byte of its reply; none if it never ended, or was stored before this
    /// was measured.
    pub first_byte_us: Option<LatencyView>,
}

/// One second of a trial's window.
#[derive(Clone, Debug, Serialize)]
pub struct SecondView {
    /// From the window's opening to the second's beginning (seconds).
    pub t_s: u32,
    /// How much of the second lies within the window (seconds).
    pub length_s: f64,
    /// Transactions per second in it; none for no length.
    pub tps: Option<f64>,
    /// Transactions that ended well in it (count).
    pub transactions: u64,
    /// Transactions that ended in an error in it (count).
    pub failed: u64,
    /// Median latency.
    pub latency_us_p50: Option<f64>,
    /// 95th percentile of latency.
    pub latency_us_p95: Option<f64>,
    /// 99th percentile of latency.
    pub latency_us_p99: Option<f64>,
    /// Longest latency.
    pub latency_us_max: Option<f64>,
}

/// Rates over time that share a unit and an axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RateTable {
    /// What it shows: `cpu`, `device_throughput`, `device_operations`, `device_busy`,
    /// `wait_events`, `wal`, `memory`, …
    pub group: &'static str,
    /// In words.
    pub title: String,
    /// The values' unit.
    pub unit: &'static str,
    /// Whether the lines are parts of a whole.
    pub stacked: bool,
    /// Whether it is for those who look closer.
    pub detail: bool,
    /// When each interval begins (seconds from the window's opening).
    pub t_s: Vec<f64>,
    /// The lines.
    pub lines: Vec<RateLine>,
}

/// One line of a [`RateTable`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RateLine {
    /// What it is.
    pub name: String,
    /// One value an interval; none where the source had none or its counter went back.
    pub values: Vec<Option<f64>>,
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
