//! Every option: its letters, its argument, the pgbench versions that have it, and what it means.

use std::fmt;

/// A pgbench version whose command line is meant: major × 100 + minor (904 is 9.4, 1700 is 17).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Dialect(u16);

impl Dialect {
    /// The oldest dialect.
    pub(crate) const OLDEST: Self = Self(904);
    /// The newest dialect, which is the default.
    pub(crate) const NEWEST: Self = Self(1800);
    /// The last one whose `-d` is debug, and not the database's name.
    pub(crate) const BEFORE_DBNAME: Self = Self(1600);
    /// All, the newest first.
    pub(crate) const ALL: [Self; 12] = [
        Self(1800),
        Self(1700),
        Self(1600),
        Self(1500),
        Self(1400),
        Self(1300),
        Self(1200),
        Self(1100),
        Self(1000),
        Self(906),
        Self(905),
        Self(904),
    ];

    /// Whether its scripts have a statement a line (up to 9.5).
    pub(crate) fn has_old_language(self) -> bool {
        self.0 <= 905
    }

    /// Whether its scripts have `\syncpipeline` (from 17).
    pub(crate) fn has_sync_pipeline(self) -> bool {
        self.0 >= 1700
    }

    /// Whether a report counts, for each script, what was begun, and goes on where nothing ended
    /// well (from 18).
    pub(crate) fn reports_all_transactions(self) -> bool {
        self.0 >= 1800
    }

    /// Whether `--unlogged-tables` with partitions makes only these unlogged (from 18).
    pub(crate) fn unlogs_partitions_alone(self) -> bool {
        self.0 >= 1800
    }

    /// Whether lines on initialization name the table (from 17).
    pub(crate) fn names_table_in_progress(self) -> bool {
        self.0 >= 1700
    }

    /// Reads `9.4` or `17`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|d| d.to_string() == text)
    }
}

impl Default for Dialect {
    fn default() -> Self {
        Self::NEWEST
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0 / 100, self.0 % 100) {
            (major, 0) => write!(f, "{major}"),
            (major, minor) => write!(f, "{major}.{minor}"),
        }
    }
}

/// An option's meaning, whatever its name is in a dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) enum Opt {
    Initialize,
    InitSteps,
    Fillfactor,
    NoVacuum,
    Quiet,
    Scale,
    ForeignKeys,
    IndexTablespace,
    PartitionMethod,
    Partitions,
    Tablespace,
    UnloggedTables,
    Builtin,
    File,
    SkipSomeUpdates,
    SelectOnly,
    Client,
    Connect,
    Define,
    Jobs,
    Log,
    LatencyLimit,
    Protocol,
    Progress,
    ReportPerCommand,
    Rate,
    Transactions,
    Time,
    VacuumAll,
    AggregateInterval,
    FailuresDetailed,
    LogPrefix,
    MaxTries,
    ProgressTimestamp,
    RandomSeed,
    SamplingRate,
    ShowScript,
    VerboseErrors,
    ExitOnAbort,
    ContinueOnError,
    Debug,
    Dbname,
    Host,
    Port,
    Username,
    Version,
    Help,
    Dialect,
    ReconnectLost,
    Json,
    HdrLog,
    ExtraReport,
    Reactor,
    Trust,
}

/// When an option may be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Only with `-i`.
    Initialization,
    /// Only without it.
    Benchmark,
    /// Always.
    Both,
    /// Always; pgdyno's own, recognised only by its full name so that pgbench's abbreviations stay
    /// what they are.
    Own,
}

/// Whether an option takes an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Argument {
    /// None.
    None,
    /// One, called so in the help.
    Required(&'static str),
    /// `--name` or `--name=ARGUMENT`.
    Optional(&'static str),
}

/// One option.
#[derive(Debug)]
pub(crate) struct Flag {
    pub(crate) opt: Opt,
    pub(crate) short: Option<char>,
    pub(crate) long: &'static str,
    pub(crate) argument: Argument,
    pub(crate) mode: Mode,
    /// The first version that has it.
    pub(crate) since: Dialect,
    /// The last version that has it.
    pub(crate) until: Dialect,
    pub(crate) meaning: &'static str,
}

const OLD: u16 = Dialect::OLDEST.0;
const NEW: u16 = Dialect::NEWEST.0;

#[allow(clippy::too_many_arguments)] // a row of the table below
const fn flag(
    opt: Opt,
    short: Option<char>,
    long: &'static str,
    argument: Argument,
    mode: Mode,
    since: u16,
    until: u16,
    meaning: &'static str,
) -> Flag {
    Flag { opt, short, long, argument, mode, since: Dialect(since), until: Dialect(until), meaning }
}

use Argument::{None as No, Optional as Maybe, Required as Takes};
use Mode::{Benchmark as Run, Both, Initialization as Init, Own};

/// The table.
#[rustfmt::skip]
pub(crate) const FLAGS: &[Flag] = &[
    flag(Opt::Initialize, Some('i'), "initialize", No, Both, OLD, NEW, "make the tables instead of running a load"),
    flag(Opt::InitSteps, Some('I'), "init-steps", Takes("STEPS"), Init, 1100, NEW, "steps in this order: d drop, t tables, g rows sent by COPY, G rows made by the server, v vacuum, p primary keys, f foreign keys [dtgvp]"),
    flag(Opt::Fillfactor, Some('F'), "fillfactor", Takes("NUM"), Init, OLD, NEW, "fillfactor of the tables (10 to 100) [100]"),
    flag(Opt::NoVacuum, Some('n'), "no-vacuum", No, Both, OLD, NEW, "no vacuum, neither while tables are made nor before a run"),
    flag(Opt::Quiet, Some('q'), "quiet", No, Init, OLD, NEW, "a progress line every 5 s only"),
    flag(Opt::Scale, Some('s'), "scale", Takes("NUM"), Both, OLD, NEW, "100,000 accounts each; in a run of own scripts: the value of :scale [1]"),
    flag(Opt::ForeignKeys, None, "foreign-keys", No, Init, OLD, NEW, "add foreign keys between the tables"),
    flag(Opt::IndexTablespace, None, "index-tablespace", Takes("TABLESPACE"), Init, OLD, NEW, "where indexes go"),
    flag(Opt::PartitionMethod, None, "partition-method", Takes("range|hash"), Init, 1300, NEW, "how pgbench_accounts is partitioned [range]"),
    flag(Opt::Partitions, None, "partitions", Takes("NUM"), Init, 1300, NEW, "partitions of pgbench_accounts; 0 means an ordinary table [0]"),
    flag(Opt::Tablespace, None, "tablespace", Takes("TABLESPACE"), Init, OLD, NEW, "where tables go"),
    flag(Opt::UnloggedTables, None, "unlogged-tables", No, Init, OLD, NEW, "make the tables unlogged"),

    flag(Opt::Builtin, Some('b'), "builtin", Takes("NAME[@W]"), Run, 906, NEW, "add a built-in script, or list them (-b list), with weight W [1]"),
    flag(Opt::File, Some('f'), "file", Takes("FILE[@W]"), Run, OLD, NEW, "add the script of FILE (-: standard input) with weight W [1]"),
    flag(Opt::SkipSomeUpdates, Some('N'), "skip-some-updates", No, Run, OLD, NEW, "-b simple-update"),
    flag(Opt::SelectOnly, Some('S'), "select-only", No, Run, OLD, NEW, "-b select-only"),

    flag(Opt::Client, Some('c'), "client", Takes("NUM"), Run, OLD, NEW, "clients, each with a connection [1]"),
    flag(Opt::Connect, Some('C'), "connect", No, Run, OLD, NEW, "a new connection for every transaction"),
    flag(Opt::Define, Some('D'), "define", Takes("NAME=VALUE"), Run, OLD, NEW, "set a variable for the scripts"),
    flag(Opt::Jobs, Some('j'), "jobs", Takes("NUM"), Run, OLD, NEW, "threads [1]"),
    flag(Opt::Log, Some('l'), "log", No, Run, OLD, NEW, "write every transaction to a file, one a thread"),
    flag(Opt::LatencyLimit, Some('L'), "latency-limit", Takes("MS"), Run, 905, NEW, "count transactions that take longer; with -R skip those that are late already"),
    flag(Opt::Protocol, Some('M'), "protocol", Takes("simple|extended|prepared"), Run, OLD, NEW, "how statements are sent [simple]"),
    flag(Opt::Progress, Some('P'), "progress", Takes("S"), Run, OLD, NEW, "a progress line every S seconds"),
    flag(Opt::ReportPerCommand, Some('r'), "report-per-command", No, Run, 1500, NEW, "latency, failures and retries of every command"),
    flag(Opt::ReportPerCommand, Some('r'), "report-latencies", No, Run, OLD, 1400, "latency of every command"),
    flag(Opt::Rate, Some('R'), "rate", Takes("TPS"), Run, OLD, NEW, "offer so many transactions per second, latency counted from when each was due"),
    flag(Opt::Transactions, Some('t'), "transactions", Takes("NUM"), Run, OLD, NEW, "transactions of each client [10]"),
    flag(Opt::Time, Some('T'), "time", Takes("S"), Run, OLD, NEW, "run for S seconds instead"),
    flag(Opt::VacuumAll, Some('v'), "vacuum-all", No, Run, OLD, NEW, "vacuum all four tables before the run"),
    flag(Opt::AggregateInterval, None, "aggregate-interval", Takes("S"), Run, OLD, NEW, "with -l: a line for S seconds, not for each transaction"),
    flag(Opt::FailuresDetailed, None, "failures-detailed", No, Run, 1500, NEW, "tell serialization failures, deadlocks and other failures apart"),
    flag(Opt::LogPrefix, None, "log-prefix", Takes("PREFIX"), Run, 1000, NEW, "beginning of the log files' names [pgbench_log]"),
    flag(Opt::MaxTries, None, "max-tries", Takes("NUM"), Run, 1500, NEW, "how often a transaction that met a serialization failure or a deadlock is tried; 0: no limit [1]"),
    flag(Opt::ProgressTimestamp, None, "progress-timestamp", No, Run, 905, NEW, "progress lines with Unix time"),
    flag(Opt::RandomSeed, None, "random-seed", Takes("SEED"), Run, 1100, NEW, "time, rand or an unsigned number"),
    flag(Opt::SamplingRate, None, "sampling-rate", Takes("SHARE"), Run, OLD, NEW, "with -l: the share of transactions that are written"),
    flag(Opt::ShowScript, None, "show-script", Takes("NAME"), Both, 1300, NEW, "print a built-in script"),
    flag(Opt::VerboseErrors, None, "verbose-errors", No, Run, 1500, NEW, "print every error that a transaction met"),
    flag(Opt::ExitOnAbort, None, "exit-on-abort", No, Run, 1700, NEW, "end the run when one client has given up"),

    flag(Opt::Debug, Some('d'), "debug", No, Both, OLD, 1600, "say what is connected to and every step of the clients"),
    flag(Opt::Debug, None, "debug", No, Both, 1700, NEW, "say what is connected to and every step of the clients"),
    flag(Opt::Dbname, Some('d'), "dbname", Takes("DBNAME"), Both, 1700, NEW, "the database"),
    flag(Opt::Host, Some('h'), "host", Takes("HOST"), Both, OLD, NEW, "host, or directory of the server's socket"),
    flag(Opt::Port, Some('p'), "port", Takes("PORT"), Both, OLD, NEW, "port"),
    flag(Opt::Username, Some('U'), "username", Takes("USER"), Both, OLD, NEW, "role"),
    flag(Opt::Version, Some('V'), "version", No, Both, OLD, NEW, "print the version"),
    flag(Opt::Help, Some('?'), "help", No, Both, OLD, NEW, "print this"),

    flag(Opt::Dialect, None, "dialect", Takes("9.4|…|18"), Own, OLD, NEW, "the version of pgbench whose options these are [the newest that accepts them]"),
    flag(Opt::ContinueOnError, None, "continue-on-error", No, Own, OLD, NEW, "a client goes on after an SQL error of any kind, as from pgbench 19 on"),
    flag(Opt::ReconnectLost, None, "reconnect-lost", Takes("never|NUM|always"), Own, OLD, NEW, "a client whose connection is lost makes another, and ends after NUM in a row [never]"),
    flag(Opt::Json, None, "json", Maybe("FILE"), Own, OLD, NEW, "write the results as JSON, to FILE or after the report"),
    flag(Opt::HdrLog, None, "hdr-log", Takes("FILE"), Own, OLD, NEW, "write the latency histogram as an HdrHistogram interval log"),
    flag(Opt::ExtraReport, None, "extra-report", No, Own, OLD, NEW, "percentiles and more after pgbench's report, in lines that begin with \"pgdyno:\" [as it is unless called as pgbench]"),
    flag(Opt::Trust, None, "trust", Takes("PATH"), Own, OLD, NEW, "as root: run \\shell of this script, or of those below this folder, although others may change it"),
    flag(Opt::Reactor, None, "reactor", Takes("NAME"), Own, OLD, NEW, "how bytes are carried: auto, epoll or io_uring; blocking means epoll [auto]"),
];
