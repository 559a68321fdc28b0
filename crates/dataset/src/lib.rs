//! Loads a workload's data set: rows made in the process, streamed by binary COPY over several
//! connections, primary keys built after, then VACUUM and ANALYZE.

mod awake;
mod columns;
mod error;
mod fill;
mod keys;
mod shape;
mod traces;
pub mod trust;
mod work;
pub mod workload;

use pgdyno_host::postgres::schema::MARK;
use pgdyno_model::experiment::Loading;
use pgdyno_model::units::Bytes;
use postgres_protocol::escape::escape_identifier;

use crate::workload::DataSet;

pub use error::DatasetError;
pub use fill::{Filled, fill};
pub use shape::Strategy;
use shape::cores;
pub use traces::Existing;

/// Room that the WAL takes: PostgreSQL's default `max_wal_size`.
pub const WAL_ROOM: Bytes = Bytes(1 << 30);

/// What is to be loaded, and how.
#[derive(Clone, Debug)]
pub struct Filling<'a> {
    pub data: &'a DataSet,
    pub scale: u32,
    /// Of what is drawn.
    pub seed: u64,
    pub loading: &'a Loading,
    /// The schema that the tables lie in.
    pub schema: &'a str,
    /// How the comments on what is made begin.
    pub mark: &'a str,
    /// Tables and the tablespaces that they go into.
    pub placed: &'a [(String, String)],
    /// What the user wants; none: what suits.
    pub strategy: Option<Strategy>,
    /// What becomes of tables that are there.
    pub existing: Existing,
    /// Rows of a chunk (count).
    pub chunk: u64,
}

impl<'a> Filling<'a> {
    pub fn new(data: &'a DataSet, scale: u32, seed: u64, loading: &'a Loading) -> Self {
        Self {
            data,
            scale,
            seed,
            loading,
            schema: "public",
            mark: MARK,
            placed: &[],
            strategy: None,
            existing: Existing::Keep,
            chunk: shape::CHUNK_ROWS,
        }
    }

    /// Connections that load side by side (count).
    pub fn jobs(&self) -> usize {
        self.loading.jobs.map_or_else(cores, |jobs| jobs.get() as usize)
    }

    /// Table `name` with its schema, as SQL spells it; one that the workload gives a schema is left
    /// so.
    pub fn table(&self, name: &str) -> String {
        match name.contains('.') {
            true => name.to_owned(),
            false => format!("{}.{name}", escape_identifier(self.schema)),
        }
    }

    /// What tells one data set's rows from another's, in words: the comment on its tables.
    pub fn identity(&self) -> String {
        let mut words = format!("{} at scale {}, seed {}", self.data.name, self.scale, self.seed);
        let Loading { filler_compress_percentage: blanks, partitions, .. } = self.loading;
        if *blanks != Loading::default().filler_compress_percentage {
            words = format!("{words}, filler {blanks}% blanks");
        }
        if *partitions > 0 && self.data.tables.iter().any(|t| t.partition_by.is_some()) {
            words = format!("{words}, {partitions} partitions");
        }
        words
    }
}

/// Room that `data` at `scale` takes on disk, with what a fresh cluster takes beside its WAL.
pub fn room_needed(data: &DataSet, scale: u32) -> Bytes {
    /// A fresh cluster of PostgreSQL 15 to 18 with one WAL segment.
    const CLUSTER: u64 = 60_000_000;
    Bytes(tables_room(data, scale).0.saturating_add(CLUSTER))
}

/// Room that the tables of `data` at `scale` take, indexes included.
pub fn tables_room(data: &DataSet, scale: u32) -> Bytes {
    Bytes(data.bytes_per_scale.saturating_mul(u64::from(scale)))
}

/// Rows that `data` at `scale` has (count).
pub fn rows(data: &DataSet, scale: u32) -> u64 {
    data.tables.iter().map(|t| t.rows_per_scale * u64::from(scale)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_names_are_what_the_folder_and_the_settings_say() {
        let data = crate::workload::load("tpcb-like", &[]).unwrap().data;
        assert_eq!(rows(&data, 2), 200_022);
        let plain = Loading::default();
        assert_eq!(Filling::new(&data, 2, 1, &plain).identity(), "tpcb-like at scale 2, seed 1");
        let other = Loading { filler_compress_percentage: 0, partitions: 4, ..plain };
        assert_eq!(
            Filling::new(&data, 2, 1, &other).identity(),
            "tpcb-like at scale 2, seed 1, filler 0% blanks, 4 partitions"
        );
    }
}
