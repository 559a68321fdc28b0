//! `pgdyno host-run`: runs an experiment on this host for `pgdyno run --hosts` elsewhere, which
//! starts this command.

use std::io::{self, BufRead, BufReader, Stdin};
use std::sync::mpsc::{Receiver, channel};

use pgdyno_lab::hosts::member::{HostRun, forget, run_assignment, send, send_reply};
use pgdyno_lab::hosts::{Assignment, Reply, STORED};
use pgdyno_provision::BenchError;

use crate::context::Context;
use crate::error::{CommandError, render_chain};
use crate::exit_status::ExitStatus;
use crate::progress::ProgressOption;
use crate::signals;

/// Runs the assignment that comes on standard input. Progress goes to standard error, the reply and
/// the store to standard output. If standard input ends before the store has arrived, the run is
/// interrupted and the store stays.
pub(crate) fn run(context: &Context) -> Result<ExitStatus, CommandError> {
    let mut input = BufReader::new(io::stdin());
    let mut line = String::new();
    input.read_line(&mut line).map_err(CommandError::from_exchange)?;
    let assignment: Assignment = serde_json::from_str(&line)?;
    let is_stored = watch(input);
    let run = context.with_progress_until(
        ProgressOption::default(),
        |run: &HostRun| run.end,
        |progress| run_assignment(&assignment, progress, &context.stop_flag()),
    );
    let mut output = io::stdout().lock();
    match run {
        Ok(run) => send(&run, &mut output).map_err(CommandError::from_exchange)?,
        Err(error) => {
            let error = match error {
                BenchError::Interrupted => None,
                error => {
                    let help = error.help().map(|help| format!("\nhelp: {help}"));
                    Some(render_chain(&error) + help.as_deref().unwrap_or_default())
                }
            };
            let reply = Reply { error, ..Reply::default() };
            send_reply(&reply, &mut output).map_err(CommandError::from_exchange)?;
        }
    }
    if is_stored.recv().unwrap_or(false) {
        forget(&assignment).map_err(CommandError::from_exchange)?;
    }
    Ok(ExitStatus::Success)
}

/// Reads standard input to its end, in a thread. Says whether the run is stored where the
/// assignment came from; if it is not, interrupts the run.
fn watch(mut input: BufReader<Stdin>) -> Receiver<bool> {
    let (tell, is_stored) = channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let came = input.read_line(&mut line).is_ok() && line.trim_end() == STORED;
        let _ = tell.send(came);
        if !came {
            // Not by a signal: whoever started this may have blocked it.
            signals::interrupt();
        }
    });
    is_stored
}
