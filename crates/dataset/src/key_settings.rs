//! Settings of a session that builds a key: never more than the server's own settings allow.

use pgdyno_connect::control::ControlClient;
use pgdyno_model::load_strategy::LoadStrategy;

use crate::bulk_load::BulkLoad;
use crate::column_spec::ColumnSpec;
use crate::error::DatasetError;
use crate::workload::TableSpec;

/// Memory for sorting one row (bytes): an index tuple of one number, and its slot in the array that
/// is sorted.
const ROW: u64 = 40;
/// Memory that is enough for each process that sorts (bytes). PostgreSQL starts a parallel worker
/// only where there is so much for it.
const EACH: u64 = 32 << 20;
/// Sorted runs that are merged at once without their buffers becoming small.
const RUNS: u64 = 64;

/// The server's settings for building keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Builders {
    /// `maintenance_work_mem` (bytes).
    memory: u64,
    /// `max_parallel_maintenance_workers` (count).
    workers: usize,
    /// Cores of the server's machine, where it is this one (count).
    cores: Option<usize>,
}

impl Builders {
    /// Reads the server's settings; `cores` are those of its machine, if known.
    pub(crate) fn ask(
        client: &mut ControlClient,
        load: &BulkLoad<'_>,
        cores: Option<usize>,
    ) -> Result<Self, DatasetError> {
        const ASKED: &str = "SELECT \
            pg_catalog.pg_size_bytes(pg_catalog.current_setting('maintenance_work_mem')), \
            pg_catalog.current_setting('max_parallel_maintenance_workers')::int8";
        let row = client
            .query_one(ASKED, &[])
            .map_err(|e| DatasetError::sql(load, "asking how keys are built", &e))?;
        let (memory, workers): (i64, i64) = (row.get(0), row.get(1));
        let (memory, workers) =
            (u64::try_from(memory).unwrap_or(0), usize::try_from(workers).unwrap_or(0));
        Ok(Self { memory, workers, cores })
    }

    /// Returns SQL for the transaction in which the key of `rows` rows of `table` is built.
    ///
    /// Keys that are built side by side share the cores; workers beyond those only take each
    /// other's time. Rows that come in the key's order are sorted already: memory beyond the
    /// processor's caches makes that slower (docs/benchmarks.md), as long as one merge is enough.
    pub(crate) fn settings(
        self,
        load: &BulkLoad<'_>,
        table: &TableSpec,
        strategy: LoadStrategy,
        rows: u64,
    ) -> Vec<String> {
        let beside = match strategy {
            LoadStrategy::Partitions => load.jobs().min(load.loading.partitions as usize).max(1),
            LoadStrategy::Freeze | LoadStrategy::Chunks => 1,
        };
        let share = self.cores.map_or(self.workers, |cores| (cores / beside).saturating_sub(1));
        let workers = self.workers.min(share);
        let mut sql = Vec::new();
        if workers < self.workers {
            sql.push(format!("SET LOCAL max_parallel_maintenance_workers = {workers}"));
        }
        let memory = (EACH * (workers as u64 + 1)).max(rows.saturating_mul(ROW) / RUNS);
        if in_order(table) && strategy != LoadStrategy::Chunks && memory < self.memory {
            sql.push(format!("SET LOCAL maintenance_work_mem = '{}kB'", memory >> 10));
        }
        sql
    }
}

/// Returns whether rows are made in the order of the table's key.
fn in_order(table: &TableSpec) -> bool {
    let first = table.primary_key.first();
    let column = table.columns.iter().find(|column| Some(&column.name) == first);
    column.is_some_and(ColumnSpec::is_row_number)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use pgdyno_model::experiment::Loading;

    use super::*;

    #[test]
    fn a_key_takes_its_share_of_cores_and_never_more_than_the_server_gives() {
        let data = crate::workload::load("tpcb-like", &[]).unwrap().data;
        let accounts = &data.tables[2];
        let loading = Loading { jobs: NonZeroU32::new(2), partitions: 2, ..Loading::default() };
        let load = BulkLoad::new(&data, 50, 1, &loading);
        let server = Builders { memory: 256 << 20, workers: 2, cores: Some(2) };
        let said = |server: Builders, strategy, rows| {
            server.settings(&load, accounts, strategy, rows).join("; ")
        };
        assert_eq!(
            said(server, LoadStrategy::Freeze, 5_000_000),
            "SET LOCAL max_parallel_maintenance_workers = 1; \
             SET LOCAL maintenance_work_mem = '65536kB'"
        );
        assert_eq!(
            said(server, LoadStrategy::Partitions, 2_500_000),
            "SET LOCAL max_parallel_maintenance_workers = 0; \
             SET LOCAL maintenance_work_mem = '32768kB'"
        );
        // Chunks may lie in any order, and many rows take more than one merge would hold.
        assert_eq!(
            said(server, LoadStrategy::Chunks, 5_000_000),
            "SET LOCAL max_parallel_maintenance_workers = 1"
        );
        let large = Builders { cores: Some(8), memory: 1 << 30, ..server };
        assert_eq!(
            said(large, LoadStrategy::Freeze, 1 << 30),
            "SET LOCAL maintenance_work_mem = '655360kB'"
        );
        // Little stays little, and of another machine's cores nothing is known.
        assert_eq!(
            said(Builders { memory: 16 << 20, cores: None, ..server }, LoadStrategy::Freeze, 1),
            ""
        );
    }
}
