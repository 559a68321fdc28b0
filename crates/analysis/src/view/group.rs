//! One group of a treatment's clients.

use serde::Serialize;

use super::latency::LatencyView;
use super::treatment::TpsView;

/// A group of a treatment's clients, over its completed trials.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupView {
    /// Name.
    pub name: String,
    /// Clients (count).
    pub clients: u32,
    /// Rate over its clients together (`500`, or stages); none in a closed loop.
    pub rate: Option<String>,
    /// Mean time that a client thinks before each transaction (`40ms`); none: none.
    pub think_time: Option<String>,
    /// Name of the server of its clients; none: the treatment's.
    pub server: Option<String>,
    /// Transactions per second; none without a completed trial.
    pub tps: Option<TpsView>,
    /// Latency of its transactions, from when they were due; none without any.
    pub latency_us: Option<LatencyView>,
    /// Transactions that ended well (count).
    pub transactions: u64,
    /// Transactions that ended in an error (count).
    pub failed: u64,
}
