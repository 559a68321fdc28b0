//! `pgdyno store size`: what takes the room.

use clap::Args;
use pgdyno_model::units::Bytes;
use pgdyno_report::text::plain;
use pgdyno_store::StoreSize;

use crate::commands::list::table;
use crate::error::CommandError;
use crate::exit_status::ExitStatus;
use crate::output::{print, print_line};
use crate::shared_options::StoreOption;
use pgdyno_report::json::json;

/// Records that are shown unless all are asked for.
const SHOWN: usize = 10;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pgdyno store size  Show what takes the room, and the largest runs

See also: pgdyno-store-thin(1), pgdyno-rm(1)")]
pub(crate) struct StoreSizeArgs {
    /// Show all runs, not only the ten largest
    #[arg(long)]
    pub(crate) all: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreOption,
}

/// Prints the sizes.
pub(crate) fn run(options: &StoreSizeArgs) -> Result<ExitStatus, CommandError> {
    let size = options.store.open()?.size()?;
    if options.json {
        print(&json(&size)?);
        return Ok(ExitStatus::Success);
    }
    print_line(&format!("{}: {}", size.store, Bytes(size.bytes)));
    print("");
    print(&contents(&size));
    if let Some(records) = records(&size, options.all) {
        print("");
        print(&records);
    }
    let hidden = size.records.len().saturating_sub(SHOWN);
    if hidden > 0 && !options.all {
        print_line(&format!("{hidden} smaller ones: `--all` shows them"));
    }
    if size.removed > 0 {
        print_line(&format!("removed by `pgdyno rm` so far: {}", size.removed));
    }
    Ok(ExitStatus::Success)
}

fn contents(size: &StoreSize) -> String {
    let share = |bytes: u64| format!("{:.1}%", 100.0 * bytes as f64 / size.bytes.max(1) as f64);
    let row = |found: &pgdyno_store::ContentSize| {
        [found.content.to_owned(), Bytes(found.bytes).to_string(), share(found.bytes)]
    };
    let rows = size.contents.iter().filter(|found| found.bytes > 0).map(row);
    table(["content", "size", "share"], rows).unwrap_or_default()
}

fn records(size: &StoreSize, all: bool) -> Option<String> {
    let shown = if all { size.records.len() } else { SHOWN };
    let rows = size.records.iter().take(shown).map(|record| {
        [
            plain(&record.id),
            record.kind.to_owned(),
            Bytes(record.bytes).to_string(),
            Bytes(record.thinnable_bytes).to_string(),
        ]
    });
    table(["largest", "kind", "size", "thinnable"], rows)
}
