//! The options of `pgdyno crash`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use pgdyno_model::crash::States;
use pgdyno_model::units::Span;

use super::judge::JudgeOptions;
use crate::duration::parse_duration;
use crate::progress::ProgressOption;
use crate::shared_options::{StoreOption, TrustOption};

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(group(ArgGroup::new("stretch").args(["filesystem", "resume"])))]
#[command(group(ArgGroup::new("states").args(["exhaustive", "resume"]).multiple(true)))]
pub(crate) struct CrashArgs {
    #[command(subcommand)]
    pub(crate) action: Option<Action>,
    #[command(flatten)]
    pub(crate) trust: TrustOption,
    /// Faults to inject, separated by commas: process, immediate, backend, power, torn-write,
    /// io-error, disk-full; or plug, the only fault that tests the drive itself. emulated-lie
    /// (formerly lying-disk) is a planted failure on an emulated disk that lies: every server fails
    /// it, so the verdict says nothing about your server
    #[arg(long, value_name = "FAULT", value_delimiter = ',', required_unless_present = "states")]
    pub(crate) fault: Vec<String>,
    /// Judge an emulated disk as a power cut could have left it during the load, in place of
    /// rounds: at every flush, then a sample of the states between two flushes
    #[arg(
        long,
        value_enum,
        value_name = "STATES",
        num_args = 0..=1,
        default_missing_value = "all",
        requires = "stretch",
        conflicts_with_all = ["fault", "rounds", "under"]
    )]
    pub(crate) exhaustive: Option<Exhaustive>,
    /// Go on with a session of `--exhaustive` that was killed, interrupted, or ended by its budget
    /// before every flush was judged. By default the newest one. Options that describe the load
    /// come from the session; `--budget` gives it more time
    #[arg(
        long,
        value_name = "SESSION",
        num_args = 0..=1,
        conflicts_with_all = [
            "fault", "rounds", "emulated", "under", "mount", "storage", "setting", "set", "seed",
            "workload", "clients", "load", "recovery_limit", "witness", "no_controls", "dry_run"
        ]
    )]
    pub(crate) resume: Option<Option<String>>,
    /// Longest time for judging states [default: until all are judged]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, requires = "states")]
    pub(crate) budget: Option<Span>,
    /// States that are judged at a time, each on a disk of its own
    #[arg(long, value_name = "N", requires = "states")]
    pub(crate) jobs: Option<std::num::NonZeroU32>,
    /// Number of rounds of each fault
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) rounds: u32,
    /// Create a filesystem in a file (as root) and put PGDATA on it. By default PGDATA is a plain
    /// directory
    #[arg(long, value_name = "FS")]
    pub(crate) filesystem: Option<String>,
    /// Create the filesystem on an emulated disk, whose volatile cache is lost in a power loss.
    /// Faults of the disk imply it
    #[arg(long, requires = "filesystem")]
    pub(crate) emulated: bool,
    /// Which part lies on the faulty disk. The other part gets a disk of its own
    #[arg(long, value_enum, default_value = "both", requires = "filesystem")]
    pub(crate) under: Under,
    /// Mount option of the filesystem. May be repeated
    #[arg(long, value_name = "OPTION", requires = "filesystem")]
    pub(crate) mount: Vec<String>,
    /// Directory for PGDATA, or for the file that holds the filesystem
    #[arg(long, value_name = "DIR")]
    pub(crate) storage: Option<PathBuf>,
    /// Setting of the server: `--setting synchronous_commit=off`. May be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) setting: Vec<String>,
    /// Set any key of the experiment file, as `pgdyno run --set` does. Its storage is
    /// `storage.disk`
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Seed of all random moments. The same seed repeats every round
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed)]
    pub(crate) seed: i64,
    /// Load that runs when a fault strikes: tpcb-like; user-login, whose logins insert a row and
    /// update a session; or tprocc, whose consistency conditions are checked too
    #[arg(long, value_name = "WORKLOAD", default_value = "tpcb-like")]
    pub(crate) workload: String,
    /// Number of connections that generate load
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(crate) clients: u32,
    /// Longest load before a fault is injected [default: 2s]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) load: Option<Span>,
    /// Longest time for the server's recovery [default: 2m]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) recovery_limit: Option<Span>,
    /// Another machine, as `ssh` knows it, that keeps the ledger for `--fault plug`
    #[arg(long, value_name = "HOST")]
    pub(crate) witness: Option<String>,
    /// Replaced by `ssh`
    #[arg(long, hide = true)]
    pub(crate) secret_file: Option<PathBuf>,
    /// Skip the positive controls. A passing test is then reported as invalid, because nothing
    /// shows that a failure would be detected
    #[arg(long)]
    pub(crate) no_controls: bool,
    /// Print the plan and change nothing
    #[arg(long, conflicts_with = "json")]
    pub(crate) dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) progress: ProgressOption,
    #[command(flatten)]
    pub(crate) store: StoreOption,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Keep the ledger of another machine whose plug will be pulled. `--fault plug --witness HOST`
    /// starts this by `ssh` and speaks to it over standard input and output
    #[command(after_help = WITNESS)]
    Witness(WitnessOptions),
    /// Judge one state of a failure of `--exhaustive` again, by every oracle
    Judge(JudgeOptions),
}

/// Where a witness's ledgers lie, and when it ends.
const WITNESS: &str = "\
Ledgers lie in $XDG_DATA_HOME/pgdyno/witness. Each message is on the disk before it is answered. The
witness ends with its standard input, at a signal, or when it has heard nothing for 30 s.";

#[derive(Args, Debug)]
pub(crate) struct WitnessOptions {
    /// Replaced by `ssh`
    #[arg(long, hide = true)]
    pub(crate) listen: Option<String>,
    /// Replaced by `$XDG_DATA_HOME`
    #[arg(long, hide = true)]
    pub(crate) directory: Option<PathBuf>,
    /// Replaced by `ssh`
    #[arg(long, hide = true)]
    pub(crate) secret_file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Exhaustive {
    /// The disk at every flush, then a sample of the states between two flushes
    All,
    /// The disk at every flush
    Flushes,
}

impl Exhaustive {
    /// The states that it stands for.
    pub(crate) fn states(self) -> States {
        match self {
            Self::All => States::All,
            Self::Flushes => States::Flushes,
        }
    }

    /// Returns the name in experiment files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Flushes => "flushes",
        }
    }
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
    /// Returns the name in experiment files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Both => "both",
            Self::Data => "data",
            Self::Wal => "wal",
        }
    }
}

/// Parses a seed as experiment files have it: TOML has no larger integers.
fn seed(text: &str) -> Result<i64, String> {
    let seed = text.parse::<i64>().ok().filter(|seed| *seed >= 0);
    seed.ok_or_else(|| format!("a seed is a whole number from 0 to {}", i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::seed;

    #[test]
    fn a_seed_that_no_experiment_file_could_hold_is_refused_with_the_range() {
        assert_eq!(seed("9223372036854775807"), Ok(i64::MAX));
        for wrong in ["9223372036854775808", "-1", "1.5", ""] {
            assert!(seed(wrong).unwrap_err().contains("0 to 9223372036854775807"), "{wrong}");
        }
    }
}
