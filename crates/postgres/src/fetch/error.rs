//! Errors of fetching a server.

use std::io;
use std::path::{Path, PathBuf};

use pgdyno_exec::directory::DirectoryError;
use pgdyno_exec::trust::TrustError;
use pgdyno_model::units::Bytes;
use pgdyno_model::{Advice, FailureKind};

use crate::install::InstallError;

/// Free space that a fetch needs, for the archive and for its content.
pub(super) const NEEDED: Bytes = Bytes(128 << 20);

/// No server could be fetched.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum FetchError {
    /// There is no build of this version for this host.
    #[error(
        "cannot fetch PostgreSQL {major}: there is no build for {machine} (there are: {available})"
    )]
    NoBuild {
        major: u32,
        /// Operating system and processor.
        machine: String,
        /// The major versions that have one.
        available: String,
    },
    /// The download failed.
    #[error("cannot fetch {url}: {why}")]
    Download { url: String, why: String },
    /// The archive has another checksum than pinned.
    #[error("refused {url}: its SHA-256 is {found}, and {expected} is pinned")]
    Checksum { url: String, expected: &'static str, found: String },
    /// The archive has an unexpected content.
    #[error("cannot unpack {}: {why}", archive.display())]
    Unpack { archive: PathBuf, why: String },
    /// The cache has too little free space.
    #[error(
        "cannot put a PostgreSQL build into {}: it has room for {available}, and {NEEDED} is \
         needed",
        path.display()
    )]
    NoRoom {
        path: PathBuf,
        /// Free space.
        available: Bytes,
    },
    /// No program may be run from the cache.
    #[error("cannot run PostgreSQL from {}: its filesystem is mounted noexec", builds.display())]
    NoExec { builds: PathBuf },
    /// An operation on the cache failed.
    #[error("cannot {what} {}", path.display())]
    Io { what: &'static str, path: PathBuf, source: io::Error },
    /// Other users could change the cache.
    #[error("cannot run PostgreSQL from the cache")]
    Untrusted(#[source] TrustError),
    /// A build was changed after it was unpacked.
    #[error("refused to run the PostgreSQL in {}: {what} since it was unpacked", build.display())]
    Changed {
        build: PathBuf,
        /// The first difference: "`bin/postgres` was changed".
        what: String,
    },
    /// The cache's filesystem cannot be examined.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The fetched build does not run on this host.
    #[error("the fetched PostgreSQL {version} does not run on this machine")]
    DoesNotRun { version: &'static str, source: InstallError },
    /// The stop flag was set.
    #[error("interrupted")]
    Interrupted,
}

impl FetchError {
    /// Tells whether the download failed, as it does without network.
    pub fn is_download(&self) -> bool {
        matches!(self, Self::Download { .. })
    }
}

impl Advice for FetchError {
    fn help(&self) -> Option<String> {
        let install = "install the distribution's server (Debian, Ubuntu: `apt install \
                       postgresql`; Fedora: `dnf install postgresql-server`), or name the folder \
                       of its programs with `--set postgres.bindir=DIR`";
        Some(match self {
            Self::NoBuild { .. } | Self::DoesNotRun { .. } => install.to_owned(),
            Self::Download { .. } => {
                format!(
                    "{install}. Without network, put the file of that address into {}; for a \
                     mirror, set PGDYNO_MAVEN. `pgdyno fsync`, `disk`, `doctor` and `audit` need \
                     no PostgreSQL, and `pgdyno run --dsn` measures a server elsewhere",
                    pgdyno_exec::paths::cache_dir().join("archives").display()
                )
            }
            Self::Checksum { .. } => format!(
                "something on the way or on the mirror (PGDYNO_MAVEN) changes it: fetch it another \
                 way, or {install}"
            ),
            Self::Unpack { archive, .. } => format!("remove {} and try again", archive.display()),
            Self::NoRoom { .. } | Self::Io { .. } | Self::Directory(_) => {
                "make room and let this user write there, or set XDG_CACHE_HOME to \
                 another directory"
                    .to_owned()
            }
            Self::NoExec { .. } => format!(
                "set XDG_CACHE_HOME to a directory of a filesystem without noexec; or {install}"
            ),
            Self::Untrusted(e) => return e.help(),
            Self::Changed { build, .. } => {
                format!("`rm -rf {}`: it is unpacked anew when it is needed", build.display())
            }
            Self::Interrupted => return None,
        })
    }

    fn kind(&self) -> FailureKind {
        match self {
            Self::Interrupted => FailureKind::Interrupted,
            _ => FailureKind::Host,
        }
    }
}

/// Creates the error of an attempt to do `what` on `path`.
pub(super) fn io_error(what: &'static str, path: &Path, source: io::Error) -> FetchError {
    FetchError::Io { what, path: path.to_owned(), source }
}
