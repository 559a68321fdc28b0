//! One attempt at a trial.

use std::collections::BTreeMap;

use pgdyno_model::measurement::{
    CommandSums, EventLoopLag, GeneratorLimit, Second, StatementMeasurement,
};
use pgdyno_model::record::ServerCount;
use pgdyno_model::units::Epoch;
use pgdyno_model::{Failure, FlushAccounting, Levels, Search};
use pgdyno_stats::Autocorrelation;
use serde::Serialize;

use super::latency::LatencyView;

/// One attempt at a trial.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrialView {
    /// Place in the plan, from 0.
    pub ordinal: u32,
    /// Block, from 1.
    pub block: u32,
    /// Index of its treatment.
    pub treatment: usize,
    /// Levels of its treatment.
    pub factors: Levels,
    /// Number among its treatment's trials, from 1.
    pub repeat: u32,
    /// State: completed, failed, or superfluous since another attempt was completed.
    pub state: TrialState,
    /// The failure; none unless it failed.
    #[serde(skip)]
    pub failure: Option<Failure>,
    /// Index of its session.
    pub session: Option<usize>,
    /// Index of its server.
    pub server: Option<usize>,
    /// Begin of provisioning.
    #[serde(serialize_with = "pgdyno_text::format::as_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub started_at: Epoch,
    /// Begin of the measured window.
    #[serde(serialize_with = "pgdyno_text::format::as_optional_text")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub measured_at: Option<Epoch>,
    /// Transactions per second in the window; none unless completed.
    pub tps: Option<f64>,
    /// Transactions that ended well in the window (count).
    pub transactions: Option<u64>,
    /// Transactions that ended in an error in the window (count).
    pub failed: Option<u64>,
    /// Failed transactions by SQLSTATE.
    pub failures: BTreeMap<String, u64>,
    /// Length of the window (seconds).
    pub measured_s: Option<f64>,
    /// Load before the window (seconds).
    pub warm_up_s: Option<f64>,
    /// Transactions that succeeded before the window (count).
    pub warm_up_transactions: Option<u64>,
    /// Time until all clients were connected (seconds).
    pub connect_s: Option<f64>,
    /// Clients that gave up (count).
    pub aborted_clients: u32,
    /// Errors that made clients give up.
    pub abort_reasons: Vec<String>,
    /// Result of flush accounting; none if it was not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flush_accounting: Option<FlushAccounting>,
    /// CPU of the load generator (cores).
    pub generator_cpus: Option<f64>,
    /// Waiting time of replies and due transactions for the load generator's event loops; none in
    /// records of versions before it was measured.
    pub event_loop_lag: Option<EventLoopLag>,
    /// CPU of the generator's busiest thread (cores).
    pub busiest_thread: Option<f64>,
    /// Limit that the load generator may have set; none if it set none.
    #[serde(skip)]
    pub generator_limit: Option<GeneratorLimit>,
    /// Rates that were tried, for a search. All other figures are of the step that confirmed the
    /// answer, or of the last step if none did.
    pub search: Option<Search>,
    /// Steadiness of its seconds; none without a series.
    #[serde(skip)]
    pub steadiness: Option<Steadiness>,
    /// Latency of its transactions (microseconds).
    pub latency_us: Option<LatencyView>,
    /// Latency from sent to done, for loads with a rate (microseconds).
    pub service_us: Option<LatencyView>,
    /// Transactions as the server counted them.
    pub server_count: Option<ServerCount>,
    /// Scripts and their statements.
    pub statements: Vec<StatementView>,
    /// One element for each second. Pages have these and the telemetry apart.
    #[cfg_attr(feature = "schema", schemars(skip_serializing_if = "Vec::is_empty"))]
    pub series: Vec<SecondView>,
    /// Telemetry as rates.
    #[cfg_attr(feature = "schema", schemars(skip_serializing_if = "Vec::is_empty"))]
    pub telemetry: Vec<RateTable>,
    /// Sizes of the largest tables and indexes, the fastest growing first.
    pub sizes: Vec<RelationSize>,
    /// CPU that telemetry took; none where it was not measured.
    pub observer: Option<ObserverView>,
    /// Checkpoints and autovacuum, as the server's log has them; none where the log is out of
    /// reach.
    pub events: Option<Vec<LogEvent>>,
}

/// CPU that telemetry took beside the load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ObserverView {
    /// CPU of pgdyno's sampling threads (cores).
    pub sampler_cpus: f64,
    /// CPU of the server backends that answer them (cores); none on another machine.
    pub backends_cpus: Option<f64>,
}

impl ObserverView {
    /// Both together (cores).
    pub fn cpus(&self) -> f64 {
        self.sampler_cpus + self.backends_cpus.unwrap_or(0.0)
    }
}

/// Steadiness of tps from second to second, over the whole seconds of the window.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Steadiness {
    /// Seconds at the beginning that still look like warm-up (MSER-5), 0 for none. None if that
    /// cannot be judged, or if tps never became steady.
    pub warm_up_s: Option<u32>,
    /// Change of mean tps without the warm-up seconds (a share).
    pub warm_up_gain: Option<f64>,
    /// Whether tps became steady; none where `steady_why` has the reason.
    pub steady: Option<bool>,
    /// Reason why steadiness was not judged.
    #[serde(skip)]
    pub steady_why: Option<NotJudged>,
    /// Independent seconds that the series is worth, where they are too few to judge (count).
    pub too_alike: Option<f64>,
    /// Correlation of neighbouring seconds.
    pub autocorrelation: Option<Autocorrelation>,
    /// Half of the 95% interval of the mean over seconds, as a share of the mean. It holds for this
    /// trial only. None where `within_why` has the reason.
    pub within: Option<f64>,
    /// Reason why `within` is missing.
    #[serde(skip)]
    pub within_why: Option<NotJudged>,
    /// Changes of tps; none for fewer than 20 seconds.
    #[serde(skip)]
    pub changes: Option<Vec<Change>>,
}

/// Reason why steadiness or the interval over seconds is not judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NotJudged {
    /// The window has too few whole seconds.
    TooShort {
        /// Fewest whole seconds that would do (count).
        least: f64,
    },
    /// Neighbouring seconds resemble each other too much.
    TooAlike {
        /// Independent seconds that they are worth (count).
        effective: f64,
    },
    /// No transaction was completed.
    NoTransaction,
    /// All seconds are equal.
    NoDifference,
}

/// A change of the mean tps within a trial.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    /// Time since the window opened (seconds).
    pub t_s: u32,
    /// Mean tps since the change before.
    pub before: f64,
    /// Mean tps until the next change.
    pub after: f64,
    /// Events and figures that changed at that time. They need not be the cause.
    #[serde(skip)]
    pub with: Vec<Cause>,
}

/// Event in the server's log that the load may have felt.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LogEvent {
    /// Time since the window opened (seconds); none if the log's times cannot be read.
    pub t_s: Option<f64>,
    /// `checkpoint starting`, `checkpoint complete`, `automatic vacuum`, `automatic analyze`, …, in
    /// the log's own words.
    pub kind: String,
    /// The checkpoint's reasons, or the table.
    pub of: String,
    /// Numbers of the message, by the log's names and in its units.
    pub numbers: BTreeMap<String, f64>,
}

/// State of an attempt at a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum TrialState {
    /// The attempt counts.
    Completed,
    /// Something went wrong, so the attempt does not count.
    Failed,
    /// An earlier attempt completed the trial, so this one does not count.
    Superfluous,
}

/// One SQL command.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatementView {
    /// Name of the script.
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

impl StatementView {
    /// Renders `statement` of the script called `script`.
    pub(crate) fn new(script: &str, statement: &StatementMeasurement) -> Self {
        Self {
            script: script.to_owned(),
            line: statement.line,
            text: statement.text.clone(),
            failed: statement.failed,
            latency_us: LatencyView::new(&statement.latency),
            first_byte_us: LatencyView::new(&statement.first_byte),
        }
    }
}

/// One second of a trial's window.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SecondView {
    /// Counts and latencies, as measured.
    #[serde(flatten)]
    pub second: Second,
    /// Transactions per second in it; none for no length.
    pub tps: Option<f64>,
    /// Sums of each of the trial's statements within the second, in their order; empty in trials
    /// that earlier versions stored.
    #[serde(skip)]
    pub statements: Vec<CommandSums>,
}

/// Rates over time that share a unit and an axis: one chart.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RateTable {
    /// Subject: `cpu`, `device_throughput`, `wait_events`, `wal`, `memory`, …
    pub group: &'static str,
    /// Title of the chart.
    pub title: String,
    /// Unit of the values.
    pub unit: &'static str,
    /// Whether the lines are parts of a whole.
    pub stacked: bool,
    /// Whether only a detailed report shows it.
    pub detail: bool,
    /// Begin of each interval (seconds since the window opened).
    pub t_s: Vec<f64>,
    /// Lines of the chart.
    pub lines: Vec<RateLine>,
}

/// One line of a [`RateTable`].
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RateLine {
    /// Name of the line.
    pub name: String,
    /// One value for each interval; none if the source had none or its counter went back.
    pub values: Vec<Option<f64>>,
}

/// Event or measurement at the time of a change of tps. It may be the cause.
#[derive(Clone, Debug, PartialEq)]
pub enum Cause {
    /// A checkpoint began.
    CheckpointBegins {
        /// PostgreSQL's words for what asked for it: `time`, `wal`, `immediate force wait`.
        reason: String,
    },
    /// A checkpoint was complete.
    CheckpointEnds,
    /// Autovacuum began or ended.
    Autovacuum {
        /// `automatic vacuum` or `automatic analyze`, as the server's log has it.
        kind: String,
        /// The table, with database and schema.
        table: String,
        /// Whether it began; else it ended.
        begins: bool,
    },
    /// A figure of telemetry that moved against tps.
    Telemetry {
        /// Name of the figure.
        source: &'static str,
        /// Mean before the change.
        before: f64,
        /// Mean after the change.
        after: f64,
        /// Unit, as it stands behind the number.
        unit: &'static str,
    },
    /// The device completed fewer operations while as much was asked of it.
    DeviceGaveLess {
        /// Kernel name of the device.
        device: String,
        /// Operations before and after (1/s).
        operations: [f64; 2],
        /// Mean latency of an operation before and after (milliseconds).
        latency_ms: [f64; 2],
    },
}

/// A table, without its indexes, or an index.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RelationSize {
    /// Name of the table or index.
    pub name: String,
    /// Size at the first sample, just before the window (bytes).
    pub before_bytes: f64,
    /// Size at the last sample (bytes).
    pub after_bytes: f64,
    /// Growth for each transaction between the two samples (bytes); none if it did not grow.
    pub bytes_per_transaction: Option<f64>,
}
