//! Analysed run, with all sentences about it.

use pgdyno_analysis::{RunView, TreatmentView, analyse};
use pgdyno_store::{Store, StoreError};

use crate::headline::{Caution, Headline};
use crate::note::Note;
use crate::{CrashView, FilesystemsView, prose};

/// An analysed run with its words, which all its reports share.
#[derive(Clone, Debug)]
pub struct RunReport {
    /// Figures and kinds.
    pub view: RunView,
    /// Crash tests of its treatments, in order.
    pub crashes: Vec<CrashView>,
    /// Notes that a reader needs to trust or doubt the figures.
    pub notes: Vec<Note>,
    /// Answer to the run's question, in one or two sentences.
    pub answer: Vec<String>,
    /// Verdict card: badge, key figures, next command.
    pub headline: Headline,
    /// The notes with their tiers: first those that may change the conclusion.
    pub cautions: Vec<Caution>,
}

impl RunReport {
    /// Finds the words for `view`.
    pub fn new(view: RunView) -> Self {
        let crashes: Vec<CrashView> = view.crashes.iter().map(CrashView::from).collect();
        let notes = prose::notes(&view);
        let answer = prose::answer(&view, &crashes);
        let headline = prose::run_headline(&view, &crashes, &answer, &notes);
        let cautions = prose::cautions(&notes);
        Self { view, crashes, notes, answer, headline, cautions }
    }

    /// Analyses the run whose full name is `run`, and finds the words for it.
    ///
    /// # Errors
    /// As [`analyse`].
    pub fn read(store: &Store, run: &str) -> Result<Self, StoreError> {
        analyse(store, run).map(Self::new)
    }

    /// Returns the mounts after power cuts in the crash tests of `treatment`; none without any.
    pub(crate) fn mounts(&self, treatment: &TreatmentView) -> Option<&FilesystemsView> {
        let id = &treatment.crash.as_ref()?.id;
        self.crashes.iter().find(|crash| crash.id == *id)?.filesystems.as_ref()
    }
}
