//! `pgdyno attach`: watches a run of another process.

use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use clap::Args;
use pgdyno_lab::live::{self, Follower};
use pgdyno_model::Failure;
use pgdyno_model::progress::{Event, Progress as _};
use pgdyno_model::record::SessionEnd;
use pgdyno_provision::BenchError;
use pgdyno_report::{self as report, RunReport};
use pgdyno_store::Store;

use crate::context::Context;
use crate::error::CommandError;
use crate::exit_status::ExitStatus;
use crate::output::{print, print_stderr};
use crate::progress::{Display, ProgressOption};
use crate::shared_options::StoreOption;

/// Between two looks at the run's live file.
const POLL: Duration = Duration::from_millis(200);
/// A look that finds more events than this is still reading the past (count).
const PAST: usize = 100;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pgdyno attach                  Watch the newest run until it ends, then print its results
  pgdyno attach --progress json  Print what it does as one JSON object a line

See also: pgdyno-run(1), pgdyno-show(1)")]
pub(crate) struct AttachArgs {
    /// The run. Without it, the newest one
    #[arg(value_name = "RUN", default_value = "latest")]
    pub(crate) run: String,
    #[command(flatten)]
    pub(crate) progress: ProgressOption,
    #[command(flatten)]
    pub(crate) store: StoreOption,
}

/// Why the watching ended.
enum Watched {
    /// The run ended.
    Ended {
        end: SessionEnd,
        /// Why the run could not go on.
        error: Option<Failure>,
    },
    /// The run's process died.
    Died,
    /// A signal came to this process.
    Left,
}

/// Shows the run until it ends, then its results. The exit status is that of the run.
pub(crate) fn run(options: &AttachArgs, context: &Context) -> Result<ExitStatus, CommandError> {
    let store = options.store.path();
    let run = live::find(&store, &options.run)?.run;
    let mut follower = Follower::open(&store, &run)?;
    let display = Display::new(options.progress);
    let watched = watch(&mut follower, &display, context);
    display.end();
    match watched? {
        Watched::Ended { end, error } => conclude(&run, end, error, &store, context),
        Watched::Died => {
            let pid = follower.run().owner.pid;
            let message = format!("run {run} did not end: its process {pid} died");
            Err(CommandError::new(message).with_help(format!(
                "`pgdyno run --resume {run}` goes on from what is stored, and removes what the \
                 process left behind"
            )))
        }
        Watched::Left => {
            print_stderr(&format!(
                "run {run} goes on; `pgdyno attach {run}` shows it again, `pgdyno stop {run}` ends \
                 it after the trial"
            ));
            Ok(ExitStatus::Interrupted)
        }
    }
}

fn watch(
    follower: &mut Follower,
    display: &Display,
    context: &Context,
) -> Result<Watched, BenchError> {
    let (run, pid) = (&follower.run().run, follower.run().owner.pid);
    display.line(&format!("run {run}: process {pid} works on it; Ctrl-C leaves it alone"));
    let mut is_past = true;
    loop {
        // In this order: what a process wrote before its death is read.
        let is_alive = follower.is_alive();
        let events = follower.poll()?;
        let is_silent = events.is_empty();
        if is_past {
            display.catch_up(&events);
        } else {
            events.iter().for_each(|event| display.event(event));
        }
        is_past = is_past && events.len() > PAST;
        let ended = events.into_iter().rev().find_map(|event| match event {
            Event::Ended { end, error } => Some(Watched::Ended { end, error }),
            _ => None,
        });
        if let Some(ended) = ended {
            return Ok(ended);
        }
        if !is_alive && is_silent {
            return Ok(Watched::Died);
        }
        if context.is_stopped() {
            return Ok(Watched::Left);
        }
        sleep(POLL);
    }
}

/// Prints the results of a run that ended, and returns its exit status.
fn conclude(
    run: &str,
    end: SessionEnd,
    error: Option<Failure>,
    store: &Path,
    context: &Context,
) -> Result<ExitStatus, CommandError> {
    if let Some(error) = error {
        let next = format!(
            "`pgdyno show {run}` shows what it measured; `pgdyno run --resume {run}` tries again"
        );
        let help = error.help.map_or_else(|| next.clone(), |help| format!("{help}; {next}"));
        let message = format!("run {run} could not go on: {}", error.message);
        return Err(CommandError::new(message).with_help(help));
    }
    let read = RunReport::read(&Store::open_existing(store)?, run)?;
    print(&report::terminal(&read, context.width(), context.detail()));
    let crashes = ExitStatus::from_crashes(&read.view);
    Ok(match end {
        SessionEnd::Completed => crashes,
        SessionEnd::Interrupted => {
            print_stderr(&format!("interrupted; `pgdyno run --resume {run}` goes on"));
            ExitStatus::Interrupted
        }
        SessionEnd::Failed if crashes == ExitStatus::PromiseBroken => crashes,
        SessionEnd::Failed => {
            print_stderr(&format!("not all was done; `pgdyno run --resume {run}` tries again"));
            ExitStatus::TrialFailed
        }
    })
}
