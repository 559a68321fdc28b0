//! One attempt at a trial.

use std::collections::BTreeMap;

use pgdyno_model::measurement::EventLoopLag;
use pgdyno_model::record::ServerCount;
use pgdyno_model::units::Epoch;
use pgdyno_model::{Levels, Search};
use pgdyno_stats::Autocorrelation;
use serde::Serialize;

use super::cause::Cause;
use super::growth::RelationSize;
use super::latency::LatencyView;

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
    pub sizes: Vec<RelationSize>,
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
    pub with: Vec<Cause>,
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
