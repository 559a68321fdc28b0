//! How the rows of a table are loaded.

use serde::{Deserialize, Serialize};

use crate::names::names;

/// How one table is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr, Serialize, Deserialize)]
#[strum(serialize_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum LoadStrategy {
    /// One COPY with FREEZE, in one transaction with the primary key: rows are written once.
    Freeze,
    /// Several COPY side by side, one transaction per chunk. A load that is begun again skips the
    /// chunks that are complete.
    Chunks,
    /// One COPY with FREEZE per partition, in one transaction with the partition's primary key;
    /// then the partition is attached.
    Partitions,
}

names!(LoadStrategy);
