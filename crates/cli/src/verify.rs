//! `pgdyno verify`: whether what is stored is as it was written.

use std::fmt::Write as _;

use clap::Args;
use pgdyno_lab::LabError;
use pgdyno_results::report::text::plain;
use pgdyno_results::store::{CheckedRecord, RecordState, Store, Verification};

use crate::Done;
use crate::args;
use crate::commands::{json, store_path};
use crate::output::{Failure, is_verbose, print};

#[derive(Args, Debug)]
pub(crate) struct Verify {
    /// The runs, probes, crash tests or imports to check [default: all]
    #[arg(value_name = "RUN")]
    pub(crate) runs: Vec<String>,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: args::StoreOption,
}

pub(crate) fn verify(options: &Verify) -> Result<Done, Failure> {
    // Not as `list` opens it: nothing is written, not even that a session's process is gone.
    let store = Store::open_existing(store_path(&options.store)).map_err(LabError::from)?;
    let found = store.verify(&options.runs).map_err(LabError::from)?;
    print(&if options.json { json(&found)? } else { page(&found) });
    Ok(if found.sound { Done::Whole } else { Done::Exceeded })
}

/// What was found, damage first.
fn page(found: &Verification) -> String {
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
    if is_verbose() {
        out.push_str(
            "Checksums have no key: they show damage, not a forger who computes them anew.\n",
        );
    }
    out
}
