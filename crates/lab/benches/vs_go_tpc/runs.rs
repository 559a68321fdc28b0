//! Runs of the five transactions: pgdyno with functions and with plain statements, and go-tpc, in
//! turn on the tables that pgdyno loads.

use std::io::Write;

use pgdyno_dataset::workload;
use pgdyno_test_support::median;

use super::support::{Anything, run, target};
use super::{Bench, OURS, Part, go_tpc, pgdyno_run, ratio};

/// The transactions, in the order of a workload's scripts.
pub(crate) const SCRIPTS: [&str; 5] =
    ["new_order", "payment", "order_status", "delivery", "stock_level"];

/// The workload whose transactions are plain statements.
const STATEMENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads/tprocc-statements/");

/// Target for the ratio of client CPU a transaction.
const TARGET: f64 = 0.5;

/// Counts of one run.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) seconds: f64,
    /// Transactions that ended in an error (count).
    pub(crate) failed: f64,
    /// Transactions of each of [`SCRIPTS`] (count).
    pub(crate) transactions: [f64; 5],
}

#[derive(Clone, Copy, PartialEq)]
enum Side {
    GoTpc,
    Functions,
    Statements,
}

impl Side {
    fn name(self) -> &'static str {
        match self {
            Self::GoTpc => "go-tpc",
            Self::Functions => "pgdyno, functions",
            Self::Statements => "pgdyno, statements",
        }
    }
}

/// Figures of one side's runs, in their order.
struct Figures {
    side: Side,
    /// New orders a minute.
    nopm: Vec<f64>,
    /// CPU of the client for a transaction (microseconds).
    client_us: Vec<f64>,
    /// CPU of the server for a transaction (microseconds).
    server_us: Vec<f64>,
    memory_mb: Vec<f64>,
    transactions: [f64; 5],
    failed: f64,
}

impl Figures {
    fn new(side: Side) -> Self {
        let (nopm, client_us, server_us, memory_mb) = (vec![], vec![], vec![], vec![]);
        let (transactions, failed) = ([0.0; 5], 0.0);
        Self { side, nopm, client_us, server_us, memory_mb, transactions, failed }
    }

    /// Share of each transaction over all runs, such as `45.1/42.9/4.0/4.0/4.0` (%).
    fn mix(&self) -> String {
        let all: f64 = self.transactions.iter().sum();
        let shares = self.transactions.map(|n| format!("{:.1}", 100.0 * n / all.max(1.0)));
        shares.join("/")
    }
}

impl Bench {
    /// Runs in turn, prints figures and ratios, and checks the tables afterwards.
    pub(crate) fn compare_runs(&self, out: &mut impl Write) -> Result<(), Anything> {
        if !self.options.has(Part::Load) {
            self.load_for_runs()?;
        }
        let mut sides = vec![Figures::new(Side::GoTpc)];
        if self.options.has(Part::Run) {
            sides.push(Figures::new(Side::Functions));
        }
        if self.options.has(Part::Statements) {
            sides.push(Figures::new(Side::Statements));
        }
        for pair in 0..self.options.pairs {
            let count = sides.len();
            for turn in 0..count {
                // Every second time from the last to the first.
                let index = if pair % 2 == 0 { turn } else { count - 1 - turn };
                self.run_once(&mut sides[index], pair)?;
            }
        }
        self.print_runs(out, &sides)?;
        self.check_tables(out)
    }

    fn run_once(&self, figures: &mut Figures, pair: u32) -> Result<(), Anything> {
        // Rows that many transactions have updated are found at equal cost by the next one.
        let mut client = self.server.cluster.control(OURS)?;
        client.batch_execute("VACUUM district, warehouse, new_order")?;
        client.batch_execute("CHECKPOINT")?;
        drop(client);
        let seed = pair + 1;
        let command = match figures.side {
            Side::GoTpc => self.peer.run(&self.server, OURS, &self.options),
            Side::Functions => pgdyno_run::command("tprocc", &self.server, &self.options, seed)?,
            Side::Statements => pgdyno_run::command(STATEMENTS, &self.server, &self.options, seed)?,
        };
        let before = self.server.backends_cpu_seconds()?;
        let (cost, text) = run(command)?;
        let server_seconds = self.server.backends_cpu_seconds()? - before;
        let counts = match figures.side {
            Side::GoTpc => go_tpc::summary(&text)?,
            Side::Functions | Side::Statements => pgdyno_run::counts(&text)?,
        };
        let transactions = counts.transactions.iter().sum::<f64>().max(1.0);
        figures.nopm.push(counts.transactions[0] * 60.0 / counts.seconds);
        figures.client_us.push(cost.cpu_seconds * 1e6 / transactions);
        figures.server_us.push(server_seconds * 1e6 / transactions);
        figures.memory_mb.push(cost.memory_kb / 1000.0);
        figures.failed += counts.failed;
        for (sum, count) in figures.transactions.iter_mut().zip(counts.transactions) {
            *sum += count;
        }
        Ok(())
    }

    fn print_runs(&self, out: &mut impl Write, sides: &[Figures]) -> Result<(), Anything> {
        writeln!(
            out,
            "\n{} clients, {} s: medians\n{:<20}{:>10} {:>18} {:>18} {:>12} {:>8}  mix (%): {}",
            self.options.clients,
            self.options.seconds,
            "run",
            "NOPM",
            "client CPU (us/tx)",
            "server CPU (us/tx)",
            "memory (MB)",
            "failed",
            SCRIPTS.join("/")
        )?;
        for side in sides {
            writeln!(
                out,
                "{:<20}{:>10.0} {:>18.1} {:>18.1} {:>12.1} {:>8}  {}",
                side.side.name(),
                median(&side.nopm),
                median(&side.client_us),
                median(&side.server_us),
                median(&side.memory_mb),
                side.failed,
                side.mix()
            )?;
        }
        writeln!(
            out,
            "\n{:<30}{:>18} {:>18} {:>18}  target (client CPU)",
            "ratio", "NOPM", "client CPU", "server CPU"
        )?;
        let Some((theirs, ours)) = sides.split_first() else { return Ok(()) };
        for ours in ours {
            let client = ratio(&ours.client_us, &theirs.client_us);
            writeln!(
                out,
                "{:<30}{:>18} {:>18} {:>18}  {}",
                format!("{} / go-tpc", ours.side.name()),
                ratio(&ours.nopm, &theirs.nopm).to_string(),
                client.to_string(),
                ratio(&ours.server_us, &theirs.server_us).to_string(),
                target(client.median, TARGET),
            )?;
        }
        Ok(())
    }

    /// Checks the workload's conditions once all runs are over, and prints those that are broken.
    fn check_tables(&self, out: &mut impl Write) -> Result<(), Anything> {
        let conditions = workload::load("tprocc", &[])?.consistency;
        let mut client = self.server.cluster.control(OURS)?;
        let mut broken = 0;
        for condition in &conditions {
            let rows: i64 = client.query_one(condition.broken.as_str(), &[])?.get(0);
            if rows > 0 {
                broken += 1;
                writeln!(out, "{rows} rows break the condition `{}`", condition.condition)?;
            }
        }
        if broken == 0 {
            writeln!(out, "all {} conditions hold after the runs", conditions.len())?;
        }
        Ok(())
    }
}
