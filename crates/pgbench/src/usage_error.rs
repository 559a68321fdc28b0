//! Errors in pgbench's form, and the exit statuses that go with them.

use pgdyno_model::Advice;
use pgdyno_model::advice::with_causes;
use std::io::Write;

/// Exit statuses, as pgbench has them.
pub(crate) mod exit_status {
    /// Everything asked for was done.
    pub(crate) const SUCCESS: i32 = 0;
    /// Nothing was done.
    pub(crate) const REFUSED: i32 = 1;
    /// A part was done, and then an error came.
    pub(crate) const INCOMPLETE: i32 = 2;
    /// A signal ended it: the status that a shell reports of pgbench then.
    pub(crate) const INTERRUPTED: i32 = 130;
}

/// A request that cannot be carried out.
#[derive(Debug)]
pub(crate) struct UsageError {
    /// `pgbench: error: …`; without `error:` for options that cannot be read at all.
    what: String,
    is_usage: bool,
    detail: Option<String>,
    hint: Option<String>,
    /// A further error that follows from this one.
    then: Option<String>,
    /// The exit status that goes with it.
    status: i32,
}

impl<E: Advice> From<E> for UsageError {
    fn from(error: E) -> Self {
        Self::new(with_causes(&error)).help(error.help())
    }
}

impl UsageError {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            is_usage: false,
            detail: None,
            hint: None,
            then: None,
            status: exit_status::REFUSED,
        }
    }

    /// Creates the error of options that cannot be read.
    pub(crate) fn usage(what: String) -> Self {
        Self { is_usage: true, ..Self::new(what) }.try_help()
    }

    /// Returns what happened, without detail and hint.
    pub(crate) fn what(&self) -> &str {
        &self.what
    }

    /// Puts `text` before what happened.
    pub(crate) fn during(mut self, text: &str) -> Self {
        self.what = format!("{text}: {}", self.what);
        self
    }

    pub(crate) fn detail(mut self, text: impl Into<String>) -> Self {
        self.detail = Some(text.into());
        self
    }

    pub(crate) fn hint(mut self, text: impl Into<String>) -> Self {
        self.hint = Some(text.into());
        self
    }

    /// Adds `text` as the hint, where there is one.
    pub(crate) fn help(self, text: Option<String>) -> Self {
        text.into_iter().fold(self, Self::hint)
    }

    pub(crate) fn then(mut self, text: impl Into<String>) -> Self {
        self.then = Some(text.into());
        self
    }

    pub(crate) fn try_help(self) -> Self {
        self.hint("Try \"pgbench --help\" for more information.")
    }

    /// Marks an error that was met when part of the work was done: the exit status says so.
    pub(crate) fn after_a_part(mut self) -> Self {
        self.status = exit_status::INCOMPLETE;
        self
    }

    /// Writes the error, and returns its exit status.
    pub(crate) fn write(&self, to: &mut dyn Write) -> i32 {
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

/// Why initialization or a run ended before its end.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// An error, in pgbench's words.
    Error(UsageError),
    /// A signal asked to stop.
    Interrupted,
}

impl From<UsageError> for Stopped {
    fn from(error: UsageError) -> Self {
        Self::Error(error)
    }
}
