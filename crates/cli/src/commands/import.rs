//! `pgdyno import`: takes records of an archive or another store into the store.

use std::path::PathBuf;

use clap::Args;
use pgdyno_provision::stores::open_store_for_reading;
use pgdyno_store::Merge;

use super::archive::carry_notes;
use super::rm::resolve_records;
use crate::context::Context;
use crate::error::CommandError;
use crate::exit_status::ExitStatus;
use crate::output::{print, print_line};
use crate::shared_options::StoreOption;
use pgdyno_report::json::json;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pgdyno import run.pgdyno  Take what an archive holds into the store

See also: pgdyno-archive(1), pgdyno-list(1), pgdyno-audit(1)")]
pub(crate) struct ImportArgs {
    /// An archive (`pgdyno archive`), or a store of this version or an earlier one. It is only read
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The runs, probes, crash tests or imports to take [default: all in FILE]
    #[arg(value_name = "RUN")]
    pub(crate) runs: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreOption,
}

/// Takes all of the records or none. Those that the store has are left as they are.
pub(crate) fn run(options: &ImportArgs, context: &Context) -> Result<ExitStatus, CommandError> {
    let mut from = open_store_for_reading(&options.file)?;
    from.stop_by(context.stop_flag())?;
    let records = match options.runs.as_slice() {
        [] => from.all_records()?,
        names => resolve_records(names, |name| from.resolve_whole(name))?,
    };
    let mut store = options.store.open_or_make(context)?;
    let mut merge = Merge::default();
    merge.add(Some(&store), &from, &records)?;
    let imported = merge.write(&mut store)?.pop().unwrap_or_default();
    let ids = imported.added.iter().chain(&imported.identical).map(String::as_str);
    carry_notes(from.path(), store.path(), ids);
    if options.json {
        print(&json(&imported)?);
        return Ok(ExitStatus::Success);
    }
    for id in &imported.added {
        print_line(&format!("imported: {id}"));
    }
    for id in &imported.identical {
        print_line(&format!("skipped, the store holds the same: {id}"));
    }
    if records.is_empty() {
        print_line(&format!("{} holds nothing", options.file.display()));
    }
    Ok(ExitStatus::Success)
}
