//! The error of a command, with its help and its causes.
//!
//! Errors of other crates bring their help along: `?` makes a [`CommandError`] of them. What only a
//! command finds wrong is said where it is found ([`CommandError::new`]), help beside it.

use std::error::Error;
use std::{fmt, io};

use pgdyno_analysis::comparison::runs::CompareError;
use pgdyno_analysis::gate::GateError;
use pgdyno_experiment::ExperimentError;
use pgdyno_experiment::file::FileError;
use pgdyno_model::advice::causes;
use pgdyno_model::{Advice, FailureKind};
use pgdyno_provision::BenchError;
use pgdyno_report::ReportError;
use pgdyno_report::export::ExportError;
use pgdyno_store::StoreError;
use pgdyno_store::notes::NoteError;

use crate::commands::audit::AuditError;
use crate::new_error::NewError;
use crate::output::print_stderr;

/// Why a command could not do its work. The process exits with 1.
#[derive(Debug)]
pub(crate) struct CommandError {
    error: Box<dyn Error + Send + Sync>,
    help: Option<String>,
    kind: FailureKind,
}

/// A message with a cause.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
struct Caused {
    message: String,
    source: Box<dyn Error + Send + Sync>,
}

impl CommandError {
    /// Creates an error of a message, or of another error.
    pub(crate) fn new(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { error: error.into(), help: None, kind: FailureKind::default() }
    }

    /// Creates the error `message`, whose cause is `source`.
    pub(crate) fn with_source(
        message: impl Into<String>,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self::new(Caused { message: message.into(), source: source.into() })
    }

    /// Creates the error of an exchange with another host.
    pub(crate) fn from_exchange(source: io::Error) -> Self {
        Self::with_source("cannot exchange an experiment and its results with another host", source)
    }

    /// Creates the error of a build without the server.
    #[cfg(not(feature = "serve"))]
    pub(crate) fn without_server() -> Self {
        Self::new("cannot serve anything: this pgdyno was built without its server").with_help(
            "build it without `--no-default-features`, or use a released package; `pgdyno report` \
             writes a page without a server",
        )
    }

    /// Adds what the user can do.
    pub(crate) fn with_help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    /// Returns what the user can do about the error, if anything.
    pub(crate) fn help(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// Returns whether a signal ended the work before there was anything to keep.
    pub(crate) fn is_interruption(&self) -> bool {
        self.kind == FailureKind::Interrupted
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl Error for CommandError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}

/// Errors with help become a [`CommandError`].
macro_rules! explained {
    ($($(#[$feature:meta])? $error:ty),+ $(,)?) => {
        $($(#[$feature])? impl From<$error> for CommandError {
            fn from(error: $error) -> Self {
                let (help, kind) = (error.help(), error.kind());
                Self { error: Box::new(error), help, kind }
            }
        })+
    };
}

explained!(
    AuditError,
    CompareError,
    ExperimentError,
    ExportError,
    FileError,
    GateError,
    BenchError,
    NewError,
    NoteError,
    ReportError,
    StoreError,
    pgdyno_generators::WorkerError,
    #[cfg(feature = "capture")]
    pgdyno_capture::CaptureError,
    pgdyno_replay::RecordingError,
    pgdyno_replay::ReplayError,
    #[cfg(feature = "serve")]
    pgdyno_web::ServeError,
);

impl From<pgdyno_lab::LogError> for CommandError {
    fn from(error: pgdyno_lab::LogError) -> Self {
        Self::new(error)
    }
}

impl From<serde_json::Error> for CommandError {
    fn from(error: serde_json::Error) -> Self {
        Self::with_source("cannot write JSON", error)
    }
}

/// Returns the result of work; none, after printing `said`, if a signal came before there was one.
///
/// # Errors
/// The work failed.
pub(crate) fn unless_interrupted<T>(
    worked: Result<T, BenchError>,
    said: &str,
) -> Result<Option<T>, CommandError> {
    match worked {
        Err(BenchError::Interrupted) => {
            print_stderr(said);
            Ok(None)
        }
        worked => Ok(Some(worked?)),
    }
}

/// Renders an error with its causes, one on each line.
pub(crate) fn render_chain(error: &dyn Error) -> String {
    causes(error).fold(error.to_string(), |text, cause| format!("{text}\n  because: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_is_rendered_once() {
        let error =
            CommandError::with_source("cannot use x", io::Error::from(io::ErrorKind::NotFound));
        assert_eq!(render_chain(&error), "cannot use x\n  because: entity not found");
    }
}
