//! Logs of programs, and their excerpts for messages.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::error::{StepError, io_error};
use crate::files::nofollow;

/// Returns the first MiB of the log `path`, which the program may have filled.
pub(crate) fn beginning(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(path)?.take(1 << 20).read_to_end(&mut text)?;
    Ok(text)
}

/// Opens a log for appending; only this account may read it.
///
/// # Errors
/// [`StepError::Io`]: it cannot be opened.
pub fn open_log(path: &Path) -> Result<File, StepError> {
    File::options()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(nofollow())
        .open(path)
        .map_err(|e| io_error("open the log", path, e))
}

/// Returns a program's output, indented, for a message. Of a long output the middle is left out:
/// many programs give the reason first and their usage last.
pub fn said(output: &[u8]) -> String {
    const FIRST: usize = 5;
    const LAST: usize = 15;
    let text = String::from_utf8_lossy(output);
    let lines: Vec<&str> = text.trim_end().lines().collect();
    if lines.len() <= FIRST + LAST {
        return last_lines(&text, FIRST + LAST);
    }
    let shown = |lines: &[&str]| {
        lines.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
    };
    let left_out = lines.len() - FIRST - LAST;
    format!(
        "{}\n  … ({left_out} lines)\n{}",
        shown(&lines[..FIRST]),
        shown(&lines[lines.len() - LAST..])
    )
}

/// Returns the last `lines` lines of `text`.
pub fn last_lines(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.trim_end().lines().collect();
    if all.is_empty() {
        return "  (nothing was logged)".into();
    }
    let kept = &all[all.len().saturating_sub(lines)..];
    kept.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}
