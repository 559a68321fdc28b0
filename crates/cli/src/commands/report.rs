//! `pgdyno report`: the HTML report of a stored run.

use std::path::PathBuf;

use clap::Args;
use pgdyno_results::analysis::analyse;

use crate::error::CommandError;
use crate::exit_status::ExitStatus;
use crate::output::print_line;
use crate::report_destination::ReportDestination;
use crate::shared_options::StoreOption;

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// The run to report
    #[arg(value_name = "RUN", default_value = "latest")]
    pub(crate) run: String,
    /// Write the report to FILE; `-` is standard output [default: `reports/RUN.html` beside the
    /// store]
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StoreOption,
}

/// Writes the report of a run.
pub(crate) fn run(options: &Options) -> Result<ExitStatus, CommandError> {
    let store = options.store.open()?;
    let run = store.resolve(&options.run)?;
    let view = analyse(&store, &run)?;
    let output = options.output.as_deref();
    let destination = ReportDestination::new(output, &options.store.path(), &run)?;
    if let Some(file) = destination.write(&view)? {
        print_line(&format!("report of {run}: {}", file.display()));
    }
    Ok(ExitStatus::Success)
}
