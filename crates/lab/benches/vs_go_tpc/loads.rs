//! The load of the tables: `go-tpc tpcc prepare` beside `pgdyno load tprocc`.

use std::io::Write;

use pgdyno_test_support::{Interval, median};

use super::support::{Anything, Cost, PgdynoLoad, run, target};
use super::{Bench, OURS, ratio};

/// Database of the tables that go-tpc loads.
const PEERS: &str = "bench_go_tpc";

const TABLES: [&str; 9] = [
    "warehouse",
    "district",
    "customer",
    "history",
    "orders",
    "new_order",
    "order_line",
    "item",
    "stock",
];

/// Targets for the ratios of time and of client CPU.
const TARGETS: (f64, f64) = (0.5, 0.5);

/// Costs of one side's loads, in order: time, client CPU, server CPU (seconds), peak memory (MB).
#[derive(Default)]
struct Costs([Vec<f64>; 4]);

impl Costs {
    fn push(&mut self, cost: &Cost, server_cpu_seconds: f64) {
        let figures = [cost.seconds, cost.cpu_seconds, server_cpu_seconds, cost.memory_kb / 1000.0];
        for (column, figure) in self.0.iter_mut().zip(figures) {
            column.push(figure);
        }
    }

    fn ratios(&self, other: &Self) -> [Interval; 4] {
        std::array::from_fn(|column| ratio(&self.0[column], &other.0[column]))
    }
}

/// One table as a side loaded it.
struct TableSize {
    rows: i64,
    table_bytes: i64,
    indexes_bytes: i64,
}

impl Bench {
    /// Loads in turn, and prints costs, their ratios, and the tables of both sides.
    pub(crate) fn compare_loads(&self, out: &mut impl Write) -> Result<(), Anything> {
        let (mut ours, mut theirs) = (Costs::default(), Costs::default());
        for pair in 0..self.options.pairs {
            for turn in 0..2 {
                // Who goes first alternates.
                if (pair + turn) % 2 == 0 {
                    self.load_theirs(&mut theirs)?;
                } else {
                    self.load_ours(&mut ours)?;
                }
            }
        }
        writeln!(
            out,
            "\n{:<20}{:>18} {:>18} {:>18} {:>18}  target (time, client CPU)",
            "load", "time (s)", "client CPU (s)", "server CPU (s)", "memory (MB)"
        )?;
        for (name, costs) in [("go-tpc", &theirs), ("pgdyno", &ours)] {
            let [time, client, server, memory] = costs.0.each_ref().map(|column| median(column));
            writeln!(out, "{name:<20}{time:>18.2} {client:>18.2} {server:>18.2} {memory:>18.1}")?;
        }
        let [time, client, server, memory] = ours.ratios(&theirs);
        writeln!(
            out,
            "{:<20}{:>18} {:>18} {:>18} {:>18}  {} {}",
            "pgdyno / go-tpc",
            time.to_string(),
            client.to_string(),
            server.to_string(),
            memory.to_string(),
            target(time.median, TARGETS.0),
            target(client.median, TARGETS.1),
        )?;
        self.print_tables(out)
    }

    /// Loads pgdyno's tables, from a new database on.
    pub(crate) fn load_for_runs(&self) -> Result<(), Anything> {
        self.load_ours(&mut Costs::default())
    }

    fn load_ours(&self, costs: &mut Costs) -> Result<(), Anything> {
        self.server.fresh(OURS)?;
        let before = self.server.backends_cpu_seconds()?;
        let load = PgdynoLoad::new("tprocc", self.options.warehouses, self.options.jobs, OURS);
        let (cost, _) = run(self.server.pgdyno_load(&load)?)?;
        costs.push(&cost, self.server.backends_cpu_seconds()? - before);
        Ok(())
    }

    fn load_theirs(&self, costs: &mut Costs) -> Result<(), Anything> {
        self.server.fresh(PEERS)?;
        let before = self.server.backends_cpu_seconds()?;
        let (cost, _) = run(self.peer.load(&self.server, PEERS, &self.options))?;
        costs.push(&cost, self.server.backends_cpu_seconds()? - before);
        Ok(())
    }

    /// Prints rows and sizes of every table, as the last pair loaded them.
    fn print_tables(&self, out: &mut impl Write) -> Result<(), Anything> {
        writeln!(
            out,
            "\n{:<12}{:>22} {:>24} {:>24}",
            "table", "rows", "table (MB)", "indexes (MB)"
        )?;
        for table in TABLES {
            let theirs = self.table_size(PEERS, table)?;
            let ours = self.table_size(OURS, table)?;
            let mb = |bytes: i64| format!("{:.2}", bytes as f64 / 1e6);
            writeln!(
                out,
                "{table:<12}{:>10} {:>11} {:>12} {:>11} {:>12} {:>11}{}",
                theirs.rows,
                ours.rows,
                mb(theirs.table_bytes),
                mb(ours.table_bytes),
                mb(theirs.indexes_bytes),
                mb(ours.indexes_bytes),
                if theirs.rows == ours.rows { "" } else { "  rows differ" },
            )?;
        }
        writeln!(out, "(go-tpc, then pgdyno)")?;
        Ok(())
    }

    fn table_size(&self, database: &str, table: &str) -> Result<TableSize, Anything> {
        let row = self.server.cluster.control(database)?.query_one(
            &format!(
                "SELECT count(*), pg_table_size('{table}'), pg_indexes_size('{table}') FROM {table}"
            ),
            &[],
        )?;
        Ok(TableSize { rows: row.get(0), table_bytes: row.get(1), indexes_bytes: row.get(2) })
    }
}
