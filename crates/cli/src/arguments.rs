//! The command line: the commands and the options that all of them have.

use clap::{Parser, Subcommand};

use crate::commands::{
    audit, clean, compare, crash, disk, doctor, fsync, list, load, recipes, report, run, show,
    verify,
};

/// A dynamometer for PostgreSQL: how fast is it on this storage stack, and does the stack keep what
/// it acknowledged?
#[derive(Debug, Parser)]
#[command(name = "pgdyno", version, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Leave progress and hints out; errors stay
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Print more: all notes of a report, in `doctor` also what is fine
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
}

const EXIT_CODES: &str = "Exit codes: 0 done; 1 something in the request is wrong; 2 a trial failed (the rest is kept); \
                          3 a change is not what `--fail-if` and `--fail-unless` let through, `audit` found something serious, or `verify` found damage; 4 a crash test FAILs; \
                          5 undecided: the data do not tell what a gate or a crash test asks; 130 interrupted; \
                          141 the reader of standard output went away, as in `| head`. Where standard output takes nothing, 0 becomes 1.\nWhere a RUN is wanted, `latest` names the newest; the beginning of an id is \
                          enough where only one run has it.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run an experiment: measure, store, report
    Run(run::Options),
    /// Load a workload's tables into a database, with several connections, resumably
    #[command(disable_help_flag = true)]
    Load(load::Options),
    /// List the experiments that are built in, or show one
    Recipes(recipes::Options),
    /// List the runs, probes, crash tests and imported runs in the store
    List(list::Options),
    /// Show the results of one run, probe or crash test, or what was imported
    Show(show::Options),
    /// Write one run's report as a single HTML file that needs no network
    Report(report::Options),
    /// Check that what is stored is as it was written: the file, and a checksum of every row
    Verify(verify::Options),
    /// Compare two runs, or treatments of them, and fail where a change is too large
    Compare(compare::Options),
    /// Tell what is found here: PostgreSQL, privileges, what lies under a directory, what is
    /// missing, and what to change
    Doctor(doctor::Options),
    /// Measure how fast a directory's storage makes data durable: pg_test_fsync's job, with
    /// percentiles
    Fsync(fsync::Options),
    /// Measure a disk's raw curves: sequential by position, random by queue depth, mixed
    Disk(disk::Options),
    /// Crash a server under load and tell whether it kept what it acknowledged
    Crash(Box<crash::Options>),
    /// Check the figures of benchmark reports that others wrote: pgbench's output, pg_test_fsync's,
    /// tables of tps, settings
    Audit(audit::Options),
    /// Show and remove what a killed pgdyno left behind: clusters, filesystems, devices' settings
    Clean(clean::Options),
    /// List the filesystems that pgdyno knows, and whether this machine can make them
    Filesystems,
    /// Serve a disk that is emulated; pgdyno starts this itself
    #[command(hide = true)]
    EmulatedDisk,
    /// Run pgbench's scripts, with pgbench's options and report (`pgdyno pgbench --help`)
    #[command(disable_help_flag = true)]
    Pgbench {
        /// pgbench's arguments
        #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_consistent() {
        super::Arguments::command().debug_assert();
    }
}
