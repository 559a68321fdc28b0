//! `pgdyno recipes`: the built-in experiments.

use clap::{Args, Subcommand};
use pgdyno_experiment::recipes;

use crate::error::CommandError;
use crate::exit_status::ExitStatus;
use crate::output::print;

#[derive(Args, Debug)]
pub(crate) struct Options {
    #[command(subcommand)]
    pub(crate) action: Option<Action>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Print a recipe's experiment file, to copy and change
    Show {
        /// The recipe's name
        name: String,
    },
}

/// Prints one recipe, or a summary of each.
pub(crate) fn run(options: &Options) -> Result<ExitStatus, CommandError> {
    match &options.action {
        Some(Action::Show { name }) => print(&recipes::source(name)?.text),
        None => {
            for recipe in recipes::all() {
                print(&pgdyno_lab::summary(&recipe)?);
            }
            print(
                "\n`pgdyno recipes show NAME` prints one to copy and change; `pgdyno run NAME --size SIZE --dry-run` tells what it would do.",
            );
        }
    }
    Ok(ExitStatus::Success)
}
