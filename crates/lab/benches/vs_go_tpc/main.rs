//! pgdyno's TPROC-C beside go-tpc, on one managed server: the bulk load, then runs, in turn (A B,
//! B A, …). Ratios are pgdyno ÷ go-tpc: medians over the pairs with a bootstrap interval.
//!
//!     cargo bench -p pgdyno-lab --bench vs_go_tpc -- \
//!         [--peer PATH] [--warehouses N] [--clients N] [--seconds N] [--pairs N] \
//!         [--only load|run|statements]
//!
//! Loads go into a database of their own each, just made, after a CHECKPOINT. All runs are on the
//! tables that pgdyno loads, so that the server has equal tables for everyone. pgdyno runs with
//! functions (`tprocc`, one message a transaction) and with plain statements (`tprocc-statements`).
//!
//! Client CPU is user and system time of the whole process, start-up included. Server CPU is that
//! of the backends and their workers. Autovacuum is off, since it would clean up after one load
//! while the next one runs.

#[path = "../support/mod.rs"]
mod support;

mod go_tpc;
mod loads;
mod pgdyno_run;
mod runs;

use std::io::Write as _;
use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use go_tpc::GoTpc;
use pgdyno_postgres::find;
use pgdyno_run::{AS_PGDYNO_RUN, as_pgdyno_run};
use pgdyno_test_support::Interval;
use support::{AS_PGDYNO_LOAD, Anything, Server, as_pgdyno_load};

/// Database of the tables that pgdyno loads.
const OURS: &str = "bench";

const SETTINGS: &[(&str, &str)] = &[
    ("shared_buffers", "1GB"),
    ("max_wal_size", "8GB"),
    ("maintenance_work_mem", "256MB"),
    ("autovacuum", "off"),
];

#[derive(Parser)]
struct Options {
    /// go-tpc's program.
    #[arg(long, default_value = "go-tpc")]
    peer: PathBuf,
    /// Warehouses: the unit of scale.
    #[arg(long, default_value = "10")]
    warehouses: NonZeroU32,
    /// Clients of a run; go-tpc calls them threads.
    #[arg(long, default_value = "8")]
    clients: NonZeroU32,
    /// Length of a run (seconds).
    #[arg(long, default_value = "20")]
    seconds: NonZeroU32,
    /// Connections of a load.
    #[arg(long, default_value = "2")]
    jobs: NonZeroU32,
    /// Loads of each side, and runs of each.
    #[arg(long, default_value_t = 3)]
    pairs: u32,
    /// Measure only loads, only runs with functions, or only runs with plain statements.
    #[arg(long)]
    only: Option<Part>,
    /// Cargo adds this flag.
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Part {
    Load,
    Run,
    Statements,
}

impl Options {
    fn has(&self, part: Part) -> bool {
        self.only.is_none_or(|only| only == part)
    }
}

/// The server, the peer, and what is measured of them.
struct Bench {
    server: Server,
    peer: GoTpc,
    options: Options,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.first().map(String::as_str) {
        Some(AS_PGDYNO_LOAD) => as_pgdyno_load(&arguments),
        Some(AS_PGDYNO_RUN) => as_pgdyno_run(&arguments),
        _ => compare(Options::parse()),
    };
    if let Err(e) = done {
        let _ = writeln!(std::io::stderr(), "error: {e}");
        std::process::exit(1);
    }
}

fn compare(options: Options) -> Result<(), Anything> {
    let peer = GoTpc::find(&options.peer)?;
    let install = find(None, None)?.ok_or("no PostgreSQL of the distribution here")?;
    let settings: Vec<String> =
        SETTINGS.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    let mut out = std::io::stdout();
    writeln!(
        out,
        "PostgreSQL {}, go-tpc {}, {} warehouses, {} pairs; {}",
        install.version,
        peer.version,
        options.warehouses,
        options.pairs,
        settings.join(", ")
    )?;
    let bench = Bench { server: Server::start(install, SETTINGS)?, peer, options };
    if bench.options.has(Part::Load) {
        bench.compare_loads(&mut out)?;
    }
    if bench.options.has(Part::Run) || bench.options.has(Part::Statements) {
        bench.compare_runs(&mut out)?;
    }
    bench.server.cluster.remove()?;
    Ok(())
}

/// Returns the ratios of `ours` to `theirs`, pair by pair, as an interval.
fn ratio(ours: &[f64], theirs: &[f64]) -> Interval {
    let pairs = ours.iter().zip(theirs);
    let ratios: Vec<f64> = pairs.map(|(ours, theirs)| ours / theirs.max(f64::EPSILON)).collect();
    Interval::bootstrap(&ratios)
}
