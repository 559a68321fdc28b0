//! Why an experiment could not be run.

use std::error::Error;
use std::fmt;
use std::path::PathBuf;

use pgdyno_connect::control::wait::{Waiting, wait_of};
use pgdyno_connect::control::{ControlError, error_text};
use pgdyno_dataset::DatasetError;
use pgdyno_dataset::trust::NotTrusted;
use pgdyno_exec::causes::with_causes;
use pgdyno_exec::device::refusal::SafetyError;
use pgdyno_model::units::Bytes;
use pgdyno_postgres::ClusterError;
use pgdyno_storage::StorageError;
use thiserror::Error;

/// An error of another crate or module, with its help.
#[derive(Debug)]
pub struct Explained {
    error: Box<dyn Error + Send + Sync>,
    help: Option<String>,
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl Error for Explained {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}

/// Why an experiment could not be run.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names say it")]
pub enum BenchError {
    /// The file, the host, the server or the store does not allow it.
    #[error(transparent)]
    Explained(#[from] Explained),
    /// A storage could not be made, mounted or taken down.
    #[error(transparent)]
    Stack(#[from] StorageError),
    /// A device must not be written.
    #[error(transparent)]
    UnsafeDevice(#[from] SafetyError),
    /// Root does not use a file that another account may change.
    #[error(transparent)]
    NotTrusted(#[from] NotTrusted),
    /// The data need more room than there is.
    #[error(
        "cannot load {what} on storage `{storage}`: it takes about {needed} in {}, \
         where {available} are free",
        directory.display()
    )]
    NoRoom {
        /// The data sets that would lie there.
        what: String,
        /// The storage's name.
        storage: String,
        /// The storage's directory.
        directory: PathBuf,
        /// Room that the data, the cluster and its WAL take.
        needed: Bytes,
        /// Room that is free.
        available: Bytes,
    },
    /// A statement on a control connection failed.
    #[error("cannot {doing}: {found}")]
    Sql {
        /// The purpose of the statement.
        doing: String,
        /// The server's message.
        found: String,
    },
    /// A statement on a control connection waited for somebody else until it was given up.
    #[error("cannot {doing}: the statement {waiting}")]
    Waits {
        /// The purpose of the statement.
        doing: String,
        /// The lock, standby or process that the statement waited for, and how long it did.
        waiting: Waiting,
    },
    /// A storage cannot be made or used.
    #[error("{found}")]
    Storage {
        /// The storage, and the reason.
        found: String,
    },
    /// A crash test cannot be carried out as the experiment asks.
    #[error("cannot crash {what}: {found}")]
    Crash {
        /// The subject of the crash test.
        what: String,
        found: String,
        help: String,
    },
    /// A request cannot be carried out as it stands.
    #[error("{what}")]
    Refused {
        /// The attempt, and the obstacle.
        what: String,
        help: Option<String>,
    },
    /// A signal asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl BenchError {
    /// Creates the error of another module, with its help.
    pub fn explained(error: impl Error + Send + Sync + 'static, help: Option<String>) -> Self {
        Self::Explained(Explained { error: Box::new(error), help })
    }

    /// Creates the error of a statement whose purpose was `doing`.
    pub fn sql(doing: &str, error: &tokio_postgres::Error) -> Self {
        let doing = doing.to_owned();
        match wait_of(error) {
            Some(waiting) => Self::Waits { doing, waiting: waiting.clone() },
            None => Self::Sql { doing, found: error_text(error) },
        }
    }

    /// Creates the error `what`; `help` says how to mend it.
    pub fn refused(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Refused { what: what.into(), help: Some(help.into()) }
    }

    /// Creates the error of kernel caches that cannot be dropped, for the reason `why`.
    pub fn drop_caches(why: &str) -> Self {
        Self::refused(
            format!("cannot drop the kernel's caches (`between.drop_caches`): {why}"),
            "run as root on a server of pgdyno's own, or leave `drop_caches` out",
        )
    }

    /// Returns how to mend the error, where that is known.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Explained(explained) => explained.help.clone(),
            Self::Stack(error) => error.help(),
            Self::UnsafeDevice(error) => error.help(),
            Self::NotTrusted(refusal) => Some(refusal.help()),
            Self::NoRoom { storage, .. } => Some(format!(
                "lower `workload.scale`, free room, or name a larger place in \
                 `storage.{storage}.directory`"
            )),
            Self::Crash { help, .. } => Some(help.clone()),
            Self::Refused { help, .. } => help.clone(),
            Self::Waits { waiting, .. } => waiting.wait.help(),
            Self::Sql { .. } | Self::Storage { .. } | Self::Interrupted => None,
        }
    }

    /// Returns whether the experiment or the command line has to be changed first, as for a
    /// storage that contradicts itself or a device that must not be written.
    pub fn is_the_users(&self) -> bool {
        use StorageError::{Contradiction, TooSmall, Unsafe};
        match self {
            Self::NoRoom { .. } | Self::UnsafeDevice(_) => true,
            Self::Stack(e) => matches!(e, Unsafe { .. } | Contradiction { .. } | TooSmall { .. }),
            _ => false,
        }
    }

    /// Returns the error of another crate or module that this one wraps, if it is a `T`.
    pub fn cause<T: Error + 'static>(&self) -> Option<&T> {
        match self {
            Self::Explained(explained) => explained.error.downcast_ref(),
            _ => None,
        }
    }

    /// Returns whether a statement of pgdyno's own was given up because it waited too long for a
    /// lock, a standby or another process.
    pub fn is_wait(&self) -> bool {
        let of_cluster = self.cause::<ClusterError>().is_some_and(ClusterError::is_wait);
        let of_data = self.cause::<DatasetError>().is_some_and(DatasetError::is_wait);
        let of_control = self.cause::<ControlError>().is_some_and(ControlError::is_wait);
        matches!(self, Self::Waits { .. }) || of_cluster || of_data || of_control
    }

    /// Returns whether this machine cannot provide the storage at all.
    pub fn is_unavailable(&self) -> bool {
        matches!(self, Self::Stack(error) if error.is_unavailable())
    }

    /// Returns whether a storage could not be brought back for a reason outside it: somebody holds
    /// it, a device is missing, or its emulated disk does not answer.
    pub fn is_around_the_storage(&self) -> bool {
        use StorageError::{Emulated, NotReleased, PutBack, Remount};
        let Self::Stack(error) = self else { return false };
        matches!(error, NotReleased { .. } | Emulated { .. } | PutBack { .. } | Remount { .. })
    }

    /// Returns the error, its causes and its help in one text, as a failed trial keeps it.
    pub fn message(&self) -> String {
        let words = with_causes(self);
        match self.help() {
            Some(help) => format!("{words} (help: {help})"),
            None => words,
        }
    }
}

/// Errors with a help become [`Explained`].
macro_rules! explained {
    ($($error:ty),+ $(,)?) => {
        $(impl From<$error> for BenchError {
            fn from(error: $error) -> Self {
                let help = error.help();
                Self::Explained(Explained { error: Box::new(error), help })
            }
        })+
    };
}

explained!(
    DatasetError,
    pgdyno_experiment::ExperimentError,
    pgdyno_experiment::file::FileError,
    pgdyno_dataset::workload::WorkloadError,
    pgdyno_engine::LoadError,
    pgdyno_generators::GeneratorsError,
    pgdyno_engine::script::ScriptError,
    pgdyno_exec::account::AccountError,
    pgdyno_exec::directory::DirectoryError,
    pgdyno_storage::fault::FaultError,
    pgdyno_exec::StepError,
    pgdyno_exec::journal::JournalError,
    pgdyno_connect::conninfo::ConninfoError,
    ClusterError,
    ControlError,
    pgdyno_postgres::FetchError,
    pgdyno_postgres::FindError,
    pgdyno_postgres::ExternalServerError,
    pgdyno_postgres::ServerWideError,
    pgdyno_postgres::SettingsError,
    pgdyno_store::StoreError,
);

impl BenchError {
    /// Returns the error of a fetch. If the experiment asks for the major version `wanted` and
    /// another one is installed, the help names it.
    pub fn not_fetched(error: pgdyno_postgres::FetchError, wanted: Option<u32>) -> Self {
        let here = wanted.and_then(|_| pgdyno_postgres::find_all().into_iter().next());
        let Some(here) = here.filter(|_| error.is_download()) else { return error.into() };
        let (version, major) = (here.version, here.major);
        let other = format!("PostgreSQL {version} is here: `--set postgres.version={major}`");
        let help = error.help().map_or(other.clone(), |help| format!("{other}. Or {help}"));
        Self::Explained(Explained { error: Box::new(error), help: Some(help) })
    }
}

impl From<pgdyno_emulated_disk::ControlError> for BenchError {
    fn from(error: pgdyno_emulated_disk::ControlError) -> Self {
        Self::Storage { found: format!("an emulated disk: {error}") }
    }
}

impl From<pgdyno_storage::probe::ProbeError> for BenchError {
    fn from(error: pgdyno_storage::probe::ProbeError) -> Self {
        if error.is_interrupted() {
            return Self::Interrupted;
        }
        let help = error.help();
        Self::Explained(Explained { error: Box::new(error), help })
    }
}
