//! Tables without a format: names, columns and cells.

use super::ExportError;

/// A table of an export.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::IntoStaticStr, strum::VariantArray,
)]
#[strum(serialize_all = "lowercase")]
pub enum TableName {
    /// Every attempt at a trial.
    Trials,
    /// Every second of completed trials.
    Seconds,
    /// Every value of completed trials' telemetry, raw.
    Telemetry,
    /// Every SQL command of completed trials.
    Statements,
    /// Every generator of completed trials that several offered.
    Generators,
}

/// Type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Integer,
    Real,
    Text,
}

/// A column. Any value may be missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: Kind,
}

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Missing,
    Integer(i64),
    Real(f64),
    Text(String),
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Self::Integer(i64::try_from(count).unwrap_or(i64::MAX))
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Integer(number.into())
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        if value.is_finite() { Self::Real(value) } else { Self::Missing }
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Missing, Into::into)
    }
}

/// Takes the rows of one table, in order.
pub(super) trait TableSink {
    /// Takes a row: as many cells as the table has columns, each of its column's kind or missing.
    fn row(&mut self, row: &[Value]) -> Result<(), ExportError>;

    /// Ends the table.
    fn finish(self: Box<Self>) -> Result<(), ExportError>;
}
