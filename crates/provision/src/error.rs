//! Why an experiment could not be run.

use std::error::Error;
use std::fmt;

use pgdyno_model::advice::with_causes;
use pgdyno_model::{Advice, Failure, FailureKind};
use pgdyno_storage::StorageError;

/// Why an experiment could not be run. Each error of a crate or module becomes one by `?`.
#[derive(Debug)]
pub enum BenchError {
    /// An obstacle.
    Obstacle(Obstacle),
    /// A signal asked to stop.
    Interrupted,
}

/// An error of a crate or module, with its advice.
#[derive(Debug)]
pub struct Obstacle {
    error: Box<dyn Advice>,
    /// Advice in place of the error's own.
    help: Option<String>,
}

impl<E: Advice> From<E> for BenchError {
    fn from(error: E) -> Self {
        match error.kind() {
            FailureKind::Interrupted => Self::Interrupted,
            _ => Self::Obstacle(Obstacle { error: Box::new(error), help: None }),
        }
    }
}

impl fmt::Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Obstacle(obstacle) => obstacle.error.fmt(f),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl Error for BenchError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Obstacle(obstacle) => obstacle.error.source(),
            Self::Interrupted => None,
        }
    }
}

impl BenchError {
    /// Returns `error` with `help` in place of its own advice.
    pub fn with_help(error: impl Advice, help: impl Into<String>) -> Self {
        Self::Obstacle(Obstacle { error: Box::new(error), help: Some(help.into()) })
    }

    /// Returns what the user can do, where that is known.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Obstacle(obstacle) => obstacle.help.clone().or_else(|| obstacle.error.help()),
            Self::Interrupted => None,
        }
    }

    /// Returns the kind of obstacle.
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Obstacle(obstacle) => obstacle.error.kind(),
            Self::Interrupted => FailureKind::Interrupted,
        }
    }

    /// Returns the error of another crate or module that this one is, if it is a `T`.
    pub fn cause<T: Error + 'static>(&self) -> Option<&T> {
        match self {
            Self::Obstacle(obstacle) => (&*obstacle.error as &dyn Error).downcast_ref(),
            Self::Interrupted => None,
        }
    }

    /// Returns whether a storage could not be brought back for a reason outside it: somebody holds
    /// it, a device is missing, or its emulated disk does not answer.
    pub fn is_around_the_storage(&self) -> bool {
        use StorageError::{Emulated, NotReleased, PutBack, Remount};
        self.cause().is_some_and(|error| {
            matches!(error, NotReleased { .. } | Emulated { .. } | PutBack { .. } | Remount { .. })
        })
    }

    /// Returns the failure as records keep it.
    pub fn failure(&self) -> Failure {
        Failure { kind: self.kind(), message: with_causes(self), help: self.help() }
    }

    /// Returns the error, its causes and its help in one text.
    pub fn message(&self) -> String {
        self.failure().to_string()
    }

    /// Returns the error of a fetch. If the experiment asks for the major version `wanted` and
    /// another one is installed, the help names it.
    pub fn not_fetched(error: pgdyno_postgres::FetchError, wanted: Option<u32>) -> Self {
        let here = wanted.and_then(|_| pgdyno_postgres::find_all().into_iter().next());
        let Some(here) = here.filter(|_| error.is_download()) else { return error.into() };
        let (version, major) = (here.version, here.major);
        let other = format!("PostgreSQL {version} is here: `--set postgres.version={major}`");
        let help = error.help().map_or(other.clone(), |help| format!("{other}. Or {help}"));
        Self::with_help(error, help)
    }
}
