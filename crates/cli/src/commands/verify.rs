//! `pgdyno verify`: checks the checksums of the store.

use std::fmt::Write as _;

use clap::Args;
use pgdyno_report::text::plain;
use pgdyno_store::{CheckedRecord, RecordState, Verification};

use crate::context::Context;
use crate::error::CommandError;
use crate::exit_status::ExitStatus;
use crate::output::print;
use crate::shared_options::StoreOption;
use pgdyno_report::json::json;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pgdyno verify  Check every row of the store

See also: pgdyno-list(1)")]
pub(crate) struct VerifyArgs {
    /// The runs, probes, crash tests or imports to check [default: all]
    #[arg(value_name = "RUN")]
    pub(crate) runs: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreOption,
}

/// Checks the store and prints damage first.
pub(crate) fn run(options: &VerifyArgs, context: &Context) -> Result<ExitStatus, CommandError> {
    let store = options.store.open()?;
    let found = store.verify(&options.runs)?;
    print(&if options.json { json(&found)? } else { render(&found, context.is_verbose()) });
    Ok(if found.sound { ExitStatus::Success } else { ExitStatus::Exceeded })
}

/// Renders what was found, damage first.
fn render(found: &Verification, is_verbose: bool) -> String {
    let mut out = String::new();
    for wrong in &found.file {
        let _ = writeln!(out, "file DAMAGED: {}", plain(wrong));
    }
    let (damaged, others): (Vec<&CheckedRecord>, Vec<&CheckedRecord>) =
        found.records.iter().partition(|record| record.state == RecordState::Damaged);
    for record in damaged {
        let _ = writeln!(out, "{} {} DAMAGED", record.kind, plain(&record.id));
        for damage in &record.damage {
            let _ = writeln!(out, "  {}", plain(&damage.to_string()));
        }
    }
    for record in &others {
        let said = match record.state {
            RecordState::NotChecksummed => {
                "not checksummed: stored by an earlier pgdyno".to_owned()
            }
            RecordState::Partly => format!(
                "{} rows as they were stored; {} not checksummed, stored by an earlier pgdyno",
                record.rows, record.not_checksummed
            ),
            _ => format!("{} rows as they were stored", record.rows),
        };
        let _ = writeln!(out, "{} {}: {said}", record.kind, plain(&record.id));
    }
    let _ = match (found.sound, found.records.len()) {
        (true, 0) => writeln!(out, "{} holds nothing yet", plain(&found.store)),
        (true, _) => writeln!(out, "no damage in {}", plain(&found.store)),
        (false, _) => writeln!(out, "DAMAGE in {}: restore it from a backup", plain(&found.store)),
    };
    if is_verbose {
        out.push_str(
            "Checksums have no key: they show damage, not a forger who computes them anew.\n",
        );
    }
    out
}
