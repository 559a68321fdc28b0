//! Whether a filesystem's programs are installed, and their versions.

use std::io;
use std::time::Duration;

use pgdyno_exec::StepError;
use pgdyno_exec::tool::{ask_tool, locate};

use super::error::FilesystemError;
use super::tool::Tool;

/// How long a program may take to print its version.
const LIMIT: Duration = Duration::from_secs(15);

/// Checks whether every one of `tools` is installed.
///
/// # Errors
/// [`FilesystemError::ToolMissing`]: the first that is not.
pub(super) fn installed(
    filesystem: &'static str,
    tools: &'static [Tool],
) -> Result<(), FilesystemError> {
    match tools.iter().find(|tool| locate(tool.program).is_none()) {
        Some(tool) => Err(FilesystemError::ToolMissing { filesystem, tool }),
        None => Ok(()),
    }
}

/// Returns the first line that a program prints of its version, on whichever of its outputs; some
/// end with a failure then.
///
/// # Errors
/// [`FilesystemError::Program`]: it cannot be run.
pub(super) fn version(program: &str, flag: &str) -> Result<String, FilesystemError> {
    let output = ask_tool(program, &[flag], LIMIT).map_err(|e| StepError::Spawn {
        program: program.into(),
        as_account: None,
        source: io::Error::other(e),
    })?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    Ok(text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim().to_owned())
}
