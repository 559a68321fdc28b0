//! `pgdyno stop`: asks a run that works to end.

use clap::Args;
use pgdyno_lab::live;

use crate::error::CommandError;
use crate::exit_status::ExitStatus;
use crate::output::print_line;
use crate::shared_options::StoreOption;
use crate::suggestions::RUNS;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pgdyno stop latest        End the newest run that works, after the trial in progress
  pgdyno stop latest --now  End it at once, without the trial in progress

See also: pgdyno-run(1)")]
pub(crate) struct StopArgs {
    /// The run; `latest` is the newest that works
    #[arg(value_name = "RUN", value_parser = RUNS, hide_possible_values = true)]
    pub(crate) run: String,
    /// End at once: the trial in progress is not stored
    #[arg(long)]
    pub(crate) now: bool,
    #[command(flatten)]
    pub(crate) store: StoreOption,
}

/// Asks the run to end, and returns without waiting for it.
pub(crate) fn run(options: &StopArgs) -> Result<ExitStatus, CommandError> {
    let store = options.store.path();
    let run = live::find(&store, &options.run)?.run;
    let when = if options.now {
        live::interrupt(&store, &run)?;
        "now"
    } else {
        live::ask_to_stop(&store, &run)?;
        "after the trial in progress"
    };
    print_line(&format!("run {run} ends {when}; `pgdyno run --resume {run}` goes on with it"));
    Ok(ExitStatus::Success)
}
