//! A folder for one test.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A folder that is removed when the value is dropped. Every account can enter it.
#[derive(Debug)]
pub struct Scratch {
    folder: TempDir,
}

impl Scratch {
    /// Creates an empty folder in the system's temporary folder.
    #[allow(clippy::new_without_default, reason = "a folder is no default value")]
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("pgdyno-test-").tempdir().unwrap();
        open_to_all(folder.path());
        Self { folder }
    }

    /// Creates an empty folder in memory, if the system has such a place: for what is no subject of
    /// the test.
    pub fn in_memory() -> Self {
        let folder = tempfile::Builder::new().prefix("pgdyno-test-").tempdir_in("/dev/shm");
        let Ok(folder) = folder else { return Self::new() };
        open_to_all(folder.path());
        Self { folder }
    }

    /// Returns the folder's path.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the path of the folder, which nobody removes any more.
    pub(crate) fn keep(self) -> PathBuf {
        self.folder.keep()
    }

    /// Creates the folder `name` in it, which every account can enter too.
    pub fn create_folder(&self, name: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(&path).unwrap();
        open_to_all(&path);
        path
    }
}

/// The server runs under an account of its own, which has to pass.
fn open_to_all(path: &Path) {
    fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
}
