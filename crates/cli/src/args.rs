//! What can be asked on the command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// A dynamometer for PostgreSQL: how fast is it on this storage stack, and does the stack keep what it acknowledged?
#[derive(Debug, Parser)]
#[command(name = "pgdyno", version, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 done; 1 something in the request is wrong; 2 a trial failed (the rest is kept); \
                          130 interrupted.\nWhere a RUN is wanted, `latest` names the newest; the beginning of an id is \
                          enough where only one run has it.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run an experiment: measure, store, report
    Run(Run),
    /// List the experiments that are built in, or show one
    Recipes(Recipes),
    /// List the runs in the store
    List(List),
    /// Show one run's results
    Show(Show),
    /// Write one run's report as a single HTML file that needs no network
    Report(Report),
    /// Tell what is found here: PostgreSQL, privileges, the disk under a directory, and what is missing
    Doctor(Doctor),
    /// Run pgbench's scripts, with pgbench's options and report (`pgdyno pgbench --help`)
    #[command(disable_help_flag = true)]
    Pgbench {
        /// pgbench's arguments
        #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

#[derive(Args, Debug)]
pub(crate) struct Run {
    /// A recipe's name or an experiment file
    #[arg(value_name = "RECIPE|FILE", required_unless_present = "resume", conflicts_with = "resume")]
    pub(crate) experiment: Option<String>,
    /// Set any key of the experiment file: `--set load.duration=2s --set factors.clients=[1,16]`
    #[arg(long = "set", value_name = "KEY=VALUE", conflicts_with = "resume")]
    pub(crate) set: Vec<String>,
    /// Print the plan: every trial in order, every step that would touch the host, the time and room it takes
    #[arg(long, conflicts_with = "resume")]
    pub(crate) dry_run: bool,
    /// Go on with an interrupted run: the trials that are not complete
    #[arg(long, value_name = "RUN")]
    pub(crate) resume: Option<String>,
    /// Drive a server that pgdyno does not own: a URI or `key=value` words. Give its password in PGPASSWORD
    #[arg(long, value_name = "DSN")]
    pub(crate) dsn: Option<String>,
    /// Where to write the HTML report [default: beside the store]
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StoreOption,
}

#[derive(Args, Debug)]
pub(crate) struct StoreOption {
    /// The file that keeps all runs [default: $XDG_DATA_HOME/pgdyno/store.sqlite3]
    #[arg(long = "store", value_name = "FILE")]
    pub(crate) path: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct Recipes {
    #[command(subcommand)]
    pub(crate) what: Option<RecipesWhat>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RecipesWhat {
    /// Print a recipe's experiment file, to copy and change
    Show {
        /// The recipe's name
        name: String,
    },
}

#[derive(Args, Debug)]
pub(crate) struct List {
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreOption,
}

#[derive(Args, Debug)]
pub(crate) struct Show {
    /// The run
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreOption,
}

#[derive(Args, Debug)]
pub(crate) struct Report {
    /// The run
    #[arg(value_name = "RUN")]
    pub(crate) run: String,
    /// Where to write it
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) store: StoreOption,
}

#[derive(Args, Debug)]
pub(crate) struct Doctor {
    /// The directory to look under [default: where pgdyno would put its clusters]
    #[arg(value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_consistent() {
        super::Arguments::command().debug_assert();
    }
}
