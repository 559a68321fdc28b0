//! Figures of tables that follow from other figures of theirs.

use std::collections::BTreeMap;

use serde::Serialize;

/// Figures of a table, computed and as they are printed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "fields have the names of the report's figures")]
pub enum TableKind {
    /// Mean of a row's repeats.
    Mean { row: String, values: Vec<f64>, mean: f64, printed: f64 },
    /// Means that are right, by row.
    Means {
        #[serde(skip)]
        rows: usize,
        #[serde(flatten)]
        means: BTreeMap<String, f64>,
    },
    /// Ratio of a row to the row of 100% or 1.
    Ratio { row: String, base: String, ratio: f64, printed: f64 },
    /// Ratios that are right, by row.
    Ratios {
        #[serde(skip)]
        rows: usize,
        #[serde(skip)]
        base: String,
        #[serde(flatten)]
        ratios: BTreeMap<String, f64>,
    },
    /// Sum of the parts of a whole.
    Percentages { whole: Whole, sum_percent: f64 },
    /// Rate of pg_test_fsync by the time of one flush.
    FlushRate { method: String, us: f64, per_second: f64, printed: f64 },
    /// Rates of pg_test_fsync that agree with their times (count).
    FlushRates { rates: usize },
}

/// Whole of 100%.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Whole {
    /// iostat's CPU time.
    CpuTime,
    /// Column of shares.
    Shares,
}
