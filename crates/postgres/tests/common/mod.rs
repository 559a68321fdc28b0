//! A storage directory and a journal for tests on a real server.
#![allow(dead_code, reason = "each test file uses its part")]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use pgdyno_exec::{Journal, server_account};
use pgdyno_postgres::cluster::cluster_directory;
use pgdyno_postgres::{Cluster, ClusterSpec, Install, fetch, find};

/// A stop flag that is never set.
pub(crate) static RUN: AtomicBool = AtomicBool::new(false);

/// A storage directory and a journal of the test's own.
pub(crate) struct Place {
    pub(crate) root: tempfile::TempDir,
    pub(crate) journal: Journal,
}

impl Place {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        // The server's account needs to pass.
        std::fs::set_permissions(root.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let journal = Journal::open(&root.path().join("state")).unwrap();
        Self { root, journal }
    }

    pub(crate) fn path(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn spec(&self) -> ClusterSpec {
        let directory: PathBuf = cluster_directory(self.path()).unwrap();
        ClusterSpec::new(install(), directory).unwrap()
    }

    pub(crate) fn cluster(&self) -> Cluster {
        Cluster::create(self.spec(), &self.journal, &RUN).unwrap()
    }

    /// Whether nothing is left but the journal's own directory.
    pub(crate) fn is_clean(&self) -> bool {
        let names: Vec<_> =
            std::fs::read_dir(self.path()).unwrap().map(|f| f.unwrap().file_name()).collect();
        names == ["state"] && self.journal.entries().unwrap().is_empty()
    }
}

/// Returns the machine's PostgreSQL, or else a fetched one.
pub(crate) fn install() -> Install {
    find(None, None).unwrap().unwrap_or_else(|| fetched(17))
}

/// Returns a fetched PostgreSQL in the user's cache.
pub(crate) fn fetched(major: u32) -> Install {
    fetch(major, &server_account().unwrap(), &RUN, &|_| {}).unwrap()
}
