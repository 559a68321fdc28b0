//! `pgdyno show`: one stored result, or runs beside each other.

use clap::Args;
use pgdyno_report::{self as report, RunReport};
use pgdyno_store::Stored;

use crate::context::Context;
use crate::error::CommandError;
use crate::exit_status::ExitStatus;
use crate::output::print;
use crate::render::{render_crash, render_probe};
use crate::shared_options::StoreOption;
use crate::suggestions::RUNS;
use pgdyno_report::json::json_list;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pgdyno show latest --json  Print the newest run as JSON

See also: pgdyno-list(1), pgdyno-report(1)")]
pub(crate) struct ShowArgs {
    /// The id of a run, probe, crash test or import. Several runs are shown beside each other, as
    /// those of `run --hosts`
    #[arg(
        value_name = "RUN|PROBE|CRASH|IMPORT",
        required = true,
        value_parser = RUNS,
        hide_possible_values = true
    )]
    pub(crate) run: Vec<String>,
    /// Print JSON; of several runs a list
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreOption,
}

/// Prints a run, a probe, crash tests or an import; or a table of several runs.
pub(crate) fn run(options: &ShowArgs, context: &Context) -> Result<ExitStatus, CommandError> {
    let store = options.store.open()?;
    let [name] = options.run.as_slice() else {
        let read = |name: &String| RunReport::read(&store, &store.resolve(name)?);
        let runs = options.run.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        print(&if options.json {
            json_list(&runs)?
        } else {
            report::hosts(&runs, context.width())
        });
        return Ok(ExitStatus::Success);
    };
    let stored = store.resolve_any(name)?;
    if options.json {
        print(&report::json::stored(&store, &stored)?);
        return Ok(ExitStatus::Success);
    }
    print(&match stored {
        Stored::Run(run) => {
            report::terminal(&RunReport::read(&store, &run)?, context.width(), context.detail())
        }
        Stored::Probe(probe) => render_probe(&store.probe(&probe)?, false)?,
        Stored::Crash(crash) => render_crash(&store.crash(&crash)?, false)?,
        Stored::Imported(id) => report::audit::imported(&store.import(&id)?),
    });
    Ok(ExitStatus::Success)
}
