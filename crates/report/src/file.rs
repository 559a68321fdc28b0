//! Reports in files: writes them atomically, and recognises them.

use std::io::{self, Read, Write};
use std::path::Path;

use super::error::ReportError;

/// Writes the page `text` to `path`, atomically.
///
/// # Errors
/// [`ReportError::Write`].
pub(super) fn write(path: &Path, text: &str) -> Result<(), ReportError> {
    replace(path, text.as_bytes())
        .map_err(|source| ReportError::Write { path: path.into(), source })
}

/// Returns whether the file at `path` is a report of pgdyno, of any version.
///
/// # Errors
/// The file cannot be read.
pub fn is_report(path: &Path) -> io::Result<bool> {
    /// The mark lies within these first bytes: in the head, after the security policy.
    const HEAD: u64 = 4096;
    const MARK: &[u8] = b"<meta name=\"generator\" content=\"pgdyno ";
    let mut head = Vec::new();
    std::fs::File::open(path)?.take(HEAD).read_to_end(&mut head)?;
    Ok(head.windows(MARK.len()).any(|bytes| bytes == MARK))
}

/// Writes a file whole or not at all; a device or a pipe is written to.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let real = match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => return Err(io::Error::from(io::ErrorKind::IsADirectory)),
        // A device or a pipe is written to: renaming would replace it with a file.
        Ok(found) if !found.is_file() => {
            return std::fs::OpenOptions::new().write(true).open(path)?.write_all(bytes);
        }
        // A link stays a link: its target is replaced.
        Ok(_) => path.canonicalize()?,
        Err(_) => path.to_owned(),
    };
    let path = real.as_path();
    // A temporary file beside it, so that the renaming stays within one file system.
    let folder = path.parent().filter(|f| !f.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".pgdyno-report-").suffix(".html");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644));
    let mut file = builder.tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|e| e.error)?;
    Ok(())
}
