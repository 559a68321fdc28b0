//! `pgdyno worker`: offers a share of a load, or samples its host's telemetry (`--observe`).
//!
//! pgdyno starts this command itself, here or by `ssh`; or a scheduler does, and it joins
//! (`--join`).

use std::path::PathBuf;

use clap::Args;
use pgdyno_lab::{cpus_allowed, serve_host_telemetry};

use crate::error::CommandError;
use crate::exit_status::ExitStatus;

/// Options of `worker`.
#[derive(Args, Debug)]
pub(crate) struct WorkerArgs {
    /// Join the coordinator that listens there (`pgdyno pgbench --generators join:…`)
    #[arg(long, value_name = "HOST:PORT", requires = "token_file")]
    join: Option<String>,
    /// File with the token that the coordinator wrote; `-` is standard input
    #[arg(long, value_name = "FILE", requires = "join")]
    token_file: Option<PathBuf>,
    /// Sample this host's telemetry for a run elsewhere (`postgres.observe`), and offer no load
    #[arg(long, conflicts_with = "join")]
    observe: bool,
    /// Name of this worker in reports [default: its host's]
    #[arg(long, value_name = "NAME", requires = "join")]
    name: Option<String>,
}

/// Serves one load: orders come on standard input and reports go to standard output, or both by the
/// connection to the coordinator that it joins.
///
/// # Errors
/// It cannot join, or the load came to nothing.
pub(crate) fn run(options: &WorkerArgs) -> Result<ExitStatus, CommandError> {
    if options.observe {
        serve_host_telemetry(std::io::stdin(), std::io::stdout())
            .map_err(CommandError::from_exchange)?;
        return Ok(ExitStatus::Success);
    }
    let cpus = cpus_allowed();
    let served = match (&options.join, &options.token_file) {
        (Some(address), Some(file)) => {
            pgdyno_generators::serve_joined(address, file, options.name.as_deref(), cpus)
        }
        _ => pgdyno_generators::serve(std::io::stdin(), std::io::stdout(), cpus),
    };
    served?;
    Ok(ExitStatus::Success)
}
