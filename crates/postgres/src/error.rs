//! What can go wrong with a cluster, and what to do about it.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use super::settings::SettingsError;
use pgdyno_connect::control::ControlError;
use pgdyno_exec::account::AccountError;
use pgdyno_exec::directory::DirectoryError;
use pgdyno_exec::journal::JournalError;
use pgdyno_exec::step::StepError;

/// The most bytes of a socket's path, its terminating NUL included.
pub(super) const SOCKET_PATH_MAX: usize = 108;

/// A cluster could not be made, started, changed or removed.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// No account to run it as.
    #[error(transparent)]
    Account(#[from] AccountError),
    /// The directory does not serve.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The programs lie where the server's account cannot go.
    #[error(
        "cannot run {} as {account}, who may not pass {} (mode {mode:04o}, of uid {uid})",
        bindir.display(), component.display()
    )]
    BindirNotReachable {
        /// The folder of the programs.
        bindir: PathBuf,
        /// The server's account.
        account: String,
        /// The component that stops it.
        component: PathBuf,
        /// That component's permissions.
        mode: u32,
        /// That component's owner.
        uid: u32,
    },
    /// The socket's path would be too long for the system.
    #[error("cannot make a socket in {}: its path has {length} bytes, the system takes {}", path.display(), SOCKET_PATH_MAX - 1)]
    SocketPath {
        /// The socket directory.
        path: PathBuf,
        /// The socket's path's length.
        length: usize,
    },
    /// A step of making it.
    #[error("cannot make a cluster in {}", directory.display())]
    Make {
        /// The cluster's directory.
        directory: PathBuf,
        /// The step that failed.
        source: StepError,
    },
    /// A step afterwards.
    #[error(transparent)]
    Step(StepError),
    /// The server ended while it was to start.
    #[error("the server did not start: it ended with {status}; its last lines:\n{log}")]
    DidNotStart {
        /// How it ended.
        status: ExitStatus,
        /// The end of its log.
        log: String,
    },
    /// The server never accepted a connection.
    #[error("the server accepts no connections after {} s: {why}", waited.as_secs())]
    NotReady {
        /// How long it was waited for.
        waited: Duration,
        /// What the last attempt got.
        why: String,
    },
    /// The server is not running, though it should.
    #[error("the server ended by itself ({status}); its last lines:\n{log}")]
    Died {
        /// How it ended.
        status: String,
        /// The end of its log.
        log: String,
    },
    /// The server does not reread its settings.
    #[error("the server did not reread its settings within {} s; its last lines:\n{log}", limit.as_secs())]
    NoReload {
        /// How long it was waited for.
        limit: Duration,
        /// The end of its log.
        log: String,
    },
    /// No port could be had.
    #[error("cannot find a free port on 127.0.0.1")]
    Port(#[source] io::Error),
    /// A setting.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A control connection.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// It was made before the machine was restarted and is not there now.
    #[error("cannot take over the cluster {}", path.display())]
    Adopt {
        /// Its directory.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It could not be removed.
    #[error("cannot remove {}", path.display())]
    Remove {
        /// What.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It was told to stop.
    #[error("interrupted")]
    Interrupted,
}

impl ClusterError {
    /// What to do.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Account(e) => e.help(),
            Self::Directory(e) => e.help(),
            Self::BindirNotReachable { component, .. } => Some(format!(
                "let others pass (`chmod o+x {}`), or name a `postgres.bindir` that everybody may pass",
                component.display()
            )),
            Self::SocketPath { .. } => Some("set XDG_RUNTIME_DIR to a shorter path".into()),
            Self::Make { source, .. } | Self::Step(source) => source.help(),
            Self::Settings(e) => e.help(),
            Self::Control(e) => e.help(),
            Self::Journal(e) => e.help(),
            Self::DidNotStart { .. } | Self::Died { .. } => Some(
                "look at the last lines of its log above; a full disk or too little memory is common".into(),
            ),
            Self::Remove { .. } => Some("remove it by hand once nothing uses it".into()),
            _ => None,
        }
    }

    /// Whether it only failed because it was told to stop.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        matches!(
            self,
            Self::Interrupted
                | Self::Step(StepError::Interrupted)
                | Self::Make { source: StepError::Interrupted, .. }
        )
    }
}
