//! Pieces of a load: they follow from tables, cores and options.

use pgdyno_model::load_strategy::LoadStrategy;

use crate::bulk_load::BulkLoad;
use crate::workload::TableSpec;

/// From so many cores and connections on, chunks side by side outrun one COPY with FREEZE. Without
/// it the same rows cost the server 1.2 times the CPU (docs/benchmarks.md), their WAL, and a VACUUM
/// that writes every page again and runs alone; loader and VACUUM want a core too. By that
/// arithmetic four cores are where it pays; measured were only two, where it does not.
const CORES_FOR_CHUNKS: usize = 4;

/// Returns the strategy for one table.
fn strategy(load: &BulkLoad<'_>, table: &TableSpec, cores: usize) -> LoadStrategy {
    if !load.data.after_schema.is_empty() {
        return LoadStrategy::Chunks;
    }
    let rows = rows(load, table);
    if load.loading.partitions > 0 && table.partition_by.is_some() {
        return LoadStrategy::Partitions;
    }
    let enough = cores.min(load.jobs()) >= CORES_FOR_CHUNKS;
    match load.strategy {
        Some(LoadStrategy::Chunks) if rows > load.chunk => LoadStrategy::Chunks,
        None if enough && rows > 4 * load.chunk => LoadStrategy::Chunks,
        _ => LoadStrategy::Freeze,
    }
}

/// Returns the strategy for each table on a machine with `cores` cores.
pub(crate) fn strategies(load: &BulkLoad<'_>, cores: usize) -> Vec<LoadStrategy> {
    load.data.tables.iter().map(|table| strategy(load, table, cores)).collect()
}

/// Returns the rows of `table` (count).
pub(crate) fn rows(load: &BulkLoad<'_>, table: &TableSpec) -> u64 {
    load.data.rows(table, load.scale, load.seed)
}

/// Returns the rows of `table` that share a key (count): all, or those of a partition.
pub(crate) fn piece_rows(load: &BulkLoad<'_>, table: &TableSpec, strategy: LoadStrategy) -> u64 {
    let all = rows(load, table);
    match strategy {
        LoadStrategy::Freeze | LoadStrategy::Chunks => all,
        LoadStrategy::Partitions => all.div_ceil(u64::from(load.loading.partitions.max(1))),
    }
}

/// A piece of work that is done whole, in one transaction, or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Index of the table in the data set.
    pub(crate) table: usize,
    pub(crate) strategy: LoadStrategy,
    /// Number of the piece among the table's pieces, from 1.
    pub(crate) number: u32,
    /// Pieces of the table (count).
    pub(crate) of: u32,
    /// Number of the first row, from 1.
    pub(crate) first: u64,
    /// Rows (count).
    pub(crate) rows: u64,
}

impl Piece {
    /// Returns its name in the progress table.
    pub(crate) fn name(&self, tables: &[TableSpec]) -> String {
        match self.strategy {
            LoadStrategy::Freeze => tables[self.table].name.clone(),
            LoadStrategy::Chunks => format!("{} chunk {}", tables[self.table].name, self.number),
            LoadStrategy::Partitions => {
                format!("{} partition {}", tables[self.table].name, self.number)
            }
        }
    }
}

/// Returns all pieces, the largest tables' first, so that no connection works alone for long.
pub(crate) fn units(load: &BulkLoad<'_>, strategies: &[LoadStrategy]) -> Vec<Piece> {
    let tables = &load.data.tables;
    let mut units: Vec<Piece> = Vec::new();
    for (table, strategy) in strategies.iter().enumerate() {
        let all = rows(load, &tables[table]);
        let size = match strategy {
            LoadStrategy::Chunks => load.chunk,
            LoadStrategy::Freeze | LoadStrategy::Partitions => {
                piece_rows(load, &tables[table], *strategy)
            }
        };
        let size = size.max(1);
        let of = u32::try_from(all.div_ceil(size).max(1)).unwrap_or(u32::MAX);
        for (number, n) in (1..=of).zip(0_u64..) {
            let first = n * size + 1;
            let rows = size.min((all + 1).saturating_sub(first));
            units.push(Piece { table, strategy: *strategy, number, of, first, rows });
        }
    }
    units.sort_by_key(|unit| std::cmp::Reverse(rows(load, &tables[unit.table])));
    units
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use pgdyno_model::experiment::Loading;

    use super::*;

    #[test]
    fn cores_choose_and_the_user_overrides() {
        let data = crate::workload::load("tpcb-like", &[]).unwrap().data;
        let loading = Loading { jobs: NonZeroU32::new(8), ..Loading::default() };
        let mut load = BulkLoad::new(&data, 50, 1, &loading);
        let accounts = |load: &BulkLoad<'_>, cores| strategies(load, cores)[2];
        assert_eq!(accounts(&load, 2), LoadStrategy::Freeze);
        assert_eq!(
            strategies(&load, 8),
            [LoadStrategy::Freeze, LoadStrategy::Freeze, LoadStrategy::Chunks]
        );
        load.strategy = Some(LoadStrategy::Freeze);
        assert_eq!(accounts(&load, 8), LoadStrategy::Freeze);
        load.strategy = Some(LoadStrategy::Chunks);
        assert_eq!(accounts(&load, 2), LoadStrategy::Chunks);
        let parted = Loading { partitions: 3, ..loading.clone() };
        assert_eq!(accounts(&BulkLoad::new(&data, 1, 1, &parted), 2), LoadStrategy::Partitions);
    }

    #[test]
    fn pieces_cover_every_row_once() {
        let data = crate::workload::load("tpcb-like", &[]).unwrap().data;
        for partitions in [0, 7] {
            let loading = Loading { partitions, ..Loading::default() };
            let mut load = BulkLoad::new(&data, 3, 1, &loading);
            (load.strategy, load.chunk) = (Some(LoadStrategy::Chunks), 70_000);
            let units = units(&load, &strategies(&load, 2));
            for (table, spec) in data.tables.iter().enumerate() {
                let mine: Vec<&Piece> = units.iter().filter(|u| u.table == table).collect();
                let mut next = 1;
                for (unit, number) in mine.iter().zip(1..) {
                    assert_eq!(
                        (unit.first, unit.number, unit.of),
                        (next, number, u32::try_from(mine.len()).unwrap())
                    );
                    next += unit.rows;
                }
                assert_eq!(next - 1, rows(&load, spec));
            }
            assert_eq!(
                units[0].name(&data.tables),
                if partitions == 0 {
                    "pgbench_accounts chunk 1"
                } else {
                    "pgbench_accounts partition 1"
                }
            );
        }
    }
}
