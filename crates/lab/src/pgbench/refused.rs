//! What is said, in pgbench's form, when a request cannot be carried out.

use std::io::Write;

/// A request that cannot be carried out.
#[derive(Debug)]
pub(super) struct Refused {
    /// `pgbench: error: …`; without `error:` for options that cannot be read at all.
    what: String,
    is_usage: bool,
    detail: Option<String>,
    hint: Option<String>,
    /// Another error that follows from it.
    then: Option<String>,
    /// The exit status that goes with it.
    status: i32,
}

impl Refused {
    pub(super) fn new(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            is_usage: false,
            detail: None,
            hint: None,
            then: None,
            status: super::REFUSED,
        }
    }

    /// Options that cannot be read.
    pub(super) fn usage(what: String) -> Self {
        Self { is_usage: true, ..Self::new(what) }.try_help()
    }

    pub(super) fn detail(mut self, text: impl Into<String>) -> Self {
        self.detail = Some(text.into());
        self
    }

    pub(super) fn hint(mut self, text: impl Into<String>) -> Self {
        self.hint = Some(text.into());
        self
    }

    pub(super) fn then(mut self, text: impl Into<String>) -> Self {
        self.then = Some(text.into());
        self
    }

    pub(super) fn try_help(self) -> Self {
        self.hint("Try \"pgbench --help\" for more information.")
    }

    /// Marks an error that was met when part of the work was done: the exit status says so.
    pub(super) fn after_a_part(mut self) -> Self {
        self.status = super::INCOMPLETE;
        self
    }

    /// Writes it, and returns the exit status that goes with it.
    pub(super) fn write(&self, to: &mut dyn Write) -> i32 {
        let error = if self.is_usage { "" } else { "error: " };
        // Nobody is left to be told when standard error is gone.
        let _ = writeln!(to, "pgbench: {error}{}", self.what);
        for (word, text) in [("detail", &self.detail), ("hint", &self.hint), ("error", &self.then)]
        {
            if let Some(text) = text {
                let _ = writeln!(to, "pgbench: {word}: {text}");
            }
        }
        self.status
    }
}
