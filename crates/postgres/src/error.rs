//! Errors of clusters.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use pgdyno_connect::control::ControlError;
use pgdyno_exec::StepError;
use pgdyno_exec::account::AccountError;
use pgdyno_exec::directory::DirectoryError;
use pgdyno_exec::journal::JournalError;
use pgdyno_model::{Advice, FailureKind};

use super::settings::SettingsError;

/// The most bytes of a socket's path, its terminating NUL included.
pub(super) const SOCKET_PATH_MAX: usize = 108;

/// A cluster could not be created, started, changed or removed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ClusterError {
    /// There is no account to run the server as.
    #[error(transparent)]
    Account(#[from] AccountError),
    /// The directory cannot hold a cluster.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The server's account cannot reach the programs.
    #[error(
        "cannot run {} as {account}, who may not pass {} (mode {mode:04o}, of uid {uid})",
        bindir.display(), component.display()
    )]
    BindirNotReachable {
        bindir: PathBuf,
        account: String,
        /// The component of the path that the account may not pass.
        component: PathBuf,
        mode: u32,
        uid: u32,
    },
    /// The socket's path is too long for the system.
    #[error(
        "cannot make a socket in {}: its path has {length} bytes, the system takes {}",
        path.display(), SOCKET_PATH_MAX - 1
    )]
    SocketPath {
        path: PathBuf,
        /// The length of the socket's path (bytes).
        length: usize,
    },
    /// A step of creating the cluster failed.
    #[error("cannot make a cluster in {}", directory.display())]
    Make { directory: PathBuf, source: StepError },
    /// A later step failed.
    #[error(transparent)]
    Step(#[from] StepError),
    /// The server exited during its start.
    #[error("the server did not start: it ended with {status}; its last lines:\n{log}")]
    DidNotStart {
        status: ExitStatus,
        /// The last lines of the server's log.
        log: String,
    },
    /// The server took no connection in time.
    #[error("the server accepts no connections after {} s: {why}", waited.as_secs())]
    NotReady {
        waited: Duration,
        /// The error of the last attempt.
        why: String,
    },
    /// The server should run and does not.
    #[error("the server ended by itself ({status}); its last lines:\n{log}")]
    Died {
        status: String,
        /// The last lines of the server's log.
        log: String,
    },
    /// The server did not reload its settings in time.
    #[error(
        "the server did not reread its settings within {} s; its last lines:\n{log}",
        limit.as_secs()
    )]
    NoReload {
        limit: Duration,
        /// The last lines of the server's log.
        log: String,
    },
    /// There is no free port, or the address is not one of this machine's.
    #[error("cannot find a free port on {host}")]
    Port { host: IpAddr, source: io::Error },
    /// No key and certificate can be made.
    #[error("cannot make a certificate for the server")]
    Certificate(#[source] rcgen::Error),
    /// A setting cannot be used.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A control connection or its query failed.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The journal cannot be read or written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A cluster of before the host's restart cannot be adopted.
    #[error("cannot take over the cluster {}", path.display())]
    Adopt { path: PathBuf, source: io::Error },
    /// A part of the cluster could not be removed.
    #[error("cannot remove {}", path.display())]
    Remove { path: PathBuf, source: io::Error },
    /// The stop flag was set.
    #[error("interrupted")]
    Interrupted,
}

/// Says what to do about the end of a server, by the last lines of its `log`.
fn help_by_log(log: &str) -> String {
    /// The size of a huge page on x86-64 (bytes).
    const HUGE_PAGE: u64 = 2 << 20;
    if log.contains("could not map anonymous shared memory") {
        // PostgreSQL's hint: "To reduce the request size (currently 148545536 bytes), …".
        let asked = log.split_once("(currently ").and_then(|(_, rest)| rest.split_once(" bytes)"));
        let pages = asked.and_then(|(bytes, _)| bytes.parse::<u64>().ok());
        let enough = pages.map(|bytes| format!("={} or more", bytes.div_ceil(HUGE_PAGE)));
        return format!(
            "the machine has not the shared memory that the settings ask for: lower \
             shared_buffers, or for huge_pages = on set vm.nr_hugepages{}",
            enough.unwrap_or_default()
        );
    }
    if log.contains("No space left on device") {
        return "its filesystem is full: free some room, or name another storage".into();
    }
    "the last lines of its log above say why".into()
}

impl Advice for ClusterError {
    fn help(&self) -> Option<String> {
        match self {
            Self::Account(e) => e.help(),
            Self::Directory(e) => e.help(),
            Self::BindirNotReachable { component, .. } => Some(format!(
                "let others pass (`chmod o+x {}`), or name a `postgres.bindir` that \
                 everybody may pass",
                component.display()
            )),
            Self::SocketPath { .. } => Some("set XDG_RUNTIME_DIR to a shorter path".into()),
            Self::Make { source, .. } | Self::Step(source) => source.help(),
            Self::Settings(e) => e.help(),
            Self::Control(e) => e.help(),
            Self::Journal(e) => e.help(),
            Self::DidNotStart { log, .. } | Self::Died { log, .. } => Some(help_by_log(log)),
            Self::Port { source, .. } if source.kind() == io::ErrorKind::AddrNotAvailable => {
                Some("it is no address of this machine: name one that `ip address` shows".into())
            }
            Self::Remove { .. } => Some("remove it by hand once nothing uses it".into()),
            _ => None,
        }
    }

    fn kind(&self) -> FailureKind {
        match self {
            Self::Control(e) => e.kind(),
            Self::Settings(e) => e.kind(),
            Self::Interrupted
            | Self::Step(StepError::Interrupted)
            | Self::Make { source: StepError::Interrupted, .. } => FailureKind::Interrupted,
            _ => FailureKind::Server,
        }
    }
}
