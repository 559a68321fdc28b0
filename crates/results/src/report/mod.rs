//! Reports: a table for the terminal, one offline HTML file for everyone.

pub mod audit;
mod beside;
mod charts;
mod compare;
mod crash;
pub mod fingerprint;
mod html;
pub mod json;
mod probe;
mod stack;
mod terminal;
pub mod text;
mod verdicts;
mod why;

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::RunView;

pub use beside::beside;
pub use compare::{compare, compare_markdown, compare_with};
pub use crash::{CrashView, FaultView, GravestFault, PowerView, crash, crash_with};
pub use html::html;
pub use probe::{ProbeView, probe};
pub use terminal::{terminal, terminal_with};

/// How much of a report is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// The first few notes, and how many more there are.
    Brief,
    /// Everything.
    Full,
}

impl Detail {
    /// Of `notes` those that are printed, and a line for the rest.
    fn notes(self, notes: &[String]) -> Vec<String> {
        const SHOWN: usize = 5;
        if self == Self::Full || notes.len() <= SHOWN {
            return notes.to_vec();
        }
        let more = format!("{} more with `--verbose`.", notes.len() - SHOWN);
        notes[..SHOWN].iter().cloned().chain([more]).collect()
    }
}

/// Why a report could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The template or the data could not be put into HTML: a fault of pgdyno's.
    #[error("cannot render the report of run {run}")]
    Render {
        /// The run.
        run: String,
        /// What the template engine said.
        source: minijinja::Error,
    },
    /// The file could not be written; what was there before is as it was.
    #[error("cannot write the report to {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl ReportError {
    /// What the user can do about it, where there is something.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Render { .. } => {
                Some("this is a fault in pgdyno; `pgdyno show RUN --json` has all the data".into())
            }
            Self::Write { .. } => {
                Some("name a file in a folder that you may write to with `-o FILE.html`".into())
            }
        }
    }
}

/// Writes the HTML report to `path`: whole, or not at all.
///
/// # Errors
/// [`ReportError`].
pub fn write_html(view: &RunView, path: impl AsRef<Path>) -> Result<(), ReportError> {
    let path = path.as_ref();
    let text = html(view)?;
    replace(path, text.as_bytes())
        .map_err(|source| ReportError::Write { path: path.into(), source })
}

/// Whether the file at `path` is a report that pgdyno made, of this version or another.
///
/// # Errors
/// The file cannot be read.
pub fn is_report(path: &Path) -> io::Result<bool> {
    /// Where every report has its mark: in the head, after the security policy.
    const HEAD: u64 = 4096;
    const MARK: &[u8] = b"<meta name=\"generator\" content=\"pgdyno ";
    let mut head = Vec::new();
    std::fs::File::open(path)?.take(HEAD).read_to_end(&mut head)?;
    Ok(head.windows(MARK.len()).any(|bytes| bytes == MARK))
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let real = match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => return Err(io::Error::from(io::ErrorKind::IsADirectory)),
        // A device or a pipe is written to: a renaming would put a file in its place.
        Ok(found) if !found.is_file() => {
            return std::fs::OpenOptions::new().write(true).open(path)?.write_all(bytes);
        }
        // A link stays one: what it leads to is replaced.
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
