//! `pgdyno noise`: where the noise of this store's hosts lives.

use clap::Args;
use pgdyno_analysis::host_noise::noise;
use pgdyno_report as report;

use crate::context::Context;
use crate::error::CommandError;
use crate::exit_status::ExitStatus;
use crate::output::print;
use crate::shared_options::StoreOption;
use pgdyno_report::json::json;

#[derive(Args, Debug)]
pub(crate) struct NoiseArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreOption,
}

/// Prints the noise of each host, and what can be told beside it.
pub(crate) fn run(options: &NoiseArgs, context: &Context) -> Result<ExitStatus, CommandError> {
    let view = noise(&options.store.open()?)?;
    print(&if options.json { json(&view)? } else { report::noise(&view, context.width()) });
    Ok(ExitStatus::Success)
}
