//! The only place that prints.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

/// A command that could not do what was asked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// What was attempted, on what, what was found.
    pub(crate) message: String,
    /// What to do.
    pub(crate) help: Option<String>,
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), help: None }
    }

    /// The same with what to do.
    pub(crate) fn helped(message: impl Into<String>, help: &str) -> Self {
        Self { message: message.into(), help: Some(help.to_owned()) }
    }

    /// `error` with its causes, and what to do about it.
    pub(crate) fn of(error: &dyn std::error::Error, help: Option<String>) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(inner) = cause {
            let _ = write!(message, "\n  because: {inner}");
            cause = inner.source();
        }
        Self { message, help }
    }
}

impl From<pgdyno_lab::LabError> for Failure {
    fn from(error: pgdyno_lab::LabError) -> Self {
        Self::of(&error, error.help())
    }
}

/// Prints `text` and a newline to standard output. A reader that went away is no failure.
pub(crate) fn print(text: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{}", text.trim_end_matches('\n'));
}

/// Prints a line to standard error.
pub(crate) fn tell(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Prints `failure` to standard error; the exit code for it.
pub(crate) fn complain(failure: &Failure) -> ExitCode {
    tell(&format!("error: {}", failure.message));
    if let Some(help) = &failure.help {
        tell(&format!("help: {help}"));
    }
    ExitCode::from(1)
}
