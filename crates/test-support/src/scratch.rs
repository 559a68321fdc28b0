//! A folder for one test.

use std::fs::{self, Permissions};
use std::io;
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
        Self::within(&std::env::temp_dir()).unwrap()
    }

    /// Creates an empty folder in memory, if the system has such a place: for what is no subject of
    /// the test.
    pub fn in_memory() -> Self {
        Self::within(Path::new("/dev/shm")).unwrap_or_else(|_| Self::new())
    }

    fn within(place: &Path) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("pgdyno-test-").tempdir_in(place)?;
        open_to_all(folder.path());
        Ok(Self { folder })
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
