//! Small files of pgdyno's own: made without following links, and durable.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Writes a file that must not exist yet, and makes it and its name durable.
///
/// # Errors
/// The file exists, or cannot be written.
pub fn write_new(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut file = File::options()
        .write(true)
        .create_new(true)
        .mode(0o644)
        .custom_flags(nofollow())
        .open(path)?;
    file.write_all(contents)?;
    file.sync_all()?;
    path.parent().map_or(Ok(()), sync_directory)
}

/// Returns `O_NOFOLLOW` as [`OpenOptionsExt::custom_flags`] wants it.
pub fn nofollow() -> i32 {
    i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or_default()
}

/// Makes the names in `directory` durable.
///
/// # Errors
/// The directory cannot be opened or synced.
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}
