//! Room and rows of a data set.

use pgdyno_model::units::Bytes;

use crate::workload::DataSet;

/// Room that WAL takes: PostgreSQL's default `max_wal_size`.
pub const WAL_ROOM: Bytes = Bytes(1 << 30);

/// Returns the room that `data` at `scale` takes on disk, including a new cluster without its WAL.
pub fn room_needed(data: &DataSet, scale: u32) -> Bytes {
    /// A fresh cluster of PostgreSQL 15 to 18 with one WAL segment.
    const CLUSTER: u64 = 60_000_000;
    Bytes(tables_room(data, scale).0.saturating_add(CLUSTER))
}

/// Returns the room that the tables of `data` at `scale` take, including indexes.
pub fn tables_room(data: &DataSet, scale: u32) -> Bytes {
    Bytes(data.bytes_per_scale.saturating_mul(u64::from(scale)))
}

/// Returns the rows of `data` at `scale` (count). Children of another table's rows are those of
/// one seed: another one draws a few more or fewer.
pub fn rows(data: &DataSet, scale: u32) -> u64 {
    data.tables.iter().map(|table| data.rows(table, scale, 1)).sum()
}
