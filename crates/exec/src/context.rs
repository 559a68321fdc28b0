//! What executing steps needs, and what was made so far.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use crate::error::StepError;
use crate::journal::{Entry, Journal, OwnedResource};
use crate::undo::Undo;

/// The journal, the signal to stop, and the journal's entries of what the steps have made.
pub struct ExecContext<'a> {
    /// Where things are written down before they are made.
    pub journal: &'a Journal,
    /// Once true, nothing more is begun, and waiting ends.
    pub stop: &'a AtomicBool,
    /// What was made so far, in order; [`Step::RemoveMarked`](crate::step::Step::RemoveMarked) and
    /// [`Step::PutBack`](crate::step::Step::PutBack) take from it.
    pub made: Vec<Entry>,
}

impl<'a> ExecContext<'a> {
    /// Returns a context in which nothing was made yet.
    #[must_use]
    pub fn new(journal: &'a Journal, stop: &'a AtomicBool) -> Self {
        Self { journal, stop, made: Vec::new() }
    }

    /// Journals how a setting of `device` is undone. `path` names the setting in messages.
    pub(crate) fn record_setting(
        &mut self,
        path: &Path,
        device: &Path,
        undo: Undo,
    ) -> Result<(), StepError> {
        let (path, device) = (path.to_owned(), device.to_owned());
        let entry = self.journal.record(&OwnedResource::Setting { path, device, undo })?;
        self.made.push(entry);
        Ok(())
    }
}
