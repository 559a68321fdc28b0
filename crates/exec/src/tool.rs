//! Tools that answer a question, or print the name that they chose: `wipefs --json`,
//! `losetup --find --show`; and the logs of programs that steps run.
//!
//! [`run_tool`] waits for the tool to end, and takes a failing exit status for an error.
//! [`ask_tool`] waits for a limited time, and returns whatever the tool printed. Both run the tool
//! as a [`Program`]: with pgdyno's search path, without the user's locale and beyond the reach of a
//! Ctrl-C at the terminal.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{StepError, io_error};
use crate::files::nofollow;
use crate::process::{STARTED_BY, started_by};
use crate::program::wait_or_end;
pub use crate::program::{Program, ToolError, ask_tool, locate, run_user_command, run_user_shell};

/// Runs `program` to its end and returns its standard output.
///
/// # Errors
/// [`StepError`]: it cannot be run, or its exit status is not 0; its messages are quoted.
pub fn run_tool<S: AsRef<OsStr>>(program: &str, args: &[S]) -> Result<String, StepError> {
    let program = Program { path: Path::new(program), args, account: None };
    let answer = program.answer(&|| false).map_err(|e| program.spawn_error(e))?;
    let output = answer.ok_or(StepError::Interrupted)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(program.failed(output.status, &[output.stdout, output.stderr].concat()))
}

/// Runs the program that the first of `words` names with the others as arguments.
///
/// # Errors
/// As [`run_tool`].
pub fn run_words(words: &[String]) -> Result<String, StepError> {
    let (program, args) = words.split_first().map_or(("", &[][..]), |(p, a)| (p.as_str(), a));
    run_tool(program, args)
}

impl<S: AsRef<OsStr>> Program<'_, S> {
    /// Runs the program of a step to its end with its output appended to the log `output`.
    ///
    /// # Errors
    /// [`StepError`]: it cannot be started, `stop` became true, or its exit status is not 0.
    pub(crate) fn run(&self, output: &Path, stop: &AtomicBool) -> Result<(), StepError> {
        let log = open_log(output)?;
        // By this a later process knows it, should this one be killed. A server is known by where
        // it works.
        let child = started_by()
            .and_then(|mark| self.command(log)?.env(STARTED_BY, mark).spawn())
            .map_err(|e| self.spawn_error(e))?;
        let ended = wait_or_end(child, &|| stop.load(Ordering::Relaxed))
            .map_err(|e| io_error("wait for", self.path, e))?
            .ok_or(StepError::Interrupted)?;
        if ended.status.success() {
            return Ok(());
        }
        // The program may have filled its log.
        let mut text = Vec::new();
        let _ = File::open(output).and_then(|log| log.take(1 << 20).read_to_end(&mut text));
        Err(self.failed(ended.status, &text))
    }

    /// Returns the error of a program that could not be started.
    pub(crate) fn spawn_error(&self, source: io::Error) -> StepError {
        let as_account = self.account.filter(|a| !a.is_ours()).cloned();
        StepError::Spawn { program: self.path.to_owned(), as_account, source }
    }

    fn failed(&self, status: ExitStatus, output: &[u8]) -> StepError {
        StepError::Failed { program: self.path.to_owned(), status, output: excerpt(output) }
    }
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
pub(crate) fn excerpt(output: &[u8]) -> String {
    const FIRST: usize = 5;
    const LAST: usize = 15;
    let text = String::from_utf8_lossy(output);
    let text = text.trim_end();
    let lines = text.lines().count();
    if lines <= FIRST + LAST {
        return last_lines(text, FIRST + LAST);
    }
    let first: String = text.lines().take(FIRST).map(|line| format!("  {line}\n")).collect();
    format!("{first}  … ({} lines)\n{}", lines - FIRST - LAST, last_lines(text, LAST))
}

/// Returns the last `lines` lines of `text`, indented.
pub fn last_lines(text: &str, lines: usize) -> String {
    let all: Vec<String> = text.trim_end().lines().map(|line| format!("  {line}")).collect();
    if all.is_empty() {
        return "  (nothing was logged)".into();
    }
    all[all.len().saturating_sub(lines)..].join("\n")
}
