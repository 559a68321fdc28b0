//! What the load engine measured in one trial.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Latencies;

/// What became of the load of one trial. The measured window starts after the warm-up; `transactions` are those
/// whose replies were complete within it.
///
/// Histograms are left out of the JSON: the store keeps them as histograms.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// From the first connection attempt until all clients were connected (seconds).
    pub connect_s: f64,
    /// Load offered before the window opened (seconds).
    pub warm_up_s: f64,
    /// The window's length (seconds).
    pub measured_s: f64,
    /// Transactions that ended well within the window (count).
    pub transactions: u64,
    /// Transactions that ended in an error within the window (count).
    pub failed: u64,
    /// Transactions that ended well before the window (count).
    pub warm_up_transactions: u64,
    /// Transactions under way when the window closed, that ended well after it (count).
    pub drained_transactions: u64,
    /// Transactions that ended in an error outside the window (count).
    pub failed_outside: u64,
    /// Errors within the window by SQLSTATE (count).
    pub failures: BTreeMap<String, u64>,
    /// Clients that gave up because of an error that is not to be retried, with what they met; at most the first
    /// ten are kept in words.
    pub aborted_clients: u32,
    /// What the aborted clients met.
    pub abort_reasons: Vec<String>,
    /// Latency of the transactions in the window: from due to done.
    #[serde(skip)]
    pub latency: Latencies,
    /// The same by script, in the workload's order.
    pub scripts: Vec<ScriptMeasurement>,
    /// One element for each second of the window.
    pub series: Vec<Second>,
    /// CPU time that this process used from the window's opening to its closing (seconds, user + system).
    pub generator_cpu_s: f64,
    /// From the first load until the last client ended, warm-up and draining in it (seconds): pgbench's own tps is all
    /// transactions divided by this.
    #[serde(default)]
    pub total_s: f64,
    /// Transactions that were due too long ago to meet the latency limit, and were never sent (count).
    #[serde(default)]
    pub skipped: u64,
    /// Transactions that ended well, but later than the latency limit (count). This and what follows is counted from the
    /// window's opening on, drained transactions too.
    #[serde(default)]
    pub late: u64,
    /// Transactions that were tried more than once, whatever became of them (count).
    #[serde(default)]
    pub retried: u64,
    /// Tries after a transaction's first (count).
    #[serde(default)]
    pub retries: u64,
    /// Failed transactions whose last error was a serialization failure (count).
    #[serde(default)]
    pub serialization_failures: u64,
    /// Failed transactions whose last error was a deadlock (count).
    #[serde(default)]
    pub deadlock_failures: u64,
    /// Failed transactions of other errors, those of clients that gave up among them (count).
    #[serde(default)]
    pub other_failures: u64,
    /// Sum of the latencies of `transactions` and `drained_transactions` (microseconds).
    #[serde(default)]
    pub latency_sum_us: f64,
    /// Sum of their squares (square microseconds).
    #[serde(default)]
    pub latency_sum_squares_us2: f64,
    /// With a rate: sum over the same of the time from due to sent (microseconds).
    #[serde(default)]
    pub lag_sum_us: f64,
    /// With a rate: the longest time from due to sent (microseconds).
    #[serde(default)]
    pub lag_max_us: f64,
    /// Connections made one by one for transactions (count); 0 where each client keeps its own.
    #[serde(default)]
    pub reconnections: u64,
    /// Time that those took together (seconds).
    #[serde(default)]
    pub reconnect_s: f64,
}

impl Measurement {
    /// Transactions per second within the window; `None` for a window of no length.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn tps(&self) -> Option<f64> {
        (self.measured_s > 0.0).then(|| self.transactions as f64 / self.measured_s)
    }

    /// All transactions that the server acknowledged, in and around the window (count).
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.warm_up_transactions + self.transactions + self.drained_transactions
    }
}

/// One script's share of a [`Measurement`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScriptMeasurement {
    /// The script's name: a built-in one, or its file.
    pub name: String,
    /// Its weight among the workload's scripts.
    pub weight: u32,
    /// Transactions that ended well within the window (count).
    pub transactions: u64,
    /// Transactions that ended in an error within the window (count).
    pub failed: u64,
    /// Latency of its transactions: from due to done.
    #[serde(skip)]
    pub latency: Latencies,
    /// Its SQL commands, in order.
    pub statements: Vec<StatementMeasurement>,
    /// All its commands, meta commands too, in order.
    #[serde(default)]
    pub commands: Vec<CommandMeasurement>,
    /// Transactions never sent because they were due too long ago (count).
    #[serde(default)]
    pub skipped: u64,
    /// Transactions later than the latency limit (count).
    #[serde(default)]
    pub late: u64,
    /// Transactions that were tried more than once (count).
    #[serde(default)]
    pub retried: u64,
    /// Tries after a transaction's first (count).
    #[serde(default)]
    pub retries: u64,
    /// Failed transactions whose last error was a serialization failure (count).
    #[serde(default)]
    pub serialization_failures: u64,
    /// Failed transactions whose last error was a deadlock (count).
    #[serde(default)]
    pub deadlock_failures: u64,
    /// Failed transactions of other errors (count).
    #[serde(default)]
    pub other_failures: u64,
    /// Transactions whose latency is in the two sums: those of the window and drained ones (count).
    #[serde(default)]
    pub latency_count: u64,
    /// Sum of their latencies (microseconds).
    #[serde(default)]
    pub latency_sum_us: f64,
    /// Sum of their squares (square microseconds).
    #[serde(default)]
    pub latency_sum_squares_us2: f64,
}

/// One command's share of a [`ScriptMeasurement`], SQL or meta, from the window's opening to the end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CommandMeasurement {
    /// The command as the script has it, white space folded.
    pub text: String,
    /// The line of the script it begins on (1-based).
    pub line: u32,
    /// `sql`, or the meta command's name.
    pub kind: String,
    /// Times it was executed to a good end (count).
    pub count: u64,
    /// Sum of the times that those took (microseconds). Meta commands that neither wait nor run a program take none.
    pub latency_sum_us: f64,
    /// Errors that ended a transaction (count).
    pub failures: u64,
    /// Errors after which the transaction was tried again (count).
    pub retries: u64,
}

/// One SQL command's share of a [`ScriptMeasurement`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StatementMeasurement {
    /// The command as the script has it, white space folded.
    pub text: String,
    /// The line of the script it begins on (1-based).
    pub line: u32,
    /// Errors it met within the window (count).
    pub failed: u64,
    /// Its latency: from sent to done.
    #[serde(skip)]
    pub latency: Latencies,
}

/// One second of the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// Whole seconds from the window's opening to this second's beginning.
    pub t_s: u32,
    /// How much of the second lies within the window (seconds; less than 1 only in the last one).
    pub length_s: f64,
    /// Transactions that ended well in it (count).
    pub transactions: u64,
    /// Transactions that ended in an error in it (count).
    pub failed: u64,
    /// Median latency (microseconds); none when nothing ended in it.
    pub latency_us_p50: Option<f64>,
    /// 95th percentile of latency (microseconds).
    pub latency_us_p95: Option<f64>,
    /// 99th percentile of latency (microseconds).
    pub latency_us_p99: Option<f64>,
    /// Longest latency (microseconds).
    pub latency_us_max: Option<f64>,
}
