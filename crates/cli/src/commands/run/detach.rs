//! `pgdyno run --detach`: starts the run in a process without the terminal.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use pgdyno_dataset::trust::Trust;
use pgdyno_lab::live::{self, Detached, leave_terminal};

use crate::context::Context;
use crate::error::CommandError;
use crate::exit_status::ExitStatus;
use crate::output::{print_line, print_stderr};

/// The hidden option that the new process is started with.
const DETACHED: &str = "--detached";

/// Starts the run without the terminal. Returns once it is in the store, or has failed before.
pub(super) fn detach(
    store: &Path,
    trust: &Trust,
    context: &Context,
) -> Result<ExitStatus, CommandError> {
    let started = live::detach(store, trust, &command_words()?, context.stop())?;
    let (run, pid, log) = match started {
        Detached::Running { run, pid, log } => (run, pid, log),
        Detached::Ended { output } => {
            print_stderr(output.trim_end());
            return Err(CommandError::new(
                "cannot detach the run: it ended before it was in the store; its messages are \
                 above",
            ));
        }
    };
    print_line(&format!("run {run} works without this terminal, as process {pid}"));
    print_line(&format!("log:    {}", log.display()));
    print_line(&format!("attach: pgdyno attach {run}"));
    print_line(&format!("stop:   pgdyno stop {run}"));
    Ok(ExitStatus::Success)
}

fn detach_error(source: io::Error) -> CommandError {
    CommandError::with_source("cannot detach the run", source)
}

/// Leaves the terminal, in the process that was started without it.
pub(super) fn leave() -> Result<(), CommandError> {
    leave_terminal().map_err(detach_error)
}

/// Returns this very call of pgdyno with the hidden option in it. Only options without a value
/// stand before the command's name.
fn command_words() -> Result<Vec<OsString>, CommandError> {
    let program = std::env::current_exe().map_err(detach_error)?;
    let mut words = vec![program.into_os_string()];
    words.extend(std::env::args_os().skip(1));
    let command = words.iter().skip(1).position(|word| word == "run").map_or(1, |at| at + 2);
    words.insert(command, DETACHED.into());
    Ok(words)
}
