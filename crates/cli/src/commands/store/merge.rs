//! `pgdyno store merge`: all records of several stores in one.

use std::path::PathBuf;

use clap::Args;
use pgdyno_model::units::Bytes;
use pgdyno_provision::stores::{open_store, open_store_for_reading};
use pgdyno_store::{Imported, Merge, Merged, Store};
use pgdyno_text::format::counted;

use crate::commands::archive::carry_notes;
use crate::context::Context;
use crate::error::CommandError;
use crate::exit_status::ExitStatus;
use crate::output::{hint, print, print_line};
use pgdyno_report::json::json;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pgdyno store merge db1.sqlite3 db2.sqlite3 -o all.sqlite3
            Put the runs of two machines into one store

See also: pgdyno-import(1), pgdyno-archive(1), pgdyno-verify(1)")]
pub(crate) struct StoreMergeArgs {
    /// The stores to merge, of this version or an earlier one. They are only read
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// The store that takes all records. It is made if there is none
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Takes all records of all stores, or none. Those that the target has are left as they are.
pub(crate) fn run(options: &StoreMergeArgs, context: &Context) -> Result<ExitStatus, CommandError> {
    let mut sources = Vec::new();
    for file in &options.files {
        let mut store = open_store_for_reading(file)?;
        store.stop_by(context.stop_flag())?;
        sources.push(store);
    }
    let is_there = options.output.symlink_metadata().is_ok();
    let target = is_there.then(|| open_store_for_reading(&options.output)).transpose()?;
    let mut merge = Merge::default();
    for source in &sources {
        let count = counted(source.all_records()?.len() as u64, "record");
        hint(&format!("checking {}: {count}", source.path().display()));
        merge.add_store(target.as_ref(), source)?;
    }
    drop(target);
    let imported = if is_there {
        let mut store = open_store(&options.output)?;
        store.stop_by(context.stop_flag())?;
        merge.write(&mut store)?
    } else {
        merge.write_new(&options.output, context.stop_flag())?
    };
    for (source, imported) in sources.iter().zip(&imported) {
        let ids = imported.added.iter().chain(&imported.identical).map(String::as_str);
        carry_notes(source.path(), &options.output, ids);
    }
    let merged = Merged { store: options.output.display().to_string(), sources: imported };
    if options.json {
        print(&json(&merged)?);
    } else {
        merged.sources.iter().for_each(print_source);
        print_total(&Store::open_for_reading(&options.output)?)?;
    }
    Ok(ExitStatus::Success)
}

fn print_source(source: &Imported) {
    let mut words = vec![format!("{} added", counted(source.added.len() as u64, "record"))];
    if !source.identical.is_empty() {
        words.push(format!("{} skipped", source.identical.len()));
    }
    if source.removals > 0 {
        words.push(format!("{} in the list of what was removed", source.removals));
    }
    print_line(&format!("{}: {}", source.source, words.join(", ")));
    for id in &source.identical {
        print_line(&format!("  skipped, the same is there: {id}"));
    }
}

fn print_total(store: &Store) -> Result<(), CommandError> {
    let count = counted(store.all_records()?.len() as u64, "record");
    let bytes = std::fs::metadata(store.path()).map(|found| found.len()).unwrap_or_default();
    print_line(&format!("{} holds {count}, {}", store.path().display(), Bytes(bytes)));
    Ok(())
}
