//! A run of pgdyno's load engine in a process of its own, as `pgdyno pgbench` runs scripts.

use std::io::Write as _;
use std::num::NonZeroU32;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::Parser;
use pgdyno_dataset::workload;
use pgdyno_engine::script::{Script, Value};
use pgdyno_engine::{LoadObserver, LoadSpec, WeightedScript, WindowEnd, run_load};
use pgdyno_model::experiment::{Length, Protocol};
use pgdyno_model::target::{Address, Target};
use pgdyno_model::units::Span;

use super::runs::{Counts, SCRIPTS};
use super::support::{Anything, Server};
use super::{OURS, Options};

/// The word by which the bench's own binary becomes a run.
pub(crate) const AS_PGDYNO_RUN: &str = "--as-pgdyno-run";

/// Options by which [`command`] tells a child what to run.
#[derive(Parser)]
struct RunOptions {
    #[arg(long)]
    workload: String,
    #[arg(long)]
    scale: u32,
    #[arg(long)]
    clients: NonZeroU32,
    #[arg(long)]
    seconds: u64,
    #[arg(long)]
    seed: u64,
    #[arg(long)]
    socket: String,
    #[arg(long)]
    port: u16,
    #[arg(long)]
    user: String,
}

/// Returns the command by which the bench's own binary runs `workload` once.
pub(crate) fn command(
    workload: &str,
    server: &Server,
    options: &Options,
    seed: u32,
) -> Result<Command, Anything> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([AS_PGDYNO_RUN, "--workload", workload]);
    command.args(["--scale", &options.warehouses.to_string()]);
    command.args(["--clients", &options.clients.to_string()]);
    command.args(["--seconds", &options.seconds.to_string(), "--seed", &seed.to_string()]);
    command.args(["--port", &server.port, "--user", &server.user]);
    command.arg("--socket").arg(&server.socket);
    Ok(command)
}

/// Runs a workload's scripts on the prepared protocol, one thread for all clients, and prints the
/// counts as [`counts`] reads them.
pub(crate) fn as_pgdyno_run(arguments: &[String]) -> Result<(), Anything> {
    let options = RunOptions::parse_from(arguments);
    let workload = workload::load(&options.workload, &[])?;
    let scripts = workload
        .scripts
        .iter()
        .map(|s| {
            let script = Arc::new(Script::parse(&s.name, &s.text)?);
            Ok(WeightedScript::new(script, s.weight))
        })
        .collect::<Result<Vec<_>, Anything>>()?;
    let address = Address::Unix { directory: options.socket.into(), port: options.port };
    let spec = LoadSpec {
        clients: options.clients,
        protocol: Protocol::Prepared,
        length: Length::Duration(Span(Duration::from_secs(options.seconds))),
        seed: options.seed,
        variables: vec![("scale".into(), Value::Int(options.scale.into()).into())],
        window_end: WindowEnd::WithLastTransaction,
        ..LoadSpec::new(Target::new(address, &options.user, OURS), scripts)
    };
    let stop = AtomicBool::new(false);
    let seen =
        run_load(&spec, &LoadObserver { stop: &stop, on_open: &|_| {}, on_second: &|_| {} })?;
    if seen.counters.aborted_clients > 0 {
        return Err(format!("clients were aborted: {:?}", seen.counters.abort_reasons).into());
    }
    let mut out = std::io::stdout();
    write!(out, "{} {}", seen.total_s, seen.failed)?;
    for script in &seen.scripts {
        write!(out, " {}", script.transactions)?;
    }
    Ok(writeln!(out)?)
}

/// Reads the line that [`as_pgdyno_run`] prints: seconds, failed transactions, then transactions of
/// each script.
pub(crate) fn counts(line: &str) -> Result<Counts, Anything> {
    let figures: Vec<f64> = line.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    let [seconds, failed, transactions @ ..] = figures.as_slice() else {
        return Err("a run printed nothing".into());
    };
    let transactions = transactions
        .try_into()
        .map_err(|_| format!("a run has {} scripts, not {}", transactions.len(), SCRIPTS.len()))?;
    Ok(Counts { seconds: *seconds, failed: *failed, transactions })
}
