//! A treatment over its completed trials.

use std::collections::BTreeMap;

use pgdyno_model::Levels;
use pgdyno_stats::{NoInterval, Trend};
use serde::Serialize;

use super::comparison::RatioView;
use super::crash::GravestFault;
use super::generator::GeneratorView;
use super::group::GroupView;
use super::latency::{LatencyInterval, LatencyView};
use super::stage::StageView;
use super::trial::StatementView;

/// Crash tests of a treatment, in brief.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TreatmentCrash {
    /// Name of the crash tests in [`RunView::crashes`](super::RunView::crashes).
    pub id: String,
    /// Verdict.
    pub verdict: pgdyno_model::Verdict,
    /// Reason for the verdict.
    pub reason: String,
    /// Transactions acknowledged in all faults' rounds together (count).
    pub acknowledged: u64,
    /// Acknowledged transactions that are missing (count). It is not a share of `acknowledged`: the
    /// rounds of other faults dilute it.
    pub lost: u64,
    /// Fault that set the verdict, with its own loss; none if no fault was tried.
    pub gravest: Option<GravestFault>,
}

impl TreatmentCrash {
    /// The fault that the treatment failed, as planted or not.
    pub fn broken(&self) -> Option<&GravestFault> {
        self.gravest.as_ref().filter(|gravest| gravest.is_broken())
    }
}

/// A treatment over its completed trials.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TreatmentView {
    /// Index in the plan.
    pub index: usize,
    /// Levels of its factors in one line.
    pub label: String,
    /// Levels of its factors.
    pub factors: Levels,
    /// Trials completed (count).
    pub trials: usize,
    /// Trials planned (count).
    pub trials_planned: usize,
    /// Attempts that failed (count).
    pub attempts_failed: usize,
    /// Transactions per second, or the maximum rate for a search; none without a completed trial.
    pub tps: Option<TpsView>,
    /// Result of crash tests; none if there were none.
    #[serde(skip)]
    pub crash: Option<TreatmentCrash>,
    /// Reason why `tps` or its interval is missing.
    #[serde(serialize_with = "pgdyno_text::format::as_optional_text")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub reason: Option<NoInterval>,
    /// Latency of all transactions together (microseconds); none without a transaction.
    pub latency_us: Option<LatencyView>,
    /// Reason why its storage is not available on the last session's machine.
    pub unavailable: Option<String>,
    /// Percentiles of latency over trials, with confidence intervals.
    pub latency_intervals: Vec<LatencyInterval>,
    /// Completed trials in which the load generator may have been the limit (count).
    pub generator_limited: usize,
    /// Trend of tps over repeats, judged with all treatments of the run; none for fewer than four
    /// repeats.
    pub drift: Option<Trend>,
    /// Latency from sent to done, for loads with a rate. `latency_us` counts from due to done.
    pub service_us: Option<LatencyView>,
    /// Reason why it cannot be the best: it is known to break its promise.
    #[serde(skip)]
    pub not_ranked: Option<NotRanked>,
    /// Whether it may be the fastest: in 95% of runs the fastest is among the treatments that may.
    /// None if it is not ranked, and without verdicts.
    pub may_be_best: Option<bool>,
    /// Ratio of its tps to that of the best treatment; none without a completed trial.
    #[serde(skip)]
    pub ratio_to_best: Option<RatioView>,
    /// Transactions in the windows of completed trials (count).
    pub transactions: u64,
    /// Transactions that ended in an error in the windows of completed trials (count).
    pub failed: u64,
    /// Failed transactions by SQLSTATE.
    pub failures: BTreeMap<String, u64>,
    /// Whether a commit waits for a flush, by the server's settings; none if unknown.
    pub commits_wait: Option<bool>,
    /// Flushes per second that one writer gets from the storage; none where commits don't wait, or
    /// most transactions wrote nothing.
    pub fsync_per_second: Option<f64>,
    /// WAL flushes per second; none where commits do not wait or the server does not count flushes.
    pub wal_flushes_per_second: Option<f64>,
    /// Commits per WAL flush. Above 1, commits share flushes.
    pub commits_per_flush: Option<f64>,
    /// tps × mean latency ÷ clients. Little's law gives 1 in a closed loop. None for an open loop,
    /// or with failures.
    pub little: Option<f64>,
    /// Generators that offered its load together; empty for one process.
    pub generators: Vec<GeneratorView>,
    /// Groups of its clients; empty where all clients run all scripts.
    pub groups: Vec<GroupView>,
    /// Stages of its rate over time; empty where the rate stays, or there is none.
    pub stages: Vec<StageView>,
    /// Statements, over all completed trials.
    pub statements: Vec<StatementView>,
    /// States of its backends over all completed trials, the commonest first.
    pub waits: Vec<WaitView>,
    /// Latency by quantile as (share of transactions, microseconds), up to the quantile beyond
    /// which ten transactions lie.
    pub quantiles: Vec<(f64, f64)>,
}

/// Reason why a treatment is not ranked.
#[derive(Clone, Debug)]
pub enum NotRanked {
    /// Crash tests found that it does not keep what it acknowledged.
    CrashTests(TreatmentCrash),
    /// fsync is off, while other treatments of the run flush.
    FsyncOff,
}

/// Transactions per second over repeats.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TpsView {
    /// Mean of the trials.
    pub mean: f64,
    /// Student's 95% confidence interval of the mean, cut at 0; none where `reason` of the
    /// treatment has one.
    pub ci95: Option<[f64; 2]>,
    /// Sample standard deviation of the trials; none for one trial.
    pub sd: Option<f64>,
    /// Slowest trial.
    pub min: f64,
    /// Fastest trial.
    pub max: f64,
}

/// State of a load's backends: running, or waiting for an event.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitView {
    /// `type:event` as in `pg_stat_activity`, or `CPU`: runs or wants to.
    pub event: String,
    /// Share of all samples (0 to 1).
    pub share: f64,
    /// Mean number of backends in this state.
    pub backends: f64,
}
