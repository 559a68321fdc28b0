//! Errors of fetching a server.

use std::io;
use std::path::{Path, PathBuf};

use pgdyno_exec::directory::DirectoryError;
use pgdyno_exec::trust::TrustError;
use pgdyno_model::units::Bytes;

use crate::install::InstallError;

/// Free space that a fetch needs, for the archive and for its content.
pub(super) const NEEDED: Bytes = Bytes(128 << 20);

/// No server could be fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// Nobody builds it for this machine, or it is a version that pgdyno does not know.
    #[error(
        "cannot fetch PostgreSQL {major}: there is no build for {machine} (there are: {available})"
    )]
    NoBuild {
        /// The major version.
        major: u32,
        /// Operating system and processor.
        machine: String,
        /// The major versions that there are for it.
        available: String,
    },
    /// The repository does not answer, or not with the artefact.
    #[error("cannot fetch {url}: {why}")]
    Download {
        /// What was asked for.
        url: String,
        /// What went wrong.
        why: String,
    },
    /// What arrived is something else.
    #[error("refused {url}: its SHA-256 is {found}, and {expected} is pinned")]
    Checksum {
        /// Where it came from.
        url: String,
        /// The pinned checksum.
        expected: &'static str,
        /// The checksum of what arrived.
        found: String,
    },
    /// The archive does not hold what it should.
    #[error("cannot unpack {}: {why}", archive.display())]
    Unpack {
        /// The archive.
        archive: PathBuf,
        /// What went wrong.
        why: String,
    },
    /// There is no room for it.
    #[error("cannot put a PostgreSQL build into {}: it has room for {available}, and {NEEDED} is needed", path.display())]
    NoRoom {
        /// The cache.
        path: PathBuf,
        /// What is free.
        available: Bytes,
    },
    /// The cache.
    #[error("cannot {what} {}", path.display())]
    Io {
        /// What was attempted.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Somebody else could change what is in the cache.
    #[error("cannot run PostgreSQL from the cache")]
    Untrusted(#[source] TrustError),
    /// An unpacked build is not what was unpacked.
    #[error("refused to run the PostgreSQL in {}: {what} since it was unpacked", build.display())]
    Changed {
        /// The build's folder.
        build: PathBuf,
        /// The first difference: "`bin/postgres` was changed".
        what: String,
    },
    /// The cache's filesystem.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// It was fetched and does not run here.
    #[error("the fetched PostgreSQL {version} does not run on this machine")]
    DoesNotRun {
        /// Its version.
        version: &'static str,
        /// What happened.
        source: InstallError,
    },
    /// It was told to stop.
    #[error("interrupted")]
    Interrupted,
}

impl FetchError {
    /// What to do.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        let install = "install the distribution's server (Debian, Ubuntu: `apt install postgresql`; Fedora: `dnf install \
                       postgresql-server`; Homebrew: `brew install postgresql@17`), or name one in `postgres.bindir`";
        Some(match self {
            Self::NoBuild { .. } | Self::DoesNotRun { .. } => install.to_owned(),
            Self::Download { .. } => {
                format!("{install}; where a mirror is to be asked, set PGDYNO_MAVEN to its address")
            }
            Self::Checksum { .. } => format!(
                "something on the way or on the mirror (PGDYNO_MAVEN) changes it: fetch it another way, or {install}"
            ),
            Self::Unpack { archive, .. } => format!("remove {} and try again", archive.display()),
            Self::NoRoom { .. } | Self::Io { .. } | Self::Directory(_) => {
                "make room and let this user write there, or set XDG_CACHE_HOME to another directory"
                    .to_owned()
            }
            Self::Untrusted(e) => return e.help(),
            Self::Changed { build, .. } => {
                format!("`rm -rf {}`: it is unpacked anew when it is needed", build.display())
            }
            Self::Interrupted => return None,
        })
    }
}

/// Creates the error of an attempt to do `what` on `path`.
pub(super) fn io_error(what: &'static str, path: &Path, source: io::Error) -> FetchError {
    FetchError::Io { what, path: path.to_owned(), source }
}
