//! Fills a filesystem: one file takes all free room.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use super::FaultError;

/// Less room than this is none: filesystems keep some for themselves.
const NOTHING: u64 = 64 << 10;

/// The file that fills a filesystem. It goes when this is dropped.
#[derive(Debug)]
pub struct DiskFiller {
    path: PathBuf,
}

impl DiskFiller {
    /// Fills the filesystem mounted at `mount_point`, which pgdyno made: PostgreSQL can write what
    /// it has and get nothing more.
    ///
    /// # Errors
    /// [`FaultError::Io`]: it cannot be filled.
    pub fn fill(mount_point: &Path) -> Result<Self, FaultError> {
        let path = mount_point.join("pgdyno-disk-filler");
        let failed = |source| FaultError::io("fill the filesystem by", &path, source);
        let file =
            File::options().write(true).create_new(true).mode(0o600).open(&path).map_err(failed)?;
        let filler = Self { path: path.clone() };
        let mut size = 0;
        // What is free is an estimate on some filesystems: ever smaller pieces until none fits.
        let mut piece: u64 = 1 << 30;
        while piece >= NOTHING {
            match rustix::fs::fallocate(&file, FallocateFlags::empty(), size, piece) {
                Ok(()) => size += piece,
                Err(Errno::NOSPC) => piece /= 2,
                Err(e) => return Err(failed(io::Error::from(e))),
            }
        }
        file.sync_all().map_err(failed)?;
        Ok(filler)
    }
}

impl Drop for DiskFiller {
    fn drop(&mut self) {
        // On a filesystem that is gone it is gone too.
        let _ = std::fs::remove_file(&self.path);
    }
}
