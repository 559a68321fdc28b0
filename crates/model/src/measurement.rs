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
