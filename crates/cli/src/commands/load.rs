//! `pgdyno load`: a workload's tables into a database.

use std::num::NonZeroU32;

use clap::{Args, ValueEnum};
use pgdyno_lab::load::{self, ConnectOptions, Existing, Load, Loaded};
use pgdyno_model::experiment::Loading;

use crate::context::Context;
use crate::error::{CommandError, unless_interrupted};
use crate::exit_status::ExitStatus;
use crate::output::print;
use crate::progress::ProgressOption;

#[derive(Args, Debug)]
#[command(after_help = "\
Environment:
  PGHOST, PGPORT, PGUSER, PGPASSWORD, …
            Connections to servers of yours, as libpq has them

Examples:
  pgdyno load tpcb-like -s 100 -d bench  Load 10 million accounts

See also: pgdyno-run(1), pgdyno-pgbench(1)")]
pub(crate) struct LoadArgs {
    /// A built-in workload's name, or a folder (with a slash in its name)
    #[arg(value_name = "WORKLOAD")]
    pub(crate) workload: String,
    /// Size of the data set, in the workload's unit
    #[arg(short = 's', long, default_value = "1")]
    pub(crate) scale: NonZeroU32,
    /// Number of connections that load in parallel [default: one for each core]
    #[arg(short = 'j', long)]
    pub(crate) jobs: Option<NonZeroU32>,
    /// Number of partitions of each table that the workload can partition
    #[arg(long, value_name = "NUM", default_value = "0")]
    pub(crate) partitions: u32,
    /// How to load a table [default: chosen by the number of cores]
    #[arg(long, value_enum)]
    pub(crate) strategy: Option<Strategy>,
    /// Share of blanks in filler columns. 100 is what pgbench writes; 0 hardly compresses
    #[arg(
        long,
        value_name = "PERCENT",
        default_value = "100",
        value_parser = clap::value_parser!(u8).range(..=100)
    )]
    pub(crate) filler_compress_percentage: u8,
    /// Seed for generated rows. Output does not depend on `--jobs`
    #[arg(long, default_value = "1")]
    pub(crate) seed: u64,
    /// Drop existing tables of these names first, if pgdyno made them
    #[arg(long)]
    pub(crate) replace: bool,
    /// Host of the server, or the directory of its socket
    #[arg(short = 'h', long, value_name = "HOSTNAME")]
    pub(crate) host: Option<String>,
    /// Port of the server
    #[arg(short = 'p', long, value_name = "PORT")]
    pub(crate) port: Option<String>,
    /// Role to connect as
    #[arg(short = 'U', long, value_name = "USERNAME")]
    pub(crate) username: Option<String>,
    /// A database's name, a URI or `keyword=value` words. Give a password in PGPASSWORD or
    /// `.pgpass`
    #[arg(short = 'd', long, value_name = "DBNAME|DSN")]
    pub(crate) dbname: Option<String>,
    #[command(flatten)]
    pub(crate) progress: ProgressOption,
    /// Print help
    #[arg(long, action = clap::ArgAction::Help)]
    pub(crate) help: Option<bool>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Strategy {
    /// One COPY with FREEZE: each row is written once. After an interruption the table is loaded
    /// again from its beginning
    Freeze,
    /// Chunks over all connections, without FREEZE. After an interruption only missing chunks are
    /// loaded
    Chunks,
}

/// Loads the tables, and prints how fast.
pub(crate) fn run(options: &LoadArgs, context: &Context) -> Result<ExitStatus, CommandError> {
    let load = load_of(options);
    let loaded = context
        .with_progress(options.progress, |progress| load::load(&load, progress, context.stop()));
    let said = "interrupted; the same command goes on from what is loaded";
    let Some(loaded) = unless_interrupted(loaded, said)? else {
        return Ok(ExitStatus::Interrupted);
    };
    print_result(loaded);
    Ok(ExitStatus::Success)
}

fn load_of(options: &LoadArgs) -> Load {
    Load {
        workload: options.workload.clone(),
        scale: options.scale,
        seed: options.seed,
        loading: Loading {
            filler_compress_percentage: options.filler_compress_percentage,
            partitions: options.partitions,
            jobs: options.jobs,
            ..Loading::default()
        },
        strategy: options.strategy.map(|strategy| match strategy {
            Strategy::Freeze => load::LoadStrategy::Freeze,
            Strategy::Chunks => load::LoadStrategy::Chunks,
        }),
        chunk: None,
        existing: if options.replace { Existing::ReplaceOurs } else { Existing::Keep },
        connect: ConnectOptions {
            dsn_or_dbname: options.dbname.clone(),
            host: options.host.clone(),
            port: options.port.clone(),
            user: options.username.clone(),
            password: None,
            fallback_application_name: Some("pgdyno".into()),
        },
    }
}

fn print_result(loaded: Loaded) {
    let seconds = loaded.took.as_secs_f64().max(0.001);
    let (rows_per_s, megabytes_per_s) =
        (loaded.rows as f64 / seconds, loaded.bytes as f64 / 1e6 / seconds);
    print(&format!(
        "{}: {} rows in {seconds:.2} s, keys and VACUUM included ({rows_per_s:.0} rows/s, \
         {megabytes_per_s:.1} MB/s on the wire)",
        loaded.what, loaded.rows
    ));
    if let Some((what, share)) = loaded.limit {
        let what = match what.as_str() {
            "running" => "computing: its CPU was the limit".to_owned(),
            "Client:ClientRead" => {
                "waiting for rows: pgdyno or the connection was the limit".to_owned()
            }
            other => format!("waiting for {other}"),
        };
        print(&format!(
            "the server was seen most often {what} ({:.0}% of the looks)",
            share * 100.0
        ));
    }
}
