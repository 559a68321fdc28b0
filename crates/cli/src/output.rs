//! The only place that prints: results to standard output, all else to standard error.
//!
//! A write to standard output that fails does not end the command: what it stores, and files that
//! it writes, do not depend on it. The first failure is kept, and [`exit_status`] is asked once at
//! the end.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Exit status where the reader of standard output went away: what a shell says of a program that
/// SIGPIPE ended, pgbench among them. SIGPIPE itself stays ignored: it would end a run that has
/// something to take down.
pub(crate) const READER_GONE: u8 = 141;

/// Why standard output did not take all that was printed: the first failure.
static LOST: Mutex<Option<io::Error>> = Mutex::new(None);

/// Whether progress and hints are left out (`--quiet`).
static QUIET: AtomicBool = AtomicBool::new(false);

/// Whether reports are printed with all their notes (`--verbose`).
static VERBOSE: AtomicBool = AtomicBool::new(false);

/// A command that could not do what was asked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// What was attempted, on what, what was found.
    pub(crate) message: String,
    /// What to do.
    pub(crate) help: Option<String>,
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), help: None }
    }

    /// The same with what to do.
    pub(crate) fn helped(message: impl Into<String>, help: &str) -> Self {
        Self { message: message.into(), help: Some(help.to_owned()) }
    }

    /// `error` with its causes, and what to do about it.
    pub(crate) fn of(error: &dyn std::error::Error, help: Option<String>) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(inner) = cause {
            let _ = write!(message, "\n  because: {inner}");
            cause = inner.source();
        }
        Self { message, help }
    }
}

impl From<pgdyno_lab::LabError> for Failure {
    fn from(error: pgdyno_lab::LabError) -> Self {
        Self::of(&error, error.help())
    }
}

/// Standard output. The first write that fails is kept for [`exit_status`].
pub(crate) struct StandardOutput;

impl StandardOutput {
    fn keep(error: io::Error) -> io::Error {
        // A signal came: the write is tried again.
        if error.kind() != io::ErrorKind::Interrupted {
            let kept = error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error);
            lost().get_or_insert(kept);
        }
        error
    }
}

impl Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        io::stdout().write(bytes).map_err(Self::keep)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush().map_err(Self::keep)
    }
}

fn lost() -> MutexGuard<'static, Option<io::Error>> {
    LOST.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Prints `text` and a newline to standard output.
pub(crate) fn print(text: &str) {
    // What fails is kept.
    let _ = writeln!(StandardOutput, "{}", text.trim_end_matches('\n'));
}

/// Prints the answer to `--help` and `--version`, or what is wrong with the arguments; the exit
/// status for it.
pub(crate) fn print_usage(usage: &clap::Error) -> u8 {
    // clap's own status for a mistake would be 2.
    let status = u8::from(usage.use_stderr());
    if let Err(error) = usage.print()
        && status == 0
    {
        StandardOutput::keep(error);
    }
    status
}

/// The status with which a command ends that came to `status`. Where standard output did not take
/// what was printed, success is none: 1 after `complain` was told why, or [`READER_GONE`] in
/// silence.
pub(crate) fn exit_status(status: u8, complain: impl FnOnce(&io::Error)) -> u8 {
    let _ = StandardOutput.flush();
    let Some(error) = lost().take() else { return status };
    let is_gone = error.kind() == io::ErrorKind::BrokenPipe;
    if !is_gone {
        complain(&error);
    }
    match status {
        0 if is_gone => READER_GONE,
        0 => 1,
        status => status,
    }
}

/// As [`exit_status`]; complains in pgdyno's words.
pub(crate) fn exit(status: u8) -> ExitCode {
    let complain = |error: &io::Error| {
        let failure = Failure::helped(
            format!("cannot write to standard output: {error}"),
            "free room there, or send it elsewhere; what was stored can be shown again",
        );
        self::complain(&failure);
    };
    ExitCode::from(exit_status(status, complain))
}

/// Sets what `--quiet` and `--verbose` say; once, before anything is printed.
pub(crate) fn set_verbosity(quiet: bool, verbose: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
    VERBOSE.store(verbose, Ordering::Relaxed);
}

/// Whether progress and hints are left out.
pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Whether reports are printed with all their notes.
pub(crate) fn is_verbose() -> bool {
    VERBOSE.load(Ordering::Relaxed)
}

/// Prints a line to standard error: how a command ended, or what failed.
pub(crate) fn tell(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Prints a line of progress or a hint to standard error, unless `--quiet` leaves them out.
pub(crate) fn hint(line: &str) {
    if !is_quiet() {
        tell(line);
    }
}

/// Prints `failure` to standard error; the exit status for it.
pub(crate) fn complain(failure: &Failure) -> u8 {
    tell(&format!("error: {}", failure.message));
    if let Some(help) = &failure.help {
        tell(&format!("help: {help}"));
    }
    1
}
