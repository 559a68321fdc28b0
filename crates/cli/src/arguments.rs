//! The command line: the commands and the options that all of them have.

use std::fmt::Write as _;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::commands::{
    archive, attach, audit, clean, compare, completions, crash, disk, disk_log, doctor, export,
    fsync, import, list, load, new, noise, pgbench, recipes, replay, report, rm, run, serve, show,
    stop, store, verify, worker,
};
use crate::parts::LONG_VERSION;

/// A dynamometer for PostgreSQL: how fast is it on this storage stack, and does the stack keep what
/// it acknowledged?
#[derive(Debug, Parser)]
#[command(
    name = "pgdyno",
    version,
    long_version = LONG_VERSION.as_str(),
    max_term_width = 100,
    after_help = AFTER_HELP
)]
pub(crate) struct Arguments {
    /// None: say what to type first.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    /// Print no progress and no hints. Errors are still printed
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Print more: all notes of a report; for `doctor` also the checks that found nothing wrong
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
}

/// The text below the options in the help. Every man page has the exit status.
const AFTER_HELP: &str = "\
Exit status:
  0    done
  1    error, or standard output could not be written
  2    a trial failed, the others are stored; of `pgbench`: clients gave up; of `replay`: sessions
       were lost or not connected
  3    a gate of `--fail-if` or `--fail-unless` was exceeded, `audit` found something serious, or
       `verify` found damage
  4    a crash test FAILs
  5    the data are not enough to decide a gate or a crash test
  130  interrupted
  141  the reader of standard output went away, as in `| head`

Names of runs:
  latest  the newest run. The beginning of an id is enough if only one run has it";

/// The headings of the commands in `--help`, each with the first command below it.
const HEADINGS: &[(&str, &str)] = &[
    ("run", "Measure"),
    ("recipes", "Write an experiment"),
    ("list", "Read results"),
    ("doctor", "Look at a machine and its disks"),
    ("crash", "Crash a server"),
    ("audit", "Check what others measured"),
    ("verify", "Keep the store, and tidy up"),
    ("completions", "Help"),
];

impl Arguments {
    /// Reads the command line.
    ///
    /// # Errors
    /// It is not understood, or asks for help or the version.
    pub(crate) fn read() -> Result<Self, clap::Error> {
        let mut command = with_headings(Self::command());
        let mut matches = command.try_get_matches_from_mut(std::env::args_os())?;
        Self::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
    }
}

/// Has the help of `command` list its commands below [`HEADINGS`], each with the begin of its
/// description.
fn with_headings(command: clap::Command) -> clap::Command {
    let mut list = String::new();
    for listed in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        let name = listed.get_name();
        if let Some((_, heading)) = HEADINGS.iter().find(|(first, _)| *first == name) {
            let _ = write!(list, "\n{heading}:\n");
        }
        let about = listed.get_about().map(ToString::to_string).unwrap_or_default();
        let begin = about.split([':', ';', '.', '(']).next().unwrap_or_default().trim_end();
        let _ = writeln!(list, "  {name:<12} {begin}");
    }
    // clap makes `help` itself.
    list.push_str("  help         Print the help of a command\n");
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{list}\n\
         `pgdyno COMMAND --help` tells a command's options.\n\nOptions:\n{{options}}{{after-help}}"
    ))
}

/// Text that `pgdyno` prints without a command.
pub(crate) const FIRST_STEPS: &str = "\
pgdyno measures how fast PostgreSQL is on a storage stack, and whether that stack keeps what it
acknowledged. Some first steps; none needs root, and the first three no server of yours:

  pgdyno run quickstart            what does waiting for the disk at commit cost? (two minutes)
  pgdyno doctor /mnt/disk          is this machine, and the storage under a folder, fit to measure?
  pgdyno fsync /mnt/disk           how often can this disk make a commit durable?
  pgdyno pgbench -c 8 -T 60 mydb   pgbench's options, scripts and report
  pgdyno new                       write an experiment of your own, from a few questions

`pgdyno recipes` lists experiments for usual questions, `pgdyno --help` all commands.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run an experiment: measure, store the results and write a report
    Run(run::RunArgs),
    /// Watch a run of another process until it ends
    Attach(attach::AttachArgs),
    /// End a run that works after the trial in progress. `run --resume` goes on with it
    Stop(stop::StopArgs),
    /// Run pgbench's scripts, with pgbench's options and report (`pgdyno pgbench --help`)
    #[command(disable_help_flag = true, after_help = pgbench::AFTER_HELP)]
    Pgbench {
        /// The arguments for pgbench
        #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Load a workload's tables into a database over several connections. An interrupted load can
    /// be resumed
    #[command(disable_help_flag = true)]
    Load(load::LoadArgs),
    /// Replay the statements of a csvlog or jsonlog on a server, each when it is due
    Replay(replay::ReplayArgs),
    /// Capture the load of a server of yours as a workload that holds none of its data
    #[cfg(feature = "capture")]
    Capture(crate::commands::capture::CaptureArgs),
    /// Replay a captured workload on another server, and compare what the two servers did
    #[cfg(feature = "capture")]
    Fidelity(crate::commands::fidelity::FidelityArgs),
    /// List the built-in experiments, or print one
    Recipes(recipes::RecipesArgs),
    /// Write an experiment file from a few questions, or from options
    New(new::NewArgs),
    /// Print the JSON Schema of experiment files, by which editors complete and check them
    #[command(after_help = "\
Examples:
  pgdyno schema  Print the schema; editors read it from a file

See also: pgdyno-new(1)")]
    Schema,
    /// List the runs, probes, crash tests and imported runs in the store
    List(list::ListArgs),
    /// Show the results of one run, probe, crash test or import
    Show(show::ShowArgs),
    /// Compare two runs or two treatments, and fail if a change is too large
    Compare(compare::CompareArgs),
    /// Write a stored result as a single HTML file that needs no network
    Report(report::ReportArgs),
    /// Serve the store to a browser: runs, histories, comparisons, and runs as they work
    Serve(serve::ServeArgs),
    /// Export one run for other programs: tables, histograms
    Export(export::ExportArgs),
    /// Show where the noise of this store's hosts lives: seconds, trials, runs, days; and how small
    /// a difference can be told beside it
    Noise(noise::NoiseArgs),
    /// Examine this machine: PostgreSQL, privileges, the storage under a directory, missing
    /// programs, and settings to change
    Doctor(doctor::DoctorArgs),
    /// Measure how fast a directory's storage makes data durable: pg_test_fsync's job, with
    /// percentiles
    Fsync(fsync::FsyncArgs),
    /// Measure a disk's raw curves: sequential by position, random by queue depth, mixed
    Disk(disk::DiskArgs),
    /// List the filesystems that pgdyno supports, and whether this machine can make them
    Filesystems,
    /// Crash a server under load and check that it kept every commit that it acknowledged
    #[command(after_help = crash::AFTER_HELP)]
    Crash(Box<crash::CrashArgs>),
    /// Print the log of an emulated disk: every write, discard and flush in order
    DiskLog(disk_log::DiskLogArgs),
    /// Check the figures of benchmark reports that others wrote: pgbench's output, pg_test_fsync's,
    /// tables of tps, settings
    Audit(audit::AuditArgs),
    /// Check the store for damage: the file, and a checksum of every row
    Verify(verify::VerifyArgs),
    /// Remove runs, probes, crash tests or imports from the store
    Rm(rm::RmArgs),
    /// Write runs, probes, crash tests or imports whole into a store of their own: an archive
    Archive(archive::ArchiveArgs),
    /// Take what an archive or another store holds into the store
    Import(import::ImportArgs),
    /// Show what takes the room in the store, thin old runs, and merge stores
    #[command(subcommand)]
    Store(store::Command),
    /// Remove what a killed pgdyno left behind: clusters, filesystems, devices' settings
    Clean(clean::CleanArgs),
    /// Print the completions of a shell, to be put where it looks for them
    Completions(completions::CompletionsArgs),
    /// Write the man pages that packages ship
    #[cfg(feature = "man-pages")]
    #[command(hide = true)]
    ManPages(crate::commands::man_pages::ManPagesArgs),
    /// Serve an emulated disk. pgdyno starts this command itself
    #[command(hide = true)]
    EmulatedDisk,
    /// Offer a share of a load. pgdyno or a scheduler starts this command
    #[command(hide = true)]
    Worker(worker::WorkerArgs),
    /// Run an experiment for `pgdyno run --hosts` elsewhere, which starts this command itself
    #[command(hide = true)]
    HostRun,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn the_help_has_every_heading_and_no_line_that_is_too_wide() {
        let help = with_headings(Arguments::command()).render_help().to_string();
        let wide = help.lines().find(|line| line.chars().count() > 100);
        assert!(wide.is_none() && !help.contains("  run          \n"), "{help}");
        for (first, heading) in HEADINGS {
            assert!(help.contains(&format!("\n{heading}:\n  {first} ")), "{heading}");
        }
    }
}
