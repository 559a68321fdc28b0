//! pgdyno's bulk load beside `pgbench -i` and beside COPY of a prepared text file: in turn (A B, B
//! A, …), into one managed server with the same settings, each from a database just made and a
//! CHECKPOINT to keys and VACUUM. What is printed are ratios pgdyno ÷ the other: medians over the
//! pairs with a bootstrap interval.
//!
//!     cargo bench -p pgdyno-lab --bench vs_load -- \
//!         [--pairs N] [--scale N] [--only WORDS] [--minimal]
//!
//! Server CPU is that of the load's backends and their workers; it says more than time on a machine
//! that does other work besides. Client CPU is user and system time of the whole process, start-up
//! included. `--minimal` has the server run under wal_level = minimal.

#[path = "../support/mod.rs"]
mod support;

use std::io::Write as _;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Parser;
use pgdyno_postgres::find;
use pgdyno_test_support::Interval;
use support::{AS_PGDYNO_LOAD, Anything, PgdynoLoad, Server, as_pgdyno_load, run, target};

const DATABASE: &str = "bench";

/// One line of the table: what pgdyno loads, and beside what.
struct Cell {
    name: &'static str,
    workload: &'static str,
    /// Times the bench's `--scale`.
    scale: u32,
    partitions: u32,
    jobs: u32,
    strategy: &'static str,
    beside: Beside,
    /// Targets for the ratios of time and of client CPU; infinite without a target.
    target: (f64, f64),
}

#[derive(Clone, Copy, PartialEq)]
enum Beside {
    /// `pgbench -i`.
    Pgbench,
    /// `pgbench -i --partitions=2`.
    PgbenchPartitions,
    /// COPY … FROM 'file' WITH (FREEZE), then the key, then VACUUM (ANALYZE).
    TextCopy,
}

const NONE: f64 = f64::INFINITY;

#[rustfmt::skip]
const CELLS: &[Cell] = &[
    Cell { name: "pgbench's tables", workload: "tpcb-like", scale: 50, partitions: 0, jobs: 2,
           strategy: "", beside: Beside::Pgbench, target: (0.85, 0.15) },
    Cell { name: "the same, larger", workload: "tpcb-like", scale: 200, partitions: 0, jobs: 2,
           strategy: "", beside: Beside::Pgbench, target: (0.85, 0.15) },
    Cell { name: "the same, chunks", workload: "tpcb-like", scale: 50, partitions: 0, jobs: 2,
           strategy: "chunks", beside: Beside::Pgbench, target: (NONE, 0.15) },
    Cell { name: "2 partitions", workload: "tpcb-like", scale: 50, partitions: 2, jobs: 2,
           strategy: "", beside: Beside::Pgbench, target: (0.65, 0.15) },
    Cell { name: "2 partitions, larger", workload: "tpcb-like", scale: 200, partitions: 2, jobs: 2,
           strategy: "", beside: Beside::Pgbench, target: (0.65, 0.15) },
    Cell { name: "2 partitions, both", workload: "tpcb-like", scale: 50, partitions: 2, jobs: 2,
           strategy: "", beside: Beside::PgbenchPartitions, target: (NONE, 0.15) },
    Cell { name: "numbers", workload: "numbers", scale: 5, partitions: 0, jobs: 2,
           strategy: "", beside: Beside::TextCopy, target: (0.75, NONE) },
];

#[derive(Parser)]
struct Options {
    /// Pairs of loads for each line of the table.
    #[arg(long, default_value_t = 3)]
    pairs: u32,
    /// Share of each line's scale (%).
    #[arg(long, default_value_t = 100)]
    scale: u32,
    /// Only lines with these words in their name.
    #[arg(long)]
    only: Option<String>,
    /// Run the server with `wal_level = minimal`.
    #[arg(long)]
    minimal: bool,
    /// Cargo adds this flag.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.first().map(String::as_str) {
        Some(AS_PGDYNO_LOAD) => as_pgdyno_load(&arguments),
        _ => compare(&Options::parse()),
    };
    if let Err(e) = done {
        let _ = writeln!(std::io::stderr(), "error: {e}");
        std::process::exit(1);
    }
}

/// The server, and the folder of pgbench and psql.
struct Bench {
    server: Server,
    programs: PathBuf,
}

fn compare(options: &Options) -> Result<(), Anything> {
    let install = find(None, None)?
        .ok_or("no PostgreSQL of the distribution here, so no pgbench to compare with")?;
    let mut settings = vec![
        ("shared_buffers", "256MB"),
        ("max_wal_size", "8GB"),
        ("maintenance_work_mem", "256MB"),
    ];
    if options.minimal {
        settings.extend([("wal_level", "minimal"), ("max_wal_senders", "0")]);
    }
    let programs = install
        .bindir
        .join("postgres")
        .canonicalize()?
        .parent()
        .map(Path::to_owned)
        .unwrap_or_default();
    let version = install.version.clone();
    let bench = Bench { server: Server::start(install, &settings)?, programs };

    let Options { pairs, scale, .. } = *options;
    let mut out = std::io::stdout();
    let settings: Vec<String> =
        settings.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    writeln!(
        out,
        "PostgreSQL {version}, {pairs} pairs, {scale}% of the scales; {}",
        settings.join(", ")
    )?;
    writeln!(
        out,
        "{:<22}{:>6} {:>18} {:>18} {:>18} {:>8}  target (time, client CPU)",
        "load", "scale", "time", "server CPU", "client CPU", "MB"
    )?;
    for cell in CELLS {
        // A line's whole name means that line alone.
        let named = |only: &str| match CELLS.iter().any(|c| c.name == only) {
            true => cell.name == only,
            false => cell.name.contains(only),
        };
        if options.only.as_deref().is_some_and(|only| !named(only)) {
            continue;
        }
        let scale = (cell.scale * scale / 100).max(1);
        bench.line(&mut out, cell, scale, pairs)?;
    }
    bench.server.cluster.remove()?;
    Ok(())
}

impl Bench {
    fn line(
        &self,
        out: &mut impl std::io::Write,
        cell: &Cell,
        scale: u32,
        pairs: u32,
    ) -> Result<(), Anything> {
        let file = self.server.cluster.data().join("numbers.txt");
        if cell.beside == Beside::TextCopy {
            self.prepare_file(&file, scale)?;
        }
        let (mut time, mut cpu, mut server, mut memory) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for pair in 0..pairs {
            let mut seen = [None, None];
            for turn in 0..2 {
                // Who goes first alternates.
                let index = ((pair + turn) % 2) as usize;
                self.server.fresh(DATABASE)?;
                let command = if index == 0 {
                    self.theirs(cell, scale, &file)
                } else {
                    self.ours(cell, scale)?
                };
                let before = self.server.backends_cpu_seconds()?;
                let (one, _) = run(command)?;
                seen[index] = Some((one, self.server.backends_cpu_seconds()? - before));
            }
            let [Some((theirs, their_server)), Some((ours, our_server))] = seen else { continue };
            server.push(our_server / their_server);
            time.push(ours.seconds / theirs.seconds);
            cpu.push(ours.cpu_seconds / theirs.cpu_seconds.max(0.01));
            memory.push(ours.memory_kb / 1000.0);
        }
        let (time, cpu) = (Interval::bootstrap(&time), Interval::bootstrap(&cpu));
        writeln!(
            out,
            "{:<22}{scale:>6} {:>18} {:>18} {:>18} {:>8}  {} {}",
            cell.name,
            time.to_string(),
            Interval::bootstrap(&server).to_string(),
            if cell.beside == Beside::TextCopy { "-".to_owned() } else { cpu.to_string() },
            Interval::bootstrap(&memory).median(),
            target(time.median, cell.target.0),
            target(cpu.median, cell.target.1),
        )?;
        let _ = std::fs::remove_file(file);
        Ok(())
    }

    fn ours(&self, cell: &Cell, scale: u32) -> Result<Command, Anything> {
        let number = |n: u32| NonZeroU32::new(n).ok_or("a load of nothing");
        self.server.pgdyno_load(&PgdynoLoad {
            partitions: cell.partitions,
            strategy: cell.strategy.to_owned(),
            ..PgdynoLoad::new(cell.workload, number(scale)?, number(cell.jobs)?, DATABASE)
        })
    }

    fn theirs(&self, cell: &Cell, scale: u32, file: &Path) -> Command {
        let program = if cell.beside == Beside::TextCopy { "psql" } else { "pgbench" };
        let mut command = Command::new(self.programs.join(program));
        let Server { socket, port, user, .. } = &self.server;
        command.arg("-h").arg(socket).args(["-p", port, "-U", user]);
        match cell.beside {
            Beside::Pgbench => command.args(["-i", "-q", "-s", &scale.to_string(), DATABASE]),
            Beside::PgbenchPartitions => {
                command.args(["-i", "-q", "--partitions=2", "-s", &scale.to_string(), DATABASE])
            }
            Beside::TextCopy => {
                command.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", DATABASE]).args([
                    "-c",
                    "BEGIN",
                    "-c",
                    "CREATE TABLE numbers (number bigserial NOT NULL, operator smallint, region \
                     smallint)",
                    "-c",
                    &format!("COPY numbers FROM '{}' WITH (FREEZE)", file.display()),
                    "-c",
                    "ALTER TABLE numbers ADD PRIMARY KEY (number)",
                    "-c",
                    "COMMIT",
                    "-c",
                    "VACUUM (ANALYZE) numbers",
                ])
            }
        };
        command
    }

    /// The rows of `numbers` as text, beside the server's data: made once, from the table as pgdyno
    /// loads it.
    fn prepare_file(&self, file: &Path, scale: u32) -> Result<(), Anything> {
        let Some(cell) = CELLS.iter().find(|c| c.beside == Beside::TextCopy) else { return Ok(()) };
        self.server.fresh(DATABASE)?;
        run(self.ours(cell, scale)?)?;
        let copy = format!("COPY numbers TO '{}'", file.display());
        Ok(self.server.cluster.control(DATABASE)?.batch_execute(&copy)?)
    }
}
