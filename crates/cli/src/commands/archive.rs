//! `pgdyno archive`: writes chosen records into a store of their own.

use std::path::PathBuf;

use clap::Args;
use pgdyno_lab::Bytes;

use super::rm::each_once;
use crate::context::Context;
use crate::error::CommandError;
use crate::exit_status::ExitStatus;
use crate::output::print_line;
use crate::shared_options::StoreOption;

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// The runs, probes, crash tests or imports to archive
    #[arg(value_name = "RUN", required = true)]
    pub(crate) runs: Vec<String>,
    /// The archive: a new file. Every command reads it with `--store FILE`
    #[arg(value_name = "FILE", required = true)]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) store: StoreOption,
}

/// Writes the archive and checks it. The store keeps its records.
pub(crate) fn run(options: &Options, context: &Context) -> Result<ExitStatus, CommandError> {
    let store = options.store.open()?;
    let records = each_once(&options.runs, |name| store.resolve_whole(name))?;
    store.archive(&records, &options.file, context.stop_flag())?;
    for record in &records {
        print_line(&format!("{} {}", record.kind(), record.id()));
    }
    let bytes = std::fs::metadata(&options.file).map(|found| found.len()).unwrap_or_default();
    print_line(&format!("archived and checked: {}, {}", options.file.display(), Bytes(bytes)));
    Ok(ExitStatus::Success)
}
