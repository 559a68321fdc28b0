//! `pgdyno recipes`: the built-in experiments.

use std::collections::BTreeSet;

use clap::{Args, Subcommand};
use pgdyno_lab::{file, recipes};

use crate::error::CommandError;
use crate::exit_status::ExitStatus;
use crate::output::print;
use crate::suggestions::Suggestions;

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
        #[arg(value_parser = Suggestions(recipe_names), hide_possible_values = true)]
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
                "\n`pgdyno recipes show NAME` prints one to copy and change; \
                 `pgdyno run NAME --size SIZE --dry-run` tells what it would do.",
            );
        }
    }
    Ok(ExitStatus::Success)
}

/// Returns the names of all recipes.
pub(crate) fn recipe_names() -> Vec<String> {
    recipes::all().into_iter().map(|recipe| recipe.name).collect()
}

/// Returns the names of the sizes that recipes have.
pub(crate) fn size_names() -> Vec<String> {
    let sizes = recipes::all().into_iter().flat_map(|it| file::sizes(&it).unwrap_or_default());
    sizes.map(|size| size.name).collect::<BTreeSet<_>>().into_iter().collect()
}
