//! A bulk load as a caller asks for it.

use pgdyno_model::experiment::Loading;
use pgdyno_model::load_strategy::LoadStrategy;
use pgdyno_postgres::schema::MARK;
use postgres_protocol::escape::escape_identifier;

use crate::workload::DataSet;

/// Rows of a chunk: some 50 MB of pgbench's accounts, and half a second of work.
pub(crate) const CHUNK_ROWS: u64 = 500_000;
/// Treatment of tables that exist before the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// They stay, and the load is refused. An interrupted load of the same data continues.
    Keep,
    /// Tables that pgdyno made are dropped. If there are others, they stay and the load is refused.
    ReplaceOurs,
}

/// Cores of this machine (count).
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A data set to load, and how to load it.
///
/// ```
/// use pgdyno_dataset::{BulkLoad, workload};
/// use pgdyno_model::experiment::Loading;
///
/// let data = workload::load("tpcb-like", &[])?.data;
/// let loading = Loading::default();
/// let load = BulkLoad { schema: "bench", ..BulkLoad::new(&data, 10, 1, &loading) };
/// assert_eq!(load.identity(), "tpcb-like at scale 10, seed 1");
/// # Ok::<(), workload::WorkloadError>(())
/// ```
#[derive(Clone, Debug)]
pub struct BulkLoad<'a> {
    /// The data set.
    pub data: &'a DataSet,
    /// The data set's size, in the workload's unit.
    pub scale: u32,
    /// Seed for generated rows. The rows do not depend on the number of connections.
    pub seed: u64,
    /// Connections, partitions and filler.
    pub loading: &'a Loading,
    /// The schema that the tables lie in.
    pub schema: &'a str,
    /// The beginning of the comments on tables.
    pub mark: &'a str,
    /// Tables and the tablespaces that they go into.
    pub placed: &'a [(String, String)],
    /// The strategy that the user asks for; none: the one that suits the cores.
    pub strategy: Option<LoadStrategy>,
    /// Treatment of tables that exist.
    pub existing: Existing,
    /// Rows of a chunk (count).
    pub chunk: u64,
}

impl<'a> BulkLoad<'a> {
    /// Describes a load into schema `public`, with chunks of the usual size.
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
            chunk: CHUNK_ROWS,
        }
    }

    /// Returns the number of connections that load side by side (count).
    pub fn jobs(&self) -> usize {
        self.loading.jobs.map_or_else(cores, |jobs| jobs.get() as usize)
    }

    /// Returns table `name` with its schema, as SQL spells it. A name with a schema is kept.
    pub fn table(&self, name: &str) -> String {
        match name.contains('.') {
            true => name.to_owned(),
            false => format!("{}.{name}", escape_identifier(self.schema)),
        }
    }

    /// Returns the name of the generated rows, such as `tpcb-like at scale 10, seed 1`.
    ///
    /// It stands in the comments on tables, so that a load is known again.
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
