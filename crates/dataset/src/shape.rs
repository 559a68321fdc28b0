//! In which pieces a data set is loaded: decided by tables, cores and what the user wants. Pure.

use std::fmt;

use crate::Filling;
use crate::workload::TableSpec;

/// Rows of a chunk: some 50 MB of pgbench's accounts, and half a second of work.
pub(crate) const CHUNK_ROWS: u64 = 500_000;
/// From so many cores and connections on, chunks side by side outrun one COPY with FREEZE. Without
/// it the same rows cost the server 1.2 times the CPU (docs/benchmarks.md), their WAL, and a VACUUM
/// that writes every page again and runs alone; loader and VACUUM want a core too. By that
/// arithmetic four cores are where it pays; measured were only two, where it does not.
const CORES_FOR_CHUNKS: usize = 4;

/// How one table is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// One COPY with FREEZE, in one transaction with the key: the rows are written once.
    Freeze,
    /// Several COPY side by side, each chunk a transaction: what is loaded is not loaded again
    /// after an interruption.
    Chunks,
    /// Each partition made, filled with FREEZE and given its key in one transaction, then attached.
    Partitions,
}

impl Strategy {
    /// What users call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Freeze => "freeze",
            Self::Chunks => "chunks",
            Self::Partitions => "partitions",
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Freeze => "one COPY with FREEZE",
            Self::Chunks => "several COPY without FREEZE, chunk by chunk",
            Self::Partitions => "partitions side by side, each by COPY with FREEZE",
        })
    }
}

/// Cores of this machine (count).
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The strategy for one table.
fn strategy(filling: &Filling<'_>, table: &TableSpec, cores: usize) -> Strategy {
    let rows = rows(filling, table);
    if filling.loading.partitions > 0 && table.partition_by.is_some() {
        return Strategy::Partitions;
    }
    let enough = cores.min(filling.jobs()) >= CORES_FOR_CHUNKS;
    match filling.strategy {
        Some(Strategy::Chunks) if rows > filling.chunk => Strategy::Chunks,
        None if enough && rows > 4 * filling.chunk => Strategy::Chunks,
        _ => Strategy::Freeze,
    }
}

/// The strategy for every table, on a machine with so many cores.
pub(crate) fn strategies(filling: &Filling<'_>, cores: usize) -> Vec<Strategy> {
    filling.data.tables.iter().map(|table| strategy(filling, table, cores)).collect()
}

/// Rows that `table` gets (count).
pub(crate) fn rows(filling: &Filling<'_>, table: &TableSpec) -> u64 {
    table.rows_per_scale * u64::from(filling.scale)
}

/// Rows of `table` that get their key together (count): all, or those of a partition.
pub(crate) fn piece_rows(filling: &Filling<'_>, table: &TableSpec, strategy: Strategy) -> u64 {
    let all = rows(filling, table);
    match strategy {
        Strategy::Freeze | Strategy::Chunks => all,
        Strategy::Partitions => all.div_ceil(u64::from(filling.loading.partitions.max(1))),
    }
}

/// A piece of work that is done whole, in one transaction, or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    /// The table's place among the data set's.
    pub(crate) table: usize,
    pub(crate) strategy: Strategy,
    /// Its number among the table's, from 1.
    pub(crate) number: u32,
    /// How many the table has.
    pub(crate) of: u32,
    /// Its first row's number.
    pub(crate) first: u64,
    /// How many rows it has.
    pub(crate) rows: u64,
}

impl Unit {
    /// What the progress table calls it.
    pub(crate) fn name(&self, tables: &[TableSpec]) -> String {
        match self.strategy {
            Strategy::Freeze => tables[self.table].name.clone(),
            Strategy::Chunks => format!("{} chunk {}", tables[self.table].name, self.number),
            Strategy::Partitions => {
                format!("{} partition {}", tables[self.table].name, self.number)
            }
        }
    }
}

/// All pieces; those of the largest tables first, so that the last connection to end does not end
/// late.
pub(crate) fn units(filling: &Filling<'_>, strategies: &[Strategy]) -> Vec<Unit> {
    let tables = &filling.data.tables;
    let mut units: Vec<Unit> = Vec::new();
    for (table, strategy) in strategies.iter().enumerate() {
        let all = rows(filling, &tables[table]);
        let size = match strategy {
            Strategy::Chunks => filling.chunk,
            Strategy::Freeze | Strategy::Partitions => {
                piece_rows(filling, &tables[table], *strategy)
            }
        };
        let size = size.max(1);
        let of = u32::try_from(all.div_ceil(size).max(1)).unwrap_or(u32::MAX);
        for (number, n) in (1..=of).zip(0_u64..) {
            let first = n * size + 1;
            let rows = size.min((all + 1).saturating_sub(first));
            units.push(Unit { table, strategy: *strategy, number, of, first, rows });
        }
    }
    units.sort_by_key(|unit| std::cmp::Reverse(rows(filling, &tables[unit.table])));
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
        let mut filling = Filling::new(&data, 50, 1, &loading);
        let accounts = |filling: &Filling<'_>, cores| strategies(filling, cores)[2];
        assert_eq!(accounts(&filling, 2), Strategy::Freeze);
        assert_eq!(strategies(&filling, 8), [Strategy::Freeze, Strategy::Freeze, Strategy::Chunks]);
        filling.strategy = Some(Strategy::Freeze);
        assert_eq!(accounts(&filling, 8), Strategy::Freeze);
        filling.strategy = Some(Strategy::Chunks);
        assert_eq!(accounts(&filling, 2), Strategy::Chunks);
        let parted = Loading { partitions: 3, ..loading.clone() };
        assert_eq!(accounts(&Filling::new(&data, 1, 1, &parted), 2), Strategy::Partitions);
    }

    #[test]
    fn pieces_cover_every_row_once() {
        let data = crate::workload::load("tpcb-like", &[]).unwrap().data;
        for partitions in [0, 7] {
            let loading = Loading { partitions, ..Loading::default() };
            let mut filling = Filling::new(&data, 3, 1, &loading);
            (filling.strategy, filling.chunk) = (Some(Strategy::Chunks), 70_000);
            let units = units(&filling, &strategies(&filling, 2));
            for (table, spec) in data.tables.iter().enumerate() {
                let mine: Vec<&Unit> = units.iter().filter(|u| u.table == table).collect();
                let mut next = 1;
                for (unit, number) in mine.iter().zip(1..) {
                    assert_eq!(
                        (unit.first, unit.number, unit.of),
                        (next, number, u32::try_from(mine.len()).unwrap())
                    );
                    next += unit.rows;
                }
                assert_eq!(next - 1, rows(&filling, spec));
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
