//! Causes that coincide with a change within a trial.

/// Event or measurement at the time of a change of tps. It may be the cause.
///
/// JSON has it as text, which `prose::cause` renders.
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
