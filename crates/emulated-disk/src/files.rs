//! The files in a disk's directory, beside those of its service.

use std::path::{Path, PathBuf};

/// Returns the sparse file with the durable contents.
pub(crate) fn image_of(directory: &Path) -> PathBuf {
    directory.join("image")
}

/// Returns the log of writes.
pub(crate) fn write_log_of(directory: &Path) -> PathBuf {
    directory.join("writes")
}
