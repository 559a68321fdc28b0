//! A treatment over its completed trials.

use std::collections::BTreeMap;

use pgdyno_model::Levels;
use pgdyno_stats::Trend;
use serde::Serialize;

use super::comparison::RatioView;
use super::latency::{LatencyInterval, LatencyView};
use super::trial::StatementView;

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
