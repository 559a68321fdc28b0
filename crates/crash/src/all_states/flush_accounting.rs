//! Which transactions were acknowledged before a flush covered what they wrote.

use std::collections::BTreeMap;
use std::path::Path;

use pgdyno_durability::{FlushEvent, early_acknowledgements};
use pgdyno_emulated_disk::EventKind;

use super::super::subject::Subject;
use super::super::test_bed::TestBed;
use super::commit_records::commit_writes;
use super::judge_state::Judge;
use super::record::Recording;
use pgdyno_provision::{BenchError, Context};

/// Early acknowledgements that are named (count).
const NAMED: usize = 10;

/// Accounts for the flushes of `recording`, where commits wait for them. Returns why commit records
/// are not known, if so; `folder` is made and removed.
///
/// # Errors
/// pgdyno itself cannot go on, or a signal asked to stop.
pub(super) fn account_for_flushes(
    bed: &mut TestBed,
    recording: &mut Recording,
    subject: &Subject,
    folder: &Path,
    context: Context<'_>,
) -> Result<Option<String>, BenchError> {
    if recording.wal_writer_delay.is_some() {
        return Ok(None);
    }
    let mut judge = Judge { bed, recording, subject, context };
    let (records, unknown) = match commit_writes(&mut judge, folder)? {
        Ok(records) => (records, None),
        Err(why) => (BTreeMap::new(), Some(why)),
    };
    let flushes = recording.log.events.iter().filter_map(|event| match event.kind {
        EventKind::Flush { covers, is_done: true } => {
            Some(FlushEvent { number: event.number, covers })
        }
        _ => None,
    });
    let early = early_acknowledgements(&recording.positions, &records, flushes);
    let acknowledged = recording.positions.iter().filter(|(_, at)| at.acknowledged.is_some());
    let facts = &mut recording.facts;
    facts.by_record =
        Some(acknowledged.filter(|(token, _)| records.contains_key(token)).count() as u64);
    facts.early = Some(early.len() as u64);
    facts.first_early = early.into_iter().take(NAMED).collect();
    Ok(unknown)
}
