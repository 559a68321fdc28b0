//! The context of a real execution: journal, stop flag, and entries of the things made so far.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use crate::error::StepError;
use crate::journal::{Entry, Journal, OwnedResource};
use crate::undo::Undo;

/// Executes steps on this host. Holds the journal, the stop flag, and the entries of made things.
pub struct ExecContext<'a> {
    /// The journal, in which things are recorded before they are made.
    pub journal: &'a Journal,
    /// The stop flag: once true, no step begins, and waits end.
    pub stop: &'a AtomicBool,
    /// The entries of made things, in order.
    /// [`Step::RemoveMarked`](crate::step::Step::RemoveMarked) and
    /// [`Step::PutBack`](crate::step::Step::PutBack) take entries out.
    pub made: Vec<Entry>,
}

impl<'a> ExecContext<'a> {
    /// Returns a context in which nothing was made yet.
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
