//! What can be asked on the command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use pgdyno_lab::{Bytes, Span};

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
    Run(Run),
    /// Load a workload's tables into a database, with several connections, resumably
    #[command(disable_help_flag = true)]
    Load(Load),
    /// List the experiments that are built in, or show one
    Recipes(Recipes),
    /// List the runs, probes, crash tests and imported runs in the store
    List(List),
    /// Show the results of one run, probe or crash test, or what was imported
    Show(Show),
    /// Write one run's report as a single HTML file that needs no network
    Report(Report),
    /// Check that what is stored is as it was written: the file, and a checksum of every row
    Verify(crate::verify::Verify),
    /// Compare two runs, or treatments of them, and fail where a change is too large
    Compare(Compare),
    /// Tell what is found here: PostgreSQL, privileges, what lies under a directory, what is
    /// missing, and what to change
    Doctor(Doctor),
    /// Measure how fast a directory's storage makes data durable: pg_test_fsync's job, with
    /// percentiles
    Fsync(Fsync),
    /// Measure a disk's raw curves: sequential by position, random by queue depth, mixed
    Disk(Disk),
    /// Crash a server under load and tell whether it kept what it acknowledged
    Crash(Box<Crash>),
    /// Check the figures of benchmark reports that others wrote: pgbench's output, pg_test_fsync's,
    /// tables of tps, settings
    Audit(Audit),
    /// Show and remove what a killed pgdyno left behind: clusters, filesystems, devices' settings
    Clean(Clean),
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

#[derive(Args, Debug)]
pub(crate) struct Run {
    /// A recipe's name or an experiment file
    #[arg(
        value_name = "RECIPE|FILE",
        required_unless_present = "resume",
        conflicts_with = "resume"
    )]
    pub(crate) experiment: Option<String>,
    /// Set any key of the experiment file: `--set load.duration=2s --set factors.clients=[1,16]`;
    /// with `--resume` only `experiment.repeats`, to more
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// One of the sizes that the recipe or file describes (`pgdyno recipes`); `--set` changes it
    /// further
    #[arg(long, value_name = "SIZE", conflicts_with = "resume")]
    pub(crate) size: Option<String>,
    /// Print the plan: every trial in order, every step that would touch the host, the time and
    /// room it takes
    #[arg(long, conflicts_with = "resume")]
    pub(crate) dry_run: bool,
    /// Go on with a run: the trials that are not complete, and more repeats with
    /// `--set experiment.repeats=N`
    #[arg(long, value_name = "RUN")]
    pub(crate) resume: Option<String>,
    /// Drive a server that pgdyno does not own: a URI or `key=value` words. Give its password in
    /// PGPASSWORD or `.pgpass`. Several, `--dsn base:=DSN --dsn head:=DSN`, are the levels of a
    /// factor `server`
    #[arg(long, value_name = "[NAME:=]DSN")]
    pub(crate) dsn: Vec<String>,
    /// Store disks' serial numbers as they are, not as hashes
    #[arg(long, conflicts_with = "resume")]
    pub(crate) keep_serials: bool,
    /// Give up what is on a device that a storage of the experiment is made on; once for each
    #[arg(long, value_name = "DEVICE")]
    pub(crate) wipe: Vec<PathBuf>,
    /// Also where it holds a filesystem or a partition table
    #[arg(long, requires = "wipe")]
    pub(crate) overwrite_signature: bool,
    #[command(flatten)]
    pub(crate) trust: TrustOption,
    /// Where to write the HTML report; `-` is standard output, in place of the table [default:
    /// `reports/RUN.html` beside the store]
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StoreOption,
}

#[derive(Args, Debug)]
pub(crate) struct TrustOption {
    /// As root: run commands of this experiment or script, or go on with a run of this store,
    /// although another account may change it; a folder stands for all below it. May be repeated
    #[arg(long = "trust", value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct Load {
    /// A built-in workload's name, or a folder (with a slash in its name)
    #[arg(value_name = "WORKLOAD")]
    pub(crate) workload: String,
    /// The data set's size in the workload's unit
    #[arg(short = 's', long, default_value = "1")]
    pub(crate) scale: std::num::NonZeroU32,
    /// Connections that load side by side [default: one for each core]
    #[arg(short = 'j', long)]
    pub(crate) jobs: Option<std::num::NonZeroU32>,
    /// Partitions of the tables that the workload lets be partitioned
    #[arg(long, value_name = "NUM", default_value = "0")]
    pub(crate) partitions: u32,
    /// How a table is loaded [default: what suits the cores]
    #[arg(long, value_enum)]
    pub(crate) strategy: Option<Strategy>,
    /// How much of every filler is blanks: 100 as pgbench has it, 0 hardly shrinks
    #[arg(long, value_name = "PERCENT", default_value = "100", value_parser = clap::value_parser!(u8).range(..=100))]
    pub(crate) filler_compress_percentage: u8,
    /// Of the values that are drawn: the same seed gives the same rows, whatever the number of jobs
    #[arg(long, default_value = "1")]
    pub(crate) seed: u64,
    /// Drop tables of these names first, if pgdyno made them
    #[arg(long)]
    pub(crate) replace: bool,
    /// The server's host, or the directory of its socket
    #[arg(short = 'h', long, value_name = "HOSTNAME")]
    pub(crate) host: Option<String>,
    /// Its port
    #[arg(short = 'p', long, value_name = "PORT")]
    pub(crate) port: Option<String>,
    /// The role
    #[arg(short = 'U', long, value_name = "USERNAME")]
    pub(crate) username: Option<String>,
    /// A database's name, a URI or `keyword=value` words. Give a password in PGPASSWORD or
    /// `.pgpass`
    #[arg(short = 'd', long, value_name = "DBNAME|DSN")]
    pub(crate) dbname: Option<String>,
    /// Print help
    #[arg(long, action = clap::ArgAction::Help)]
    pub(crate) help: Option<bool>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Strategy {
    /// One COPY with FREEZE: rows are written once; after an interruption the table begins anew
    Freeze,
    /// Chunks over all connections, without FREEZE: what is loaded is not loaded again
    Chunks,
}

#[derive(Args, Debug)]
pub(crate) struct Clean {
    /// Only show what is left behind
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Remove the loaded clusters that runs kept for later ones (`workload.keep_template`)
    #[arg(long)]
    pub(crate) templates: bool,
    /// Remove what failed crash tests left: images of filesystems, copies of PGDATA, ledgers. Their
    /// records stay
    #[arg(long, conflicts_with = "templates")]
    pub(crate) crashes: bool,
    /// Look for marks here too
    #[arg(value_name = "DIR")]
    pub(crate) directories: Vec<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct StoreOption {
    /// The file that keeps all runs [env: PGDYNO_STORE] [default:
    /// $XDG_DATA_HOME/pgdyno/store.sqlite3]
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
    /// The probes instead of the runs (`pgdyno fsync`, `pgdyno disk`)
    #[arg(long)]
    pub(crate) probes: bool,
    /// The crash tests instead of the runs, with what is kept of failed ones
    #[arg(long, conflicts_with = "probes")]
    pub(crate) crashes: bool,
    /// What was imported from others' reports instead of the runs (`pgdyno audit`)
    #[arg(long, conflicts_with_all = ["probes", "crashes"])]
    pub(crate) imported: bool,
    #[command(flatten)]
    pub(crate) store: StoreOption,
}

#[derive(Args, Debug)]
pub(crate) struct Show {
    /// The run, the probe, the crash tests or what was imported
    #[arg(value_name = "RUN|PROBE|CRASH|IMPORT")]
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
    #[arg(value_name = "RUN", default_value = "latest")]
    pub(crate) run: String,
    /// Where to write it; `-` is standard output [default: `reports/RUN.html` beside the store]
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StoreOption,
}

#[derive(Args, Debug)]
pub(crate) struct Compare {
    /// What is compared to: a run, or `RUN:TREATMENT`, by number (`latest:2`) or levels
    /// (`latest:clients=8,storage=xfs`)
    #[arg(value_name = "RUN_A")]
    pub(crate) a: String,
    /// What is compared
    #[arg(value_name = "RUN_B")]
    pub(crate) b: String,
    /// What is compared on purpose: a factor, or what else must be equal (`kernel`, `server build`,
    /// `device`); may be repeated
    #[arg(long, value_name = "FACTOR")]
    pub(crate) by: Vec<String>,
    /// Compare although what must be equal is not
    #[arg(long)]
    pub(crate) force: bool,
    /// Exit with 3 where a change is shown to be this, with 5 where the data do not tell: "tps <
    /// -3%", "p99 > +10%"; several with commas, or repeated
    #[arg(long, value_name = "CONDITION", allow_hyphen_values = true)]
    pub(crate) fail_if: Vec<String>,
    /// Exit with 3 where a change is not shown to be this: "tps > -3%" asks for proof that nothing
    /// got worse
    #[arg(long, value_name = "CONDITION", allow_hyphen_values = true)]
    pub(crate) fail_unless: Vec<String>,
    /// Let what is undecided pass (exit code 0) or fail (3)
    #[arg(long, value_enum, value_name = "OUTCOME")]
    pub(crate) undecided: Option<Undecided>,
    /// As JSON
    #[arg(long, conflicts_with = "markdown")]
    pub(crate) json: bool,
    /// As Markdown, for a pull request
    #[arg(long)]
    pub(crate) markdown: bool,
    #[command(flatten)]
    pub(crate) store: StoreOption,
}

/// What becomes of a comparison whose gates are undecided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Undecided {
    /// Exit with 0
    Pass,
    /// Exit with 3
    Fail,
}

#[derive(Args, Debug)]
pub(crate) struct Doctor {
    /// The directory to look under [default: where pgdyno would put its clusters]
    #[arg(value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Show disks' serial numbers as they are, not as hashes
    #[arg(long)]
    pub(crate) keep_serials: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Audit {
    /// Reports: text, Markdown or HTML. Each is judged by itself
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Do not keep the figures that were recognised
    #[arg(long, conflicts_with = "path")]
    pub(crate) no_store: bool,
    #[command(flatten)]
    pub(crate) store: StoreOption,
}

#[derive(Args, Debug)]
pub(crate) struct Fsync {
    /// Where to write; 80 MB are taken and given back
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// Size of a block
    #[arg(long, value_enum, default_value = "8k")]
    pub(crate) block_size: BlockSize,
    /// How long each of 25 tests takes
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = some_time)]
    pub(crate) duration: Span,
    /// The same in seconds, as pg_test_fsync has it
    #[arg(short = 's', long, value_name = "SECS", conflicts_with = "duration", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) secs_per_test: Option<u32>,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreOption,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum BlockSize {
    #[value(name = "8k")]
    Kilobytes8,
    #[value(name = "16k")]
    Kilobytes16,
}

#[derive(Args, Debug)]
pub(crate) struct Disk {
    /// A directory, in which a file is made, written and read; or a block device, which is only
    /// read
    #[arg(value_name = "DIR|DEVICE")]
    pub(crate) target: PathBuf,
    /// The size of the file that is made in a directory
    #[arg(long, default_value = "4GiB")]
    pub(crate) size: Bytes,
    /// How long each point takes; the sequential write takes what it takes to fill the file once
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = some_time)]
    pub(crate) duration: Span,
    /// Offer pgdyno's own, simpler load although fio is installed
    #[arg(long)]
    pub(crate) builtin: bool,
    /// Print what would be done: each point with fio's arguments
    #[arg(long, conflicts_with = "json")]
    pub(crate) dry_run: bool,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreOption,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CrashWhat {
    /// Keep the ledger of a machine whose plug is to be pulled, until Ctrl-C
    Witness(Witness),
}

#[derive(Args, Debug)]
pub(crate) struct Witness {
    /// Where to listen; what is said is authenticated by the secret, and not encrypted
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7433")]
    pub(crate) listen: std::net::SocketAddr,
    /// Where ledgers are kept [default: $XDG_DATA_HOME/pgdyno/witness]
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// The file with the secret that both sides share, readable by its owner alone [default:
    /// $PGDYNO_WITNESS_SECRET, else a new one, which is printed]
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,
}

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Crash {
    #[command(subcommand)]
    pub(crate) what: Option<CrashWhat>,
    #[command(flatten)]
    pub(crate) trust: TrustOption,
    /// What is broken, joined by commas: process, immediate, backend, power, torn-write, io-error,
    /// disk-full; or plug, the only one that tests the drive itself. emulated-lie (lying-disk
    /// before) is a planted failure: every server fails on an emulated disk that lies, and that
    /// says nothing about yours
    #[arg(long, value_name = "FAULT", value_delimiter = ',', required = true)]
    pub(crate) fault: Vec<String>,
    /// Rounds of each fault
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) rounds: u32,
    /// A filesystem to make in a file of pgdyno's own (as root); without it PGDATA is a directory
    #[arg(long, value_name = "FS")]
    pub(crate) filesystem: Option<String>,
    /// Make it on a disk that pgdyno emulates, whose volatile cache a power loss empties; faults of
    /// the disk do so unasked
    #[arg(long, requires = "filesystem")]
    pub(crate) emulated: bool,
    /// Under what a disk lies or fails; one of two gets a disk of its own
    #[arg(long, value_enum, default_value = "both", requires = "filesystem")]
    pub(crate) under: Under,
    /// A mount option of it; once for each
    #[arg(long, value_name = "OPTION", requires = "filesystem")]
    pub(crate) mount: Vec<String>,
    /// The directory for PGDATA, or for the file that the filesystem is made in
    #[arg(long, value_name = "DIR")]
    pub(crate) storage: Option<PathBuf>,
    /// A setting of the server's: `--setting synchronous_commit=off`; once for each
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) setting: Vec<String>,
    /// Set any key of an experiment file, `storage.disk` being the storage: see `pgdyno run --set`
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Where all moments are drawn from: the same seed repeats every round
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Connections that offer load
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(crate) clients: u32,
    /// How long load is offered at most before a fault strikes [default: 2s]
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    pub(crate) load: Option<Span>,
    /// How long the server may take to come back [default: 2m]
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    pub(crate) recovery_limit: Option<Span>,
    /// With `--fault plug`: where the witness listens
    #[arg(long, value_name = "ADDR")]
    pub(crate) witness: Option<String>,
    /// With `--witness`: the file with the secret that both sides share, readable by its owner
    /// alone [default: $PGDYNO_WITNESS_SECRET]
    #[arg(long, value_name = "FILE", requires = "witness")]
    pub(crate) secret_file: Option<PathBuf>,
    /// Leave the positive controls out: what passes is then invalid, since nothing shows that a
    /// failure would be seen
    #[arg(long)]
    pub(crate) no_controls: bool,
    /// Print what would be done
    #[arg(long, conflicts_with = "json")]
    pub(crate) dry_run: bool,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreOption,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Under {
    /// PGDATA and pg_wal
    Both,
    /// PGDATA; pg_wal lies on an honest disk
    Data,
    /// pg_wal; PGDATA lies on an honest disk
    Wal,
}

impl Under {
    /// Its name in experiment files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Both => "both",
            Self::Data => "data",
            Self::Wal => "wal",
        }
    }
}

/// A length of time that is not zero.
fn some_time(text: &str) -> Result<Span, String> {
    let span: Span = text.parse()?;
    if span.0.is_zero() { Err("nothing can be measured in no time".into()) } else { Ok(span) }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_consistent() {
        super::Arguments::command().debug_assert();
    }
}
