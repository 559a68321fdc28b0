//! Tables as figures.

use serde::{Deserialize, Serialize};

use super::columns::{Role, names_time, role};
use crate::figure::Figure;

/// Table with at least one understood column.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ReportTable"))]
pub struct Table {
    /// Line of its first row in the file, from 1.
    pub line: usize,
    /// Names of the columns; empty if unknown.
    pub header: Vec<String>,
    /// Whether its figures are tps.
    pub tps: bool,
    /// Whether the table itself mentions medians, intervals or numbers of repeats.
    pub summarised: bool,
    /// Origin of what is known of the columns.
    pub meaning: Meaning,
    /// Rows.
    pub rows: Vec<Row>,
}

/// Source of the knowledge about a table's columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Meaning {
    /// The header says it.
    Named,
    /// The figures show it: most rows' means are their repeats'.
    Computed,
    /// One figure or several, of which nobody says that they are repeats.
    #[default]
    Unknown,
}

/// Row of a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ReportRow"))]
pub struct Row {
    /// Text of the first column.
    pub label: String,
    /// Line in the file, from 1.
    pub line: usize,
    /// Figure of each repeat.
    pub repeats: Vec<Figure>,
    /// Mean, as printed.
    pub mean: Option<Figure>,
    /// Ratio to another row, as printed.
    pub ratio: Option<Figure>,
    /// Share of the whole, as printed (percent).
    pub share: Option<Figure>,
    /// Whether a spread is printed.
    pub has_spread: bool,
    /// Figures of unknown meaning, as (column, figure).
    pub others: Vec<(usize, Figure)>,
}

impl Table {
    /// Whether a column is called a time that something took.
    pub(crate) fn has_time_column(&self) -> bool {
        self.header.iter().skip(1).any(|name| names_time(name))
    }

    /// Whether a column is called tps and nothing more.
    pub(crate) fn has_tps_column(&self) -> bool {
        self.header.iter().any(|name| role(name) == Role::Tps)
    }
}

impl Row {
    /// The repeats without their lines.
    pub(crate) fn values(&self) -> Vec<f64> {
        self.repeats.iter().map(|f| f.value).collect()
    }

    /// Returns the figure that stands for the row: its mean, or its only figure.
    pub(crate) fn value(&self) -> Option<Figure> {
        self.mean.or(match (self.repeats.as_slice(), self.others.as_slice()) {
            ([only], []) => Some(*only),
            ([], [(_, only)]) => Some(*only),
            _ => None,
        })
    }
}

/// Whether `mean` may be what is printed of the mean of `repeats`.
pub(crate) fn mean_holds(repeats: &[Figure], mean: Figure) -> bool {
    let n = repeats.len().max(1) as f64;
    let sum = |end: fn(Figure) -> f64| repeats.iter().map(|f| end(*f)).sum::<f64>() / n;
    mean.may_print(sum(Figure::low), sum(Figure::high))
}
