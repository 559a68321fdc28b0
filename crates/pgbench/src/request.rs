//! Requests: an initialization or a run, with the values of all options.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use pgdyno_connect::conninfo::ConnectOptions;
use pgdyno_engine::ReactorChoice;
use pgdyno_generators::Generators;
use pgdyno_model::experiment::{Length, LoadOptions, OnError, Protocol, ReconnectLost};
use pgdyno_model::load_rate::LoadRate;
use pgdyno_model::units::Span;

use crate::dialect::Dialect;
use crate::scripts::Chosen;
use crate::usage_error::UsageError;

/// The most scripts one run may mix.
const MAX_SCRIPTS: usize = 128;

/// Request of a command line.
#[derive(Debug)]
pub(crate) enum Request {
    /// Print a text on standard output, and nothing more.
    Print(String),
    /// Print a text on standard error, where pgbench shows its scripts, and nothing more.
    Say(String),
    /// Make the tables.
    Initialize(Box<Initialize>),
    /// Offer load.
    Run(Box<Run>),
}

/// How `pgbench_accounts` is cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PartitionMethod {
    #[default]
    Range,
    Hash,
}

/// An initialization (`-i`).
#[derive(Debug, Default)]
pub(crate) struct Initialize {
    pub(crate) dialect: Dialect,
    pub(crate) connect: ConnectOptions,
    pub(crate) steps: Vec<char>,
    pub(crate) fillfactor: u32,
    pub(crate) quiet: bool,
    pub(crate) scale: u32,
    pub(crate) tablespace: Option<String>,
    pub(crate) index_tablespace: Option<String>,
    pub(crate) partitions: u32,
    pub(crate) partition_method: PartitionMethod,
    pub(crate) unlogged: bool,
    /// Rows of a transaction of step `g`; none: all tables are filled in one.
    pub(crate) batch_size: Option<u32>,
    /// Whether progress is shown on a terminal, where a line can stand in another's place.
    pub(crate) on_terminal: bool,
}

/// A run's options.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    pub(crate) dialect: Dialect,
    pub(crate) connect: ConnectOptions,
    pub(crate) debug: bool,
    pub(crate) scripts: Vec<Chosen>,
    pub(crate) clients: u32,
    pub(crate) threads: u32,
    pub(crate) reconnect: bool,
    pub(crate) reconnect_lost: ReconnectLost,
    pub(crate) variables: Vec<(String, String)>,
    pub(crate) log: Option<Log>,
    pub(crate) latency_limit_ms: Option<f64>,
    pub(crate) protocol: Protocol,
    pub(crate) vacuum: bool,
    pub(crate) vacuum_all: bool,
    pub(crate) progress: Option<Duration>,
    pub(crate) progress_timestamp: bool,
    pub(crate) per_command: bool,
    pub(crate) rate: Option<f64>,
    pub(crate) scale: Option<u32>,
    /// Transactions of each client; none when `seconds` bounds the run.
    pub(crate) transactions: Option<u32>,
    pub(crate) seconds: Option<u32>,
    pub(crate) failures_detailed: bool,
    /// 0: without limit.
    pub(crate) max_tries: u32,
    pub(crate) seed: Option<u64>,
    pub(crate) verbose_errors: bool,
    pub(crate) exit_on_abort: bool,
    pub(crate) continue_on_error: bool,
    /// Where the results go as JSON; standard output where no file is named.
    pub(crate) json: Option<Option<PathBuf>>,
    pub(crate) hdr_log: Option<PathBuf>,
    /// The store that the run is kept in; pgdyno's own where no file is named.
    pub(crate) store: Option<Option<PathBuf>>,
    /// Whether to print figures that pgbench does not report.
    pub(crate) extra_report: bool,
    pub(crate) reactor: ReactorChoice,
    /// Processes or hosts that offer the load; none means this process.
    pub(crate) generators: Option<Generators>,
    /// How far apart generators may begin, if that was given.
    pub(crate) max_start_skew: Option<Duration>,
    /// Whether a run counts in which a generator had no time left.
    pub(crate) allow_saturated: bool,
}

/// Options of the transaction log (`-l`).
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    pub(crate) prefix: Option<OsString>,
    /// Seconds in a line; none: a line for each transaction.
    pub(crate) aggregate: Option<u32>,
    /// The share of transactions that are written.
    pub(crate) sampling: Option<f64>,
}

impl Run {
    pub(crate) fn new(dialect: Dialect) -> Self {
        Self { dialect, clients: 1, threads: 1, vacuum: true, max_tries: 1, ..Self::default() }
    }

    /// Returns how long the load lasts.
    pub(crate) fn length(&self) -> Length {
        match (self.seconds, self.transactions) {
            (Some(seconds), _) => Length::Duration(Span::from_secs(seconds.into())),
            (None, each) => Length::Transactions(each.unwrap_or(1).into()),
        }
    }

    /// Returns the options of the load.
    pub(crate) fn load_options(&self) -> LoadOptions {
        LoadOptions {
            rate: self.rate.map(LoadRate::Constant),
            pauses: None,
            latency_limit: self
                .latency_limit_ms
                .map(|ms| Span(Duration::from_secs_f64((ms / 1000.0).min(1e9)))),
            max_tries: self.max_tries,
            on_error: match (self.exit_on_abort, self.continue_on_error) {
                (true, _) => OnError::AbortAll,
                (false, true) => OnError::Continue,
                (false, false) => OnError::AbortClient,
            },
            reconnect: self.reconnect,
            reconnect_lost: self.reconnect_lost,
            define: self.variables.iter().cloned().collect(),
        }
    }

    /// Returns whether transactions that are late before they begin are skipped.
    pub(crate) fn skips_late(&self) -> bool {
        self.rate.is_some() && self.latency_limit_ms.is_some()
    }

    /// Returns whether a built-in script is run. The scale is then read from the tables.
    pub(crate) fn uses_builtin(&self) -> bool {
        self.scripts.iter().any(|s| s.is_builtin)
    }

    /// Whether the run asks the server something before the load: about pgbench's tables.
    pub(crate) fn asks(&self) -> bool {
        self.uses_builtin() || self.vacuum
    }

    /// Adds a script.
    pub(crate) fn add(&mut self, script: Chosen) -> Result<(), UsageError> {
        if self.scripts.len() == MAX_SCRIPTS {
            return Err(UsageError::new(format!("at most {MAX_SCRIPTS} SQL scripts are allowed")));
        }
        self.scripts.push(script);
        Ok(())
    }
}
