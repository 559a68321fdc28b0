//! Tools that answer a question, or print the name that they chose: `wipefs --json`,
//! `losetup --find --show`.
//!
//! [`run_tool`] waits for the tool to end, and takes a failing exit status for an error.
//! [`ask_tool`] waits for a limited time, and returns whatever the tool printed. Both run the tool
//! with pgdyno's search path, without the user's locale and beyond the reach of a Ctrl-C at the
//! terminal. Programs of steps are started by [`Program`](crate::program::Program).

use std::ffi::OsStr;
use std::path::PathBuf;

use crate::error::StepError;
use crate::output::said;
use crate::question::command;
pub use crate::question::{ToolError, ToolOutput, ask_tool};

/// Runs `program` to its end and returns its standard output.
///
/// # Errors
/// [`StepError`]: it cannot be run, or its exit status is not 0; its messages are quoted.
pub fn run_tool<S: AsRef<OsStr>>(program: &str, args: &[S]) -> Result<String, StepError> {
    let path = PathBuf::from(program);
    let output = command(OsStr::new(program), args)
        .output()
        .map_err(|source| StepError::Spawn { program: path.clone(), as_account: None, source })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let quoted = said(&[output.stdout, output.stderr].concat());
    Err(StepError::Failed { program: path, status: output.status, output: quoted })
}

/// Runs the program that the first of `words` names with the others as arguments.
///
/// # Errors
/// As [`run_tool`].
pub fn run_words(words: &[String]) -> Result<String, StepError> {
    let (program, args) = words.split_first().map_or(("", &[][..]), |(p, a)| (p.as_str(), a));
    run_tool(program, args)
}
