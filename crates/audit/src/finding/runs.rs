//! Figures of a run that follow from its other figures.

#![allow(missing_docs, reason = "fields have the names of the report's figures")]

use serde::Serialize;

use super::Program;

/// Figures of a run, computed and as they are printed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum RunKind {
    /// More threads than clients.
    Threads { threads: f64, clients: f64 },
    /// More transactions than the clients had to do; `wanted` is clients × each.
    BeyondClients { done: f64, clients: f64, each: f64, wanted: f64 },
    /// Count behind the slash that is not clients × each, which is `wanted`.
    Wanted { wanted: f64, clients: f64, each: f64, printed: f64 },
    /// Transactions done of those wanted; `lost` were failed or skipped.
    Done { done: f64, wanted: f64, lost: f64 },
    /// Duration by transactions ÷ tps.
    Duration { transactions: f64, tps: f64, seconds: f64, printed_seconds: f64, off_percent: f64 },
    /// Clients at work by latency × tps (Little's law).
    ClientsAtWork(ClientsAtWork),
    /// Rows of tables with no more clients at work than there are (count).
    RowsAtWork { rows: usize },
    /// Sum of statement latencies against the transaction's.
    StatementSum(StatementSum),
    /// Statement that makes most of the difference between two runs' latencies.
    LatencyGap(LatencyGap),
    /// Figures of the scripts against that of the run.
    ScriptSum { figure: ScriptFigure, sum: f64, whole: f64 },
    /// Figure that a program prints and that its other figures give otherwise.
    Printed { figure: PrintedFigure, computed: f64, printed: f64, off_percent: Option<f64> },
    /// Printed figures that are those of the others (count).
    Agreement { program: Program, figures: usize },
    /// Greatest percentile that sysbench's histogram knows (ms).
    CappedPercentile { printed: f64 },
}

/// Clients at work by latency × tps (Little's law).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClientsAtWork {
    pub clients_at_work: f64,
    pub clients: f64,
    pub latency_of: LatencyOf,
    pub latency_ms: f64,
    pub tps: f64,
    /// Share of the time in which clients were in no transaction, where that is too much.
    pub idle_percent: Option<f64>,
}

/// Sum of statement latencies against the transaction's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StatementSum {
    pub script: Option<String>,
    pub statements: usize,
    pub sum_ms: f64,
    pub transaction_ms: f64,
    pub share_percent: f64,
}

/// Statement that makes most of the difference between two runs' latencies.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LatencyGap {
    pub gap_ms: f64,
    pub slow_ms: f64,
    pub fast_ms: f64,
    pub statement: String,
    pub statement_slow_ms: f64,
    pub statement_fast_ms: f64,
    pub statement_gap_ms: f64,
    pub share_percent: f64,
}

/// Latency that stands for a transaction's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LatencyOf {
    /// Mean latency, as printed.
    Transaction,
    /// Sum of the statements' latencies.
    Statements,
}

/// Figure of each script of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScriptFigure {
    /// Transactions (count).
    Transactions,
    /// Transactions in a second.
    Tps,
    /// Share of all transactions (percent).
    Share,
    /// Share by weight (percent).
    Target,
}

/// Figure that a load generator prints and that its other figures give too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PrintedFigure {
    /// pgbench: percentage of a count.
    PercentageOfCount,
    /// pgbench: transactions done.
    TransactionsDone,
    /// pgbench: failures, by their kinds.
    FailuresOfAllKinds,
    /// pgbench: retries, by retried transactions.
    Retries,
    /// sysbench: transactions in a second.
    TransactionRate,
    /// sysbench: queries in a second.
    QueryRate,
    /// sysbench: queries, by those that read, write or do neither.
    Queries,
    /// sysbench: sum of latencies, by their mean.
    LatencySum,
    /// sysbench: events, by those of a thread.
    Events,
    /// sysbench: sum of latencies, by the time of a thread.
    ThreadTime,
}
