//! `pgdyno archive`: writes chosen records into a store of their own.

use std::path::{Path, PathBuf};

use clap::Args;
use pgdyno_model::units::Bytes;
use pgdyno_store::notes::{NoteError, Notes};
use pgdyno_store::{Identity, Stored};

use super::rm::resolve_records;
use crate::context::Context;
use crate::error::CommandError;
use crate::exit_status::ExitStatus;
use crate::output::{print_line, print_stderr, report_error};
use crate::shared_options::StoreOption;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pgdyno archive latest run.pgdyno       Write the newest run into a file of its own
  pgdyno archive --anonymous latest run.pgdyno
                                         The same, without what identifies the machine
  pgdyno show latest --store run.pgdyno  Show a run of an archive

See also: pgdyno-import(1), pgdyno-rm(1)")]
pub(crate) struct ArchiveArgs {
    /// The runs, probes, crash tests or imports to archive
    #[arg(value_name = "RUN", required = true)]
    pub(crate) runs: Vec<String>,
    /// The archive: a new file. Every command reads it with `--store FILE`
    #[arg(value_name = "FILE", required = true)]
    pub(crate) file: PathBuf,
    /// Leave out what identifies the machine: its name and id, the kernel's command line, serial
    /// numbers of disks. Paths, settings and server logs stay: read them before you publish
    #[arg(long)]
    pub(crate) anonymous: bool,
    #[command(flatten)]
    pub(crate) store: StoreOption,
}

/// Takes the notes on `ids` from the store at `from` to the one at `to`. Returns how many results
/// have notes.
///
/// Notes that cannot be read, trusted or written cost a warning: the results are where they belong.
pub(crate) fn carry_notes<'a>(from: &Path, to: &Path, ids: impl Iterator<Item = &'a str>) -> usize {
    try_to_carry_notes(from, to, ids).unwrap_or_else(|error| {
        print_stderr("warning: notes and tags stay behind:");
        report_error(&error.into());
        0
    })
}

fn try_to_carry_notes<'a>(
    from: &Path,
    to: &Path,
    ids: impl Iterator<Item = &'a str>,
) -> Result<usize, NoteError> {
    let Some(notes) = Notes::open_for_reading(from)? else { return Ok(0) };
    let mut with_notes = Vec::new();
    for id in ids {
        if !notes.history(id)?.is_empty() {
            with_notes.push(id);
        }
    }
    if with_notes.is_empty() {
        return Ok(0);
    }
    let target = Notes::open(to)?;
    for id in &with_notes {
        target.take(&notes, id)?;
    }
    Ok(with_notes.len())
}

/// Writes the archive and checks it. The store keeps its records.
pub(crate) fn run(options: &ArchiveArgs, context: &Context) -> Result<ExitStatus, CommandError> {
    let store = options.store.open()?;
    let records = resolve_records(&options.runs, |name| store.resolve_whole(name))?;
    let identity = if options.anonymous { Identity::Removed } else { Identity::Kept };
    store.archive(&records, &options.file, identity, context.stop_flag())?;
    for record in &records {
        print_line(&format!("{} {}", record.kind(), record.id()));
    }
    let ids = records.iter().map(Stored::id);
    if carry_notes(store.path(), &options.file, ids) > 0 {
        print_line("their notes lie beside the archive, in a file whose name ends in .notes");
    }
    let bytes = std::fs::metadata(&options.file).map(|found| found.len()).unwrap_or_default();
    print_line(&format!("archived and checked: {}, {}", options.file.display(), Bytes(bytes)));
    Ok(ExitStatus::Success)
}
