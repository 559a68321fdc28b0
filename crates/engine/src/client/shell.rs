//! `\shell` and `\setshell`: run a command line with `/bin/sh` and wait for it.
//!
//! The thread's other clients wait, too. Each command line has a process group of its own, so that
//! all its processes can be ended when the load is stopped.

use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use thiserror::Error;

/// Time within which a stop is noticed (50 ms).
const STOP_CHECK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// Time that a command line has to end after SIGTERM (500 ms).
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };
/// Output of `\setshell`'s command line that is read at most (bytes).
const MAX_RESULT: usize = 4096;

/// Why a command line failed, worded as pgbench words it.
#[derive(Debug, Error)]
pub(super) enum ShellError {
    /// The command line was not started, or failed.
    #[error("{0}: could not launch shell command")]
    Launch(String),
    /// The output could not be read, or is empty.
    #[error("{0}: could not read result of shell command")]
    Read(String),
    /// The command line could not be waited for.
    #[error("{0}: could not run shell command")]
    Wait(String),
    /// The output is no integer.
    #[error("{program}: shell command must return an integer (not \"{text}\")")]
    NotAnInteger {
        /// Program that the command line runs.
        program: String,
        /// First line of the output.
        text: String,
    },
}

/// Runs `line`, whose output goes to this process's output. Ends it when `stop` becomes true.
///
/// # Errors
/// [`ShellError::Launch`], also for a command that fails.
pub(super) fn run(line: &[u8], stop: &AtomicBool) -> Result<(), ShellError> {
    let failed = || ShellError::Launch(program(line));
    let mut running = ShellCommand::start(line, Stdio::inherit()).map_err(|_| failed())?;
    match running.wait(stop) {
        Ok(None) => Ok(()),
        Ok(Some(status)) if status.success() => Ok(()),
        Ok(Some(_)) | Err(_) => Err(failed()),
    }
}

/// Runs `line` and returns the integer on the first line of its output.
///
/// Ends it when `stop` becomes true, and returns none.
///
/// # Errors
/// Any [`ShellError`].
pub(super) fn integer(line: &[u8], stop: &AtomicBool) -> Result<Option<i64>, ShellError> {
    let program = program(line);
    let started = ShellCommand::start(line, Stdio::piped());
    let mut running = started.map_err(|_| ShellError::Launch(program.clone()))?;
    let first = running.first_line(stop).map_err(|_| ShellError::Read(program.clone()))?;
    let Some(first) = first else { return Ok(None) };
    let ended = running.wait(stop).map_err(|_| ShellError::Wait(program.clone()))?;
    if ended.is_none() {
        return Ok(None);
    }
    if first.is_empty() {
        return Err(ShellError::Read(program));
    }
    let text = String::from_utf8_lossy(&first);
    match text.trim() {
        // pgbench uses `strtol`, which reads blanks as 0.
        "" => Ok(Some(0)),
        number => number
            .parse()
            .map(Some)
            .map_err(|_| ShellError::NotAnInteger { program, text: text.clone().into_owned() }),
    }
}

/// Returns the program that `line` runs, for messages.
fn program(line: &[u8]) -> String {
    let first = line.split(|b| *b == b' ').next().unwrap_or_default();
    String::from_utf8_lossy(first).into_owned()
}

/// A command line that runs.
struct ShellCommand {
    shell: Child,
    /// Process group of the shell.
    group: Pid,
}

impl ShellCommand {
    fn start(line: &[u8], output: Stdio) -> io::Result<Self> {
        let mut command = Command::new("/bin/sh");
        command
            .arg0("sh")
            .arg("-c")
            .arg(OsStr::from_bytes(line))
            .stdin(Stdio::null())
            .stdout(output)
            .process_group(0);
        let shell = command.spawn()?;
        let group = Pid::from_child(&shell);
        Ok(Self { shell, group })
    }

    /// Reads the first line of the output, with its newline; none if `stop` became true first.
    fn first_line(&mut self, stop: &AtomicBool) -> io::Result<Option<Vec<u8>>> {
        let Some(mut output) = self.shell.stdout.take() else { return Ok(Some(Vec::new())) };
        let mut text = Vec::new();
        let mut piece = [0; 256];
        while text.len() < MAX_RESULT {
            if !becomes_ready(&output, stop)? {
                return Ok(None);
            }
            let read = output.read(&mut piece)?;
            text.extend_from_slice(&piece[..read]);
            if let Some(newline) = text.iter().position(|byte| *byte == b'\n') {
                text.truncate(newline + 1);
                break;
            }
            if read == 0 {
                break;
            }
        }
        Ok(Some(text))
    }

    /// Waits for the end; none if `stop` became true first.
    fn wait(&mut self, stop: &AtomicBool) -> io::Result<Option<ExitStatus>> {
        let ended = pidfd_open(self.group, PidfdFlags::empty())?;
        if becomes_ready(&ended, stop)? { self.shell.wait().map(Some) } else { Ok(None) }
    }
}

impl Drop for ShellCommand {
    /// Ends all processes of the group, unless the shell has ended.
    fn drop(&mut self) {
        if !matches!(self.shell.try_wait(), Ok(None)) {
            return;
        }
        // A group that cannot be signalled has ended. Its number is not reused before the wait.
        let _ = kill_process_group(self.group, Signal::TERM);
        if let Ok(ended) = pidfd_open(self.group, PidfdFlags::empty()) {
            let _ = poll(&mut [PollFd::new(&ended, PollFlags::IN)], Some(&PATIENCE));
        }
        let _ = kill_process_group(self.group, Signal::KILL);
        let _ = self.shell.wait();
    }
}

/// Waits until `source` is readable or has ended; returns false if `stop` became true first.
fn becomes_ready(source: &impl AsFd, stop: &AtomicBool) -> io::Result<bool> {
    loop {
        match poll(&mut [PollFd::new(source, PollFlags::IN)], Some(&STOP_CHECK)) {
            Ok(0) | Err(rustix::io::Errno::INTR) if stop.load(Ordering::Relaxed) => {
                return Ok(false);
            }
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(true),
            Err(error) => return Err(error.into()),
        }
    }
}
