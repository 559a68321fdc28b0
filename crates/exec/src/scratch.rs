//! Directories that live as long as a value does.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use crate::context::ExecContext;
use crate::error::StepError;
use crate::executor::Executor;
use crate::journal::{Entry, Journal, JournalError, OwnedResource};
use crate::random::random_hex;
use crate::step::Step;

/// A journalled and marked directory of pgdyno's own, for as long as this lives.
#[derive(Debug)]
pub struct ScratchDirectory {
    path: PathBuf,
    made: Vec<Entry>,
    journal: Journal,
}

impl ScratchDirectory {
    /// Makes one in `parent`, called `pgdyno-NAME-` and eight hexadecimal digits.
    ///
    /// # Errors
    /// [`StepError`]; nothing is left.
    pub fn make(parent: &Path, name: &str, journal: &Journal) -> Result<Self, StepError> {
        let digits = random_hex::<4>().map_err(JournalError::Random)?;
        let path = parent.join(format!("pgdyno-{name}-{digits}"));
        let made = OwnedResource::Directory { path: path.clone() };
        let step = Step::MakeMarked { made, mode: 0o700, owner: None };
        let never = AtomicBool::new(false);
        let mut context = ExecContext::new(journal, &never);
        let executed = context.execute(&step);
        // Dropped, and with that removed, should the marker have failed.
        let scratch = Self { path, made: context.made, journal: journal.clone() };
        executed.map(|_| scratch)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        let never = AtomicBool::new(false);
        let made = std::mem::take(&mut self.made);
        let mut context = ExecContext { journal: &self.journal, stop: &never, made };
        // What fails here stays in the journal for the next start's sweep.
        let _ = context.execute(&Step::RemoveMarked { path: self.path.clone() });
    }
}
