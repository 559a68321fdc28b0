//! What the tests on a real server share.
#![allow(dead_code, reason = "each test file uses its part")]

pub(crate) mod disks;
pub(crate) mod leftovers;
pub(crate) mod stacks;
pub(crate) mod tracer;
pub(crate) mod zfs;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use pgdyno_exec::account::server_account;
use pgdyno_exec::journal::Journal;
use pgdyno_postgres::cluster::cluster_directory;
use pgdyno_postgres::{Cluster, ClusterSpec, Install, fetch, find};
use pgdyno_storage::StorageError;

/// Never told to stop.
pub(crate) static RUN: AtomicBool = AtomicBool::new(false);

/// A place of the test's own: a storage directory and a journal.
pub(crate) struct Place {
    pub(crate) root: tempfile::TempDir,
    pub(crate) journal: Journal,
}

impl Place {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        // The server's account must pass.
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

/// Whether `error` says that this machine lacks what a storage takes: then `test` is said to be
/// skipped, past the test runner, which captures what passing tests print.
pub(crate) fn is_lacking(test: &str, error: &StorageError) -> bool {
    use std::io::Write as _;
    let lacking = matches!(
        error,
        StorageError::NotRoot { .. }
            | StorageError::ToolMissing { .. }
            | StorageError::Fuse { .. }
            | StorageError::Filesystem { .. }
    );
    if lacking {
        let cause = std::error::Error::source(error).map_or_else(String::new, |c| format!(": {c}"));
        let _ = writeln!(std::io::stderr(), "\nskipped: {test}: {error}{cause}");
    }
    lacking
}

/// Mounts, loop devices and emulated disks' processes that have to do with `place`.
pub(crate) fn traces(place: &Path) -> Vec<String> {
    let place = place.canonicalize().unwrap();
    let place = place.to_str().unwrap();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mut traces: Vec<String> =
        mounts.lines().filter(|l| l.contains(place)).map(String::from).collect();
    for device in std::fs::read_dir("/sys/block").unwrap().flatten() {
        let backing =
            std::fs::read_to_string(device.path().join("loop/backing_file")).unwrap_or_default();
        if backing.contains(place) {
            traces.push(format!("{:?} over {backing}", device.file_name()));
        }
    }
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        let environment = std::fs::read(process.path().join("environ")).unwrap_or_default();
        if String::from_utf8_lossy(&environment).contains(&format!("PGDYNO_EMULATED_DISK={place}"))
        {
            traces.push(format!("process {:?}", process.file_name()));
        }
    }
    traces
}

/// The machine's PostgreSQL, or else a fetched one.
pub(crate) fn install() -> Install {
    find(None, None).unwrap().unwrap_or_else(|| fetched(17))
}

/// A fetched PostgreSQL, in the user's cache.
pub(crate) fn fetched(major: u32) -> Install {
    fetch(major, &server_account().unwrap(), &RUN, &|_| {}).unwrap()
}
