//! Options of `pgdyno run`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use pgdyno_experiment::file::{self, Override, Source};
use pgdyno_experiment::{ResolvedExperiment, recipes};
use pgdyno_lab::Wipe;
use pgdyno_provision::ThisHost;

use crate::commands::recipes::{recipe_names, size_names};
use crate::error::CommandError;
use crate::metrics::parse_address;
use crate::progress::ProgressOption;
use crate::shared_options::{StoreOption, TrustOption};
use crate::suggestions::{RUNS, Suggestions};

#[derive(Args, Debug)]
#[command(after_help = "\
Environment:
  PG_CONFIG     The pg_config of the PostgreSQL to use
  PGDYNO_MAVEN  The address of a mirror for builds of PostgreSQL
  NO_COLOR, CLICOLOR, CLICOLOR_FORCE, TERM
                Whether progress on a terminal has colours; on TERM=dumb it is lines

Files:
  $XDG_DATA_HOME/pgdyno/clusters/, as root /var/lib/pgdyno/
                Clusters while a run lasts, if the experiment names no directory
  $XDG_CACHE_HOME/pgdyno/
                Fetched builds of PostgreSQL. XDG_CACHE_HOME is ~/.cache unless it is set
  $XDG_DATA_HOME/pgdyno/store.sqlite3.lock
                An empty file. A run that works holds a lock on a byte of it
  $XDG_DATA_HOME/pgdyno/store.sqlite3.live/
                Live files of runs that work, and logs of detached runs, beside the store

Examples:
  pgdyno run quickstart                  Run a recipe in a folder of pgdyno's own
  pgdyno run group-commit --size quick --set storage.disk.directory=/mnt/disk
                                         Run its quick size on the storage under /mnt/disk
  pgdyno run mine.toml --detach          Go on without the terminal, until `pgdyno stop latest`
  pgdyno run mine.toml --dry-run         Print every trial and every change to the host
  pgdyno run quickstart --progress json  Print what the run does as one JSON object a line
  pgdyno run --resume latest             Execute the trials that an interrupted run left

See also: pgdyno-recipes(1), pgdyno-show(1), pgdyno-compare(1), pgdyno-clean(1)")]
pub(crate) struct RunArgs {
    /// A recipe's name or an experiment file
    #[arg(
        value_name = "RECIPE|FILE",
        value_parser = Suggestions(recipe_names),
        hide_possible_values = true,
        required_unless_present = "resume",
        conflicts_with = "resume"
    )]
    pub(crate) experiment: Option<String>,
    /// Set any key of the experiment file: `--set load.duration=2s --set factors.clients=[1,16]`.
    /// With `--resume`, only `experiment.repeats` can be set, and only to a larger number
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Use one of the sizes that the recipe or file defines (see `pgdyno recipes`). `--set` is
    /// applied after it
    #[arg(
        long,
        value_name = "SIZE",
        value_parser = Suggestions(size_names),
        hide_possible_values = true,
        conflicts_with = "resume"
    )]
    pub(crate) size: Option<String>,
    /// Print the plan and change nothing: every trial in order, every step that would change the
    /// host, the time and the space that it takes
    #[arg(long, conflicts_with = "resume")]
    pub(crate) dry_run: bool,
    /// Resume an interrupted run: execute its unfinished trials. With `--set experiment.repeats=N`
    /// also add repeats
    #[arg(long, value_name = "RUN", value_parser = RUNS, hide_possible_values = true)]
    pub(crate) resume: Option<String>,
    /// Measure an external server: a URI or `key=value` words. Give its password in PGPASSWORD or
    /// `.pgpass`. Several servers, `--dsn base:=DSN --dsn head:=DSN`, become the levels of a factor
    /// `server`
    #[arg(long, value_name = "[NAME:=]DSN")]
    pub(crate) dsn: Vec<String>,
    /// Offer the load from several processes (`local:NUM`), hosts (`ssh:HOST,HOST*WEIGHT`), or
    /// nodes of a cluster (`slurm:NUM`, `ray:workers=NUM`): short for `--set generators.launch=…`
    #[arg(long, value_name = "GENERATORS", conflicts_with = "resume")]
    pub(crate) generators: Option<String>,
    /// Run the whole experiment on each of these hosts (`ssh:HOST,HOST`), or nodes of a cluster
    /// (`slurm:NODE,NODE`, `ray:NODE,NODE`), at once, and take their runs into the store here. The
    /// same command resumes hosts that were interrupted
    #[arg(
        long,
        value_name = "HOSTS",
        conflicts_with_all = ["resume", "dsn", "detach", "metrics", "notify", "output"]
    )]
    pub(crate) hosts: Option<String>,
    /// Store the serial numbers of disks. By default only their hashes are stored
    #[arg(long, conflicts_with = "resume")]
    pub(crate) keep_serials: bool,
    /// Allow DEVICE to be erased. May be repeated
    #[arg(long, value_name = "DEVICE")]
    pub(crate) wipe: Vec<PathBuf>,
    /// Erase a DEVICE of `--wipe` even if it holds a filesystem or a partition table
    #[arg(long, requires = "wipe")]
    pub(crate) overwrite_signature: bool,
    #[command(flatten)]
    pub(crate) trust: TrustOption,
    /// Write the HTML report to FILE; `-` writes it to standard output instead of the table
    /// [default: `reports/RUN.html` beside the store]
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Go on without this terminal: return once the run is in the store. `pgdyno attach` shows it,
    /// `pgdyno stop` ends it
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) detach: bool,
    /// The process that `--detach` starts
    #[arg(long, hide = true)]
    pub(crate) detached: bool,
    /// Run COMMAND in a shell when the run is over, with how it ended as JSON on its standard input
    #[arg(long, value_name = "COMMAND", conflicts_with = "dry_run")]
    pub(crate) notify: Option<String>,
    /// Serve metrics of the run for Prometheus at ADDRESS while it works: a port of the loopback
    /// interface, or IP:PORT. Whoever reaches the address can read them
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address, conflicts_with = "dry_run")]
    pub(crate) metrics: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) progress: ProgressOption,
    #[command(flatten)]
    pub(crate) store: StoreOption,
}

impl RunArgs {
    pub(super) fn wipe(&self) -> Wipe {
        Wipe { devices: self.wipe.clone(), overwrite_signature: self.overwrite_signature }
    }

    /// Returns the values of `--set`.
    pub(super) fn set(&self) -> Result<Vec<Override>, CommandError> {
        Ok(self.set.iter().map(|given| Override::parse(given)).collect::<Result<_, _>>()?)
    }

    /// Returns the values of `--set`, and those that other options stand for.
    pub(super) fn set_by_options(&self) -> Result<Vec<Override>, CommandError> {
        let mut overrides = self.set()?;
        if let Some(generators) = &self.generators {
            overrides.push(Override::parse(&format!("generators.launch={generators}"))?);
        }
        if self.keep_serials {
            overrides.push(Override::parse("telemetry.keep_serials=true")?);
        }
        Ok(overrides)
    }

    /// Returns the values of `--size` in `source`.
    pub(super) fn overrides_of_size(&self, source: &Source) -> Result<Vec<Override>, CommandError> {
        let size = self.size.as_ref().map(|name| file::size(source, name)).transpose()?;
        Ok(size.map(|size| size.overrides).unwrap_or_default())
    }

    /// Reads the experiment and applies the options to it. Returns the recipe's name too, if the
    /// experiment is one.
    pub(super) fn prepare(&self) -> Result<(ResolvedExperiment, Option<String>), CommandError> {
        let source = recipes::source(self.name())?;
        let recipe = recipes::name_of(&source).map(str::to_owned);
        let mut overrides = self.overrides_of_size(&source)?;
        overrides.extend(self.set_by_options()?);
        overrides.extend(Override::servers(&self.dsn)?);
        let resolved = ResolvedExperiment::new(source, overrides, &ThisHost)?;
        Ok((resolved.with_wipe(self.wipe(), &ThisHost)?, recipe))
    }

    /// Returns the recipe's name or the experiment's file. Empty for `--resume`.
    pub(super) fn name(&self) -> &str {
        self.experiment.as_deref().unwrap_or_default()
    }
}
