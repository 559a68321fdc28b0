//! Programs that a filesystem needs, and the packages that have them.

use std::process::{Command, Stdio};

use super::FilesystemError;
use pgdyno_exec::step::StepError;
use pgdyno_exec::tool as program;

/// A program that is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tool {
    /// Its name.
    pub program: &'static str,
    /// Debian's package that has it.
    pub debian: &'static str,
    /// Fedora's package, where there is one.
    pub fedora: Option<&'static str>,
    /// What it does, for a sentence: `makes it`.
    pub purpose: &'static str,
}

/// Whether every one of `tools` is installed.
///
/// # Errors
/// [`FilesystemError::ToolMissing`]: the first that is not.
pub(super) fn installed(
    filesystem: &'static str,
    tools: &'static [Tool],
) -> Result<(), FilesystemError> {
    match tools.iter().find(|tool| program::locate(tool.program).is_none()) {
        Some(tool) => Err(FilesystemError::ToolMissing { filesystem, tool }),
        None => Ok(()),
    }
}

/// The first line that a program prints of its version, on whichever of its outputs; some end with
/// a failure then.
///
/// # Errors
/// [`FilesystemError::Program`]: it cannot be run.
pub(super) fn version(program: &str, flag: &str) -> Result<String, FilesystemError> {
    let output = Command::new(program)
        .arg(flag)
        .env("PATH", program::search_path())
        .env("LC_ALL", "C")
        .current_dir("/")
        .stdin(Stdio::null())
        .output()
        .map_err(|source| StepError::Spawn { program: program.into(), as_account: None, source })?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    Ok(text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim().to_owned())
}
