//! The command line of pgdyno.
//!
//! [`arguments`] declares the commands for clap; each command's own options stand with its code in
//! [`commands`]. A command's `run` is given its options and a [`context::Context`] (stop flag, how
//! much to print). It calls `pgdyno-lab` or `pgdyno-report`, prints the rendered result through
//! [`output`], and returns an [`exit_status::ExitStatus`] or a [`error::CommandError`].
//!
//! The order of calls in `main`:
//!
//! 1. `pgdyno pgbench`, or a call by the name `pgbench`, passes its arguments on before clap sees
//!    them.
//! 2. clap reads the arguments of every other command.
//! 3. [`signals::handle`]: from now on the first signal asks for an orderly end, the second ends
//!    the process. A run goes on when its terminal is closed.
//! 4. The command runs.
//! 5. [`output::exit`] turns its end into the exit status of the process.
//!
//! Results go to standard output, everything else to standard error, and control characters in both
//! are escaped.

mod arguments;
mod ask;
mod commands;
mod confirmation;
mod context;
mod duration;
mod error;
mod exit_status;
mod metrics;
#[cfg(test)]
mod named_options;
mod new_error;
mod output;
mod parts;
mod probe_result;
mod progress;
mod render;
mod report_destination;
mod shared_options;
mod signals;
mod state_options;
mod suggestions;

use std::process::ExitCode;

use arguments::{Arguments, Command, FIRST_STEPS};
use clap::CommandFactory;
use commands::{
    archive, attach, audit, clean, compare, completions, crash, disk, disk_log, doctor,
    emulated_disk, export, filesystems, fsync, host_run, import, list, load, new, noise, pgbench,
    recipes, replay, report, rm, run, serve, show, stop, store, verify, worker,
};
use context::Context;
use error::CommandError;
use exit_status::ExitStatus;

fn main() -> ExitCode {
    // clap does not read pgbench's arguments.
    if let Some((arguments, called_as)) = pgbench::arguments(std::env::args_os()) {
        return pgbench::run(&arguments, called_as);
    }
    let arguments = match Arguments::read() {
        Ok(arguments) => arguments,
        Err(usage) => return output::exit(output::print_usage(&usage)),
    };
    output::set_quiet(arguments.quiet);
    output::exit(match run_command(arguments) {
        Ok(status) => status.code(),
        Err(error) => {
            let status = output::report_error(&error);
            // An error after a signal is a consequence of it.
            if signals::is_interrupted() { ExitStatus::Interrupted.code() } else { status }
        }
    })
}

fn run_command(arguments: Arguments) -> Result<ExitStatus, CommandError> {
    let context = Context::new(arguments.verbose);
    let Some(command) = arguments.command else {
        output::print(FIRST_STEPS);
        return Ok(ExitStatus::Success);
    };
    // A signal ends the process of an emulated disk, or a worker, at once.
    if !matches!(command, Command::EmulatedDisk | Command::Worker(_)) {
        signals::handle(matches!(command, Command::Run(_) | Command::HostRun))?;
    }
    match command {
        Command::Run(options) => run::run(&options, &context),
        Command::Attach(options) => attach::run(&options, &context),
        Command::Load(options) => load::run(&options, &context),
        Command::Replay(options) => replay::run(&options, &context),
        #[cfg(feature = "capture")]
        Command::Capture(options) => commands::capture::run(&options, &context),
        #[cfg(feature = "capture")]
        Command::Fidelity(options) => commands::fidelity::run(&options, &context),
        Command::New(options) => new::run(&options, &context),
        Command::Schema => {
            output::print(pgdyno_experiment::file::SCHEMA);
            Ok(ExitStatus::Success)
        }
        Command::Recipes(options) => recipes::run(&options),
        Command::List(options) => list::run(&options),
        Command::Noise(options) => noise::run(&options, &context),
        Command::Serve(options) => serve::run(&options, &context),
        Command::Show(options) => show::run(&options, &context),
        Command::Verify(options) => verify::run(&options, &context),
        Command::Rm(options) => rm::run(&options, &context),
        Command::Archive(options) => archive::run(&options, &context),
        Command::Import(options) => import::run(&options, &context),
        Command::Store(command) => store::run(&command, &context),
        Command::Report(options) => report::run(&options),
        Command::Export(options) => export::run(&options),
        Command::Compare(options) => compare::run(&options, &context),
        Command::Doctor(options) => doctor::run(&options, &context),
        Command::Crash(options) => crash::run(&options, &context),
        Command::DiskLog(options) => disk_log::run(&options),
        Command::Audit(options) => audit::run(&options, &context),
        Command::Stop(options) => stop::run(&options),
        Command::Clean(options) => clean::run(&options, &context),
        Command::Filesystems => Ok(filesystems::run()),
        Command::Fsync(options) => fsync::run(&options, &context),
        Command::Disk(options) => disk::run(&options, &context),
        // `main` took its arguments, unless an option stood before its name.
        Command::Pgbench { .. } => {
            Err(CommandError::new("cannot run pgbench with options of pgdyno before its name")
                .with_help("write pgbench's options behind it: `pgdyno pgbench --help`"))
        }
        Command::EmulatedDisk => emulated_disk::run(),
        Command::Worker(options) => worker::run(&options),
        Command::HostRun => host_run::run(&context),
        Command::Completions(options) => Ok(completions::run(&options, Arguments::command())),
        #[cfg(feature = "man-pages")]
        Command::ManPages(options) => {
            commands::man_pages::run(&options, Arguments::command(), FIRST_STEPS)
        }
    }
}
