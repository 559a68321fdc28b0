//! Telemetry: tables of samples taken while the load ran, each column with unit and kind.

use serde::{Deserialize, Serialize};

/// Name of the column with the time of a table's last reset (seconds since the Unix epoch), as
/// PostgreSQL's statistics views have it. Counters before and after a reset have no difference.
pub const STATS_RESET: &str = "stats_reset";

/// How a column's values relate to time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Only grows, but for resets and wraps: its differences are of interest.
    Counter,
    /// Goes up and down: its values are of interest.
    Gauge,
}

/// A column of a telemetry table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Source's own name of the column, prefixed with the device or the like if there are several
    /// (`vda.wr_ios`).
    pub name: String,
    /// Unit: `s`, `bytes`, `count`, `ms`, …
    pub unit: String,
    /// Counter or gauge.
    pub kind: Kind,
}

/// One sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Seconds from the window's opening; the first is at or just before 0.
    pub t_s: f64,
    /// A value for each column; none where the source did not have it.
    pub values: Vec<Option<f64>>,
}

/// Samples of one probe in one trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// The probe: `cpu`, `diskstats`, `pg_stat_wal`, …
    pub probe: String,
    /// Columns.
    pub columns: Vec<Column>,
    /// Samples, raw: counters are not yet differences.
    pub samples: Vec<Sample>,
    /// Why there are no samples, or fewer than expected.
    pub unavailable: Option<String>,
}
