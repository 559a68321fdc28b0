//! Sizes of tables and indexes.

use serde::Serialize;

/// A table, without its indexes, or an index.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RelationSize {
    /// Its name.
    pub name: String,
    /// At the first sample, which is just before the window.
    pub before_bytes: f64,
    /// At the last.
    pub after_bytes: f64,
    /// What it grew by, for each transaction between the two samples; none if it did not grow.
    pub bytes_per_transaction: Option<f64>,
}
