//! A report of pgbench as figures.

use serde::{Deserialize, Serialize};

use super::command::{LoadKind, statements_write};
use crate::figure::Figure;

/// Report of pgbench on one run. Each part is none where it was not printed, or not copied.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PgbenchRun {
    /// Heading above it that may be its name.
    pub label: Option<String>,
    /// First line in the file, from 1.
    pub line: usize,
    /// Last line in the file.
    pub last_line: usize,
    /// pgbench's version (from 14 on).
    pub version: Option<String>,
    /// `transaction type`.
    pub transaction_type: Option<String>,
    /// `scaling factor`.
    pub scale: Option<Figure>,
    /// `query mode`.
    pub query_mode: Option<String>,
    /// `number of clients`.
    pub clients: Option<Figure>,
    /// `number of threads` (from 9.0 on).
    pub threads: Option<Figure>,
    /// `number of transactions per client`.
    pub transactions_per_client: Option<Figure>,
    /// `duration` (seconds).
    pub duration_s: Option<Figure>,
    /// `number of transactions actually processed`.
    pub transactions: Option<Figure>,
    /// Count behind the slash: transactions that were to be processed.
    pub transactions_wanted: Option<Figure>,
    /// `number of failed transactions` (from 15 on).
    pub failed: Option<Figure>,
    /// `number of transactions skipped`, with a rate and a limit.
    pub skipped: Option<Figure>,
    /// `maximum number of tries` (from 15 on).
    pub max_tries: Option<Figure>,
    /// `number of transactions retried`.
    pub retried: Option<Figure>,
    /// `latency average` (milliseconds).
    pub latency_average_ms: Option<Figure>,
    /// `latency stddev` (milliseconds): printed only where latencies were measured one by one.
    pub latency_stddev_ms: Option<Figure>,
    /// The average of `rate limit schedule lag` (milliseconds).
    pub schedule_lag_ms: Option<Figure>,
    /// `initial connection time` (milliseconds).
    pub initial_connection_ms: Option<Figure>,
    /// tps `including connections establishing` (to 13).
    pub tps_including: Option<Figure>,
    /// tps `excluding connections establishing` (to 13).
    pub tps_excluding: Option<Figure>,
    /// tps `without initial connection time` (from 14 on).
    pub tps_without: Option<Figure>,
    /// tps `including reconnection times` (from 14 on, with -C).
    pub tps_reconnecting: Option<Figure>,
    /// tps of which nothing more is said.
    pub tps_bare: Option<Figure>,
    /// `statement latencies in milliseconds` of a run with one script.
    pub statements: Vec<Statement>,
    /// The scripts of a run with several.
    pub scripts: Vec<Script>,
    /// Progress lines that stand above it.
    pub progress: Vec<Progress>,
}

/// A command of a script and its mean latency.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ReportStatement"))]
pub struct Statement {
    /// The command's first line.
    pub text: String,
    /// Mean latency (milliseconds).
    pub latency_ms: Figure,
    /// How often it failed (from 15 on).
    pub failures: Option<Figure>,
}

/// A progress line.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ReportProgress"))]
pub struct Progress {
    /// Time since the start (seconds).
    pub at_s: Figure,
    /// tps since the line before.
    pub tps: Figure,
    /// Mean latency since then (milliseconds).
    pub latency_ms: Option<Figure>,
}

impl PgbenchRun {
    /// tps over the whole run; where connections were made once, their time may be in it (to 13) or
    /// not (from 14 on).
    pub(crate) fn tps(&self) -> Option<Figure> {
        self.tps_including
            .or(self.tps_without)
            .or(self.tps_reconnecting)
            .or(self.tps_bare)
            .or(self.tps_excluding)
    }

    /// Returns tps without the time for connecting, if the report has it.
    pub fn tps_connected(&self) -> Option<Figure> {
        self.tps_excluding
            .or(self.tps_without)
            .or(self.tps_reconnecting)
            .or(self.tps_bare)
            .or(self.tps_including)
    }

    /// Whether clients sent when they could, and every transaction was kept: then latency and tps
    /// are bound to the clients.
    pub(crate) fn is_closed_loop(&self) -> bool {
        let none = |count: Option<Figure>| count.is_none_or(|f| f.value == 0.0);
        self.schedule_lag_ms.is_none()
            && self.tps_reconnecting.is_none()
            && none(self.skipped)
            && none(self.failed)
            && none(self.retried)
    }

    /// The mean latency as printed. Versions 9.4 and 9.5 print 0 where transactions were counted
    /// out.
    pub(crate) fn latency(&self) -> Option<Figure> {
        self.latency_average_ms.filter(|l| l.value > 0.0)
    }

    /// Whether it changes data; none where nobody can tell from what is printed.
    pub(crate) fn writes(&self) -> Option<bool> {
        let kind = self.transaction_type.as_deref().map(LoadKind::from_report);
        kind.and_then(LoadKind::writes).or_else(|| {
            let statements =
                || self.statements.iter().chain(self.scripts.iter().flat_map(|s| &s.statements));
            statements_write(statements().map(|s| s.text.as_str()))
        })
    }

    /// How long it took (seconds): what is printed, else what its counts say.
    pub(crate) fn length_s(&self) -> Option<f64> {
        self.duration_s.map(|d| d.value).or_else(|| {
            let (transactions, tps) = (self.transactions?, self.tps()?);
            (tps.value > 0.0).then(|| transactions.value / tps.value)
        })
    }

    /// Returns all parameters that are printed: where they are equal, two runs may be repeats.
    pub(crate) fn parameters(&self) -> String {
        let value = |f: Option<Figure>| f.map(|f| f.value);
        format!(
            "{:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
            self.transaction_type,
            value(self.scale),
            self.query_mode,
            value(self.clients),
            value(self.threads),
            value(self.transactions_per_client),
            value(self.duration_s),
            value(self.max_tries)
        )
    }
}

/// A script of several.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ReportScript"))]
pub struct Script {
    /// File, or name of the built-in script.
    pub name: String,
    /// Where it is named in the file, from 1.
    pub line: usize,
    /// Share by weight (percent).
    pub target_percent: Option<Figure>,
    /// Transactions of the script (count).
    pub transactions: Option<Figure>,
    /// Share of all transactions (percent).
    pub percent: Option<Figure>,
    /// Transactions of the script in a second.
    pub tps: Option<Figure>,
    /// Mean latency (milliseconds).
    pub latency_average_ms: Option<Figure>,
    /// `statement latencies in milliseconds`.
    pub statements: Vec<Statement>,
}
