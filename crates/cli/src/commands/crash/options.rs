//! The options of `pgdyno crash`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use pgdyno_lab::Span;

use crate::shared_options::{StoreOption, TrustOption, parse_duration};

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Options {
    #[command(subcommand)]
    pub(crate) action: Option<Action>,
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
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) load: Option<Span>,
    /// How long the server may take to come back [default: 2m]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
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

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Keep the ledger of a machine whose plug is to be pulled, until Ctrl-C
    Witness(WitnessOptions),
}

#[derive(Args, Debug)]
pub(crate) struct WitnessOptions {
    /// Where to listen; what is said is authenticated by the secret, and not encrypted
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7433")]
    pub(crate) listen: SocketAddr,
    /// Where ledgers are kept [default: $XDG_DATA_HOME/pgdyno/witness]
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// The file with the secret that both sides share, readable by its owner alone [default:
    /// $PGDYNO_WITNESS_SECRET, else a new one, which is printed]
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
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
