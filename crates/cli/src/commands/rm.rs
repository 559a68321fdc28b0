//! `pgdyno rm`: removes records from the store.

use clap::Args;
use pgdyno_lab::clean::kept_crashes;
use pgdyno_model::units::Bytes;
use pgdyno_store::notes::Notes;
use pgdyno_store::{Compacted, Store, StoreError, Stored};

use crate::confirmation::Confirmation;
use crate::context::Context;
use crate::error::CommandError;
use crate::exit_status::ExitStatus;
use crate::output::print_line;
use crate::shared_options::StoreOption;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pgdyno rm quickstart-20260131-101500-abcd        Remove a run; asks first
  pgdyno rm --yes quickstart-20260131-101500-abcd  Remove it without a question

See also: pgdyno-archive(1), pgdyno-store-size(1), pgdyno-store-thin(1)")]
pub(crate) struct RmArgs {
    /// The runs, probes, crash tests or imports to remove: ids, or beginnings that only one id has
    #[arg(value_name = "RUN", required = true)]
    pub(crate) runs: Vec<String>,
    #[command(flatten)]
    pub(crate) confirmation: Confirmation,
    #[command(flatten)]
    pub(crate) store: StoreOption,
}

/// Prints what the names mean, asks, and removes it.
pub(crate) fn run(options: &RmArgs, context: &Context) -> Result<ExitStatus, CommandError> {
    let mut store = options.store.open_for_change(context)?;
    let records = resolve_records(&options.runs, |name| store.resolve_named(name))?;
    let mut bytes = 0;
    for record in &records {
        store.refuse_at_work(record.id())?;
        let size = store.record_size(record)?;
        bytes += size.bytes;
        print_line(&format!("{} {}: {}", size.kind, size.id, Bytes(size.bytes)));
    }
    let question = format!(
        "Remove {} from {}? This cannot be undone.",
        match records.len() {
            1 => "it".to_owned(),
            many => format!("all {many}, {} together,", Bytes(bytes)),
        },
        store.path().display()
    );
    if !options.confirmation.ask(&question, context)? {
        print_line("nothing was removed");
        return Ok(ExitStatus::Success);
    }
    store.remove(&records, "rm")?;
    print_line(&format!("removed from {}", store.path().display()));
    print_what_stays(&store, &records);
    // What was to be removed is; a file that stays large is no failure of that.
    match store.compact() {
        Ok(found) => print_compacted(found),
        Err(_) if context.is_stopped() => {
            print_line("interrupted: the file keeps its size; later runs use the room in it");
            return Ok(ExitStatus::Interrupted);
        }
        Err(error) => return Err(error.into()),
    }
    Ok(ExitStatus::Success)
}

/// Returns the records that `names` mean to `resolve`, each once.
pub(crate) fn resolve_records(
    names: &[String],
    resolve: impl Fn(&str) -> Result<Stored, StoreError>,
) -> Result<Vec<Stored>, CommandError> {
    let mut records = Vec::new();
    for name in names {
        let record = resolve(name)?;
        if !records.contains(&record) {
            records.push(record);
        }
    }
    Ok(records)
}

/// Prints what giving back the room came to.
pub(crate) fn print_compacted(found: Compacted) {
    match found {
        Compacted::Smaller { before, after } => {
            print_line(&format!("the file has {} now; it had {}", Bytes(after), Bytes(before)));
        }
        Compacted::NoRoom { needed, free } => print_line(&format!(
            "the file keeps its size, and later runs use the room in it: writing it anew takes {}, \
             and {} are free",
            Bytes(needed),
            Bytes(free)
        )),
    }
}

/// Prints which files of removed records are left: they are no part of the store.
fn print_what_stays(store: &Store, records: &[Stored]) {
    let reports = store.path().with_file_name("reports");
    let kept = kept_crashes();
    let notes = Notes::open_for_reading(store.path()).ok().flatten();
    for id in records.iter().map(Stored::id) {
        let report = reports.join(format!("{id}.html"));
        if report.exists() {
            print_line(&format!("the report of {id} stays: {}", report.display()));
        }
        let history = notes.as_ref().and_then(|notes| notes.history(id).ok());
        if history.is_some_and(|history| !history.is_empty()) {
            print_line(&format!("the note on {id} stays, in a file beside the store"));
        }
        if let Some(kept) = kept.iter().find(|kept| kept.id == id) {
            print_line(&format!(
                "files of failed rounds of {id} stay, {}: {}; `pgdyno clean --crashes` \
                 removes them",
                Bytes(kept.bytes),
                kept.path.display()
            ));
        }
    }
}
