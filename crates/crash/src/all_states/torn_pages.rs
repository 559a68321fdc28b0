//! Which states tear a page of a table or an index.
//!
//! Most of what a disk is asked to write is WAL, and most tears lie in it, where recovery ends
//! anyway. So the others are looked at first.

use std::collections::HashMap;
use std::fs::File;

use pgdyno_emulated_disk::states::State;
use pgdyno_emulated_disk::{Content, EventKind, PAGE};

use super::record::Recording;

/// The pages of tables and indexes in the writes of a recording.
pub(super) struct DataPages<'a> {
    recording: &'a Recording,
    /// The log's file; none if it cannot be read, so that no page is known.
    file: Option<File>,
    /// Of each write that was looked at: where its pages begin, from its own beginning (bytes).
    known: HashMap<u64, Vec<u64>>,
}

impl<'a> DataPages<'a> {
    pub(super) fn new(recording: &'a Recording) -> Self {
        let file = File::open(&recording.log_file).ok();
        Self { recording, file, known: HashMap::new() }
    }

    /// Whether `state` has the first part of such a page and not its rest.
    pub(super) fn are_torn(&mut self, state: &State) -> bool {
        let Some(tear) = state.torn else { return false };
        if !self.known.contains_key(&tear.write) {
            let pages = self.read(tear.write).unwrap_or_default();
            self.known.insert(tear.write, pages);
        }
        self.known[&tear.write].iter().any(|page| (page + 1..page + PAGE).contains(&tear.kept))
    }

    fn read(&self, number: u64) -> Option<Vec<u64>> {
        let log = &self.recording.log;
        let at = log.events.binary_search_by_key(&number, |event| event.number).ok()?;
        let EventKind::Write { offset, .. } = log.events[at].kind else { return None };
        let pages = log.pages(number, self.file.as_ref()?).ok()?;
        let of_data = pages.iter().filter(|page| page.content == Content::DataPage);
        Some(of_data.map(|page| page.offset - offset).collect())
    }
}
