//! `pgdyno show`: one stored result.

use clap::Args;
use pgdyno_results::analysis::analyse;
use pgdyno_results::report;
use pgdyno_results::store::Stored;

use crate::context::Context;
use crate::error::CommandError;
use crate::exit_status::ExitStatus;
use crate::output::print;
use crate::render::{render_crash, render_probe};
use crate::shared_options::StoreOption;

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// The id of a run, probe, crash test or import
    #[arg(value_name = "RUN|PROBE|CRASH|IMPORT")]
    pub(crate) run: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreOption,
}

/// Prints a run, a probe, crash tests or an import.
pub(crate) fn run(options: &Options, context: &Context) -> Result<ExitStatus, CommandError> {
    let store = options.store.open()?;
    let stored = store.resolve_any(&options.run)?;
    if options.json {
        print(&report::json::stored(&store, &stored)?);
        return Ok(ExitStatus::Success);
    }
    print(&match stored {
        Stored::Run(run) => {
            report::terminal(&analyse(&store, &run)?, context.width(), context.detail())
        }
        Stored::Probe(probe) => render_probe(&store.probe(&probe)?, false)?,
        Stored::Crash(crash) => render_crash(&store.crash(&crash)?, false)?,
        Stored::Imported(id) => report::audit::imported(&store.import(&id)?),
    });
    Ok(ExitStatus::Success)
}
