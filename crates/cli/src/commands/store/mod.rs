//! `pgdyno store`: the store over months.

mod merge;
mod size;
mod thin;

use clap::Subcommand;

use crate::context::Context;
use crate::error::CommandError;
use crate::exit_status::ExitStatus;

#[derive(Debug, Subcommand)]
#[command(after_help = "\
Environment:
  PGDYNO_STORE  The store, unless --store names one

Files:
  $XDG_DATA_HOME/pgdyno/store.sqlite3
                The store: all runs, probes, crash tests and imports. XDG_DATA_HOME is
                ~/.local/share unless it is set")]
pub(crate) enum Command {
    /// Show what takes the room: kinds of content, and the largest runs
    Size(size::StoreSizeArgs),
    /// Remove detail of old runs: telemetry between two minutes, and the latency distribution of
    /// each second. Figures, intervals and percentiles stay as they are
    Thin(thin::StoreThinArgs),
    /// Merge stores into one: all of their runs, probes, crash tests and imports
    Merge(merge::StoreMergeArgs),
}

/// Runs a command of the group.
pub(crate) fn run(command: &Command, context: &Context) -> Result<ExitStatus, CommandError> {
    match command {
        Command::Size(options) => size::run(options),
        Command::Thin(options) => thin::run(options, context),
        Command::Merge(options) => merge::run(options, context),
    }
}
