//! Tools that answer within a time limit.
//!
//! This file knows nothing of steps, since the account that steps run as is found by a tool.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::lookup::{locate, search_path};

/// The output of a tool, and its exit status.
#[derive(Clone, Debug)]
pub struct ToolOutput {
    /// Its exit status.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
}

/// A tool that gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The tool is not installed.
    #[error("{program} is not installed")]
    Missing {
        /// Its name.
        program: String,
    },
    /// The tool could not be run.
    #[error("cannot run {program}: {source}")]
    Run {
        /// Its name.
        program: String,
        /// The cause.
        source: io::Error,
    },
    /// The tool took longer than allowed.
    #[error("{program} did not answer within {} s", limit.as_secs())]
    Late {
        /// Its name.
        program: String,
        /// The longest that it may take.
        limit: Duration,
    },
}

/// Runs `program` for at most `limit` and returns its output, whatever its exit status.
///
/// # Errors
/// [`ToolError`]: it is not installed, cannot be run, or does not end in time.
pub fn ask_tool<S: AsRef<OsStr>>(
    program: &str,
    args: &[S],
    limit: Duration,
) -> Result<ToolOutput, ToolError> {
    let missing = || ToolError::Missing { program: program.to_owned() };
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => missing(),
        _ => ToolError::Run { program: program.to_owned(), source },
    };
    let path =
        if program.contains('/') { program.into() } else { locate(program).ok_or_else(missing)? };
    let mut child = command(path.as_os_str(), args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let streams = [child.stdout.take().map(reading), child.stderr.take().map(reading)];
    let mut texts = Vec::new();
    for stream in streams.into_iter().flatten() {
        match stream.recv_timeout(limit) {
            Ok(text) => texts.push(text),
            Err(_) => {
                // A process stuck in the kernel outlives even this; it is waited for no longer.
                let _ = child.kill();
                let _ = child.try_wait();
                return Err(ToolError::Late { program: program.to_owned(), limit });
            }
        }
    }
    let status = child.wait().map_err(failed)?;
    let mut texts = texts.into_iter();
    let (stdout, stderr) = (texts.next().unwrap_or_default(), texts.next().unwrap_or_default());
    Ok(ToolOutput { status, stdout, stderr })
}

pub(crate) fn command<S: AsRef<OsStr>>(program: &OsStr, args: &[S]) -> Command {
    let mut command = Command::new(program);
    command
        .args(args)
        .current_dir("/")
        .env("PATH", search_path())
        .env("LC_ALL", "C")
        // A Ctrl-C at the terminal is pgdyno's alone.
        .process_group(0)
        .stdin(Stdio::null());
    command
}

fn reading(mut from: impl Read + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
    let (to, texts) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        let _ = to.send(bytes);
    });
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(15);

    #[test]
    fn a_tool_is_heard_or_named_as_missing() {
        let said = ask_tool("sh", &["-c", "echo out; echo err >&2; exit 3"], LIMIT).unwrap();
        assert_eq!((said.status.code(), &said.stdout[..]), (Some(3), &b"out\n"[..]));
        assert_eq!(said.stderr, b"err\n");
        let missing = ask_tool("pgdyno-no-such-program", &["-V"], LIMIT);
        assert!(matches!(missing, Err(ToolError::Missing { .. })));
        let late = ask_tool("sleep", &["100"], Duration::from_millis(50));
        assert!(matches!(late, Err(ToolError::Late { .. })));
    }
}
