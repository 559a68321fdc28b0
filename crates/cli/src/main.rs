//! pgdyno's command line: arguments in, tables and exit codes out.

mod args;
mod audit;
mod clean;
mod commands;
mod crash;
mod doctor;
mod list;
mod load;
#[cfg(test)]
mod named_options;
mod output;
mod pgbench;
mod probe;
mod progress;
mod report;
mod signals;
mod verify;

use std::process::ExitCode;

use clap::Parser;

use args::{Arguments, Command};
use output::Failure;

/// How a command ended well, as an exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    /// 0: all that was asked is done.
    Whole,
    /// 2: a trial failed; the rest is kept.
    TrialFailed,
    /// 3: all that was asked is done; a gate is exceeded, `audit` found something serious, or
    /// `verify` damage.
    Exceeded,
    /// 4: a server did not keep what it promised.
    PromiseBroken,
    /// 5: the data do not tell whether it did, or whether a change is one that a gate lets through.
    Undecided,
    /// 130: a signal ended it; what was done is kept.
    Interrupted,
}

fn main() -> ExitCode {
    // pgbench's arguments are not clap's to read.
    if let Some((arguments, called_as)) = pgbench::arguments(std::env::args_os()) {
        return pgbench::run(&arguments, called_as);
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(usage) => return output::exit(output::print_usage(&usage)),
    };
    output::set_verbosity(arguments.quiet, arguments.verbose);
    // Before signals are taken: whoever ends this process by one means it.
    if matches!(arguments.command, Command::EmulatedDisk) {
        return match pgdyno_lab::serve_emulated_disk() {
            Ok(()) => ExitCode::SUCCESS,
            Err(e) => ExitCode::from(output::complain(&Failure::of(&e, None))),
        };
    }
    let stop = match signals::take() {
        Ok(stop) => stop,
        Err(failure) => return ExitCode::from(output::complain(&failure)),
    };
    let done = match arguments.command {
        Command::Run(options) => commands::run(&options, &stop),
        Command::Load(options) => load::load(&options, &stop),
        Command::Recipes(options) => commands::recipes(&options),
        Command::List(options) => list::list(&options),
        Command::Show(options) => commands::show(&options),
        Command::Verify(options) => verify::verify(&options),
        Command::Report(options) => report::report(&options),
        Command::Compare(options) => commands::compare(&options),
        Command::Doctor(options) => commands::doctor(&options),
        Command::Crash(options) => crash::crash(&options, &stop),
        Command::Audit(options) => audit::audit(&options),
        Command::Clean(options) => clean::clean(&options, &stop),
        Command::Filesystems => Ok(clean::filesystems()),
        Command::Fsync(options) => probe::fsync(&options, &stop),
        Command::Disk(options) => probe::disk(&options, &stop),
        // Its arguments were taken before clap read them, unless an option stood before its name.
        Command::Pgbench { .. } => Err(Failure::helped(
            "cannot run pgbench with options of pgdyno before its name",
            "write pgbench's options behind it: `pgdyno pgbench --help`",
        )),
        Command::EmulatedDisk => unreachable!("it was served before signals were taken"),
    };
    output::exit(match done {
        Ok(Done::Whole) => 0,
        Ok(Done::TrialFailed) => 2,
        Ok(Done::Exceeded) => 3,
        Ok(Done::PromiseBroken) => 4,
        Ok(Done::Undecided) => 5,
        Ok(Done::Interrupted) => 130,
        Err(failure) => {
            let status = output::complain(&failure);
            // What fails after a signal fails because of it.
            if signals::came() { 130 } else { status }
        }
    })
}
