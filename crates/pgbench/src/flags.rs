//! The table of options: their letters, arguments, pgbench versions, meanings, and what they set.
//!
//! `getopt` recognises options by this table, `help` prints it, and [`Flag::argument`] has the
//! function that puts an option's value into a [`Reading`].

use std::ffi::OsStr;
use std::path::PathBuf;

use pgdyno_engine::script::is_variable_name;

use crate::dialect::Dialect;
use crate::request::{Initialize, Log, PartitionMethod, Request, Run};
use crate::scripts::{self, Builtin, Chosen};
use crate::usage_error::UsageError;
use crate::values::{self, INT_MAX, integer};

/// Values of all options, before they are judged together.
#[derive(Default)]
pub(crate) struct Reading {
    pub(crate) run: Run,
    pub(crate) init: Initialize,
    pub(crate) is_initialization: bool,
    pub(crate) no_vacuum: bool,
    pub(crate) foreign_keys: bool,
    pub(crate) partition_method: Option<PartitionMethod>,
    pub(crate) is_logged: bool,
    pub(crate) log: Log,
    /// The value of `--dialect`, if it was given.
    pub(crate) asked: Option<Dialect>,
    /// Notes for the user.
    pub(crate) notes: Vec<String>,
    /// Scripts whose commands may run as root, although others may change them.
    pub(crate) trusted: Vec<PathBuf>,
    /// The request of an option that wants this and no more.
    pub(crate) request: Option<Request>,
}

impl Reading {
    fn add_builtin(&mut self, text: &str) -> Result<(), UsageError> {
        if text == "list" {
            self.request = Some(Request::Say(scripts::list()));
            return Ok(());
        }
        let (name, weight) = scripts::weighted(OsStr::new(text))?;
        let name = name.to_str().unwrap_or_default();
        self.run.add(Chosen::builtin(Builtin::find(name)?, weight)?)
    }

    fn add_file(&mut self, text: &OsStr) -> Result<(), UsageError> {
        let (file, weight) = scripts::weighted(text)?;
        let (script, note) = Chosen::file(file, weight, self.asked)?;
        self.run.add(script)?;
        self.notes.extend(note);
        Ok(())
    }

    fn define(&mut self, text: &str) -> Result<(), UsageError> {
        let (name, value) = text
            .split_once('=')
            .filter(|(name, value)| !name.is_empty() && !value.is_empty())
            .ok_or_else(|| UsageError::new(format!("invalid variable definition: \"{text}\"")))?;
        if !is_variable_name(name) {
            return Err(UsageError::new(format!("option: invalid variable name: \"{name}\"")));
        }
        self.run.variables.retain(|(known, _)| known != name);
        self.run.variables.push((name.to_owned(), value.to_owned()));
        Ok(())
    }
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

/// An option's argument with its name in the help, and the function that takes the value.
#[derive(Debug)]
pub(crate) enum Argument {
    None(fn(&mut Reading) -> Result<(), UsageError>),
    Required(&'static str, fn(&mut Reading, &str) -> Result<(), UsageError>),
    /// A file's name, which may hold any bytes.
    File(&'static str, fn(&mut Reading, &OsStr) -> Result<(), UsageError>),
    /// A file's name or none: `--name` or `--name=FILE`.
    OptionalFile(&'static str, fn(&mut Reading, Option<&OsStr>) -> Result<(), UsageError>),
}

/// How many arguments an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arity {
    None,
    One,
    /// One or none: `--name` or `--name=ARGUMENT`.
    Optional,
}

impl Argument {
    /// Returns how many arguments are taken.
    pub(crate) fn arity(&self) -> Arity {
        match self {
            Self::None(_) => Arity::None,
            Self::Required(..) | Self::File(..) => Arity::One,
            Self::OptionalFile(..) => Arity::Optional,
        }
    }

    /// Returns the argument's name in the help.
    pub(crate) fn name(&self) -> Option<&'static str> {
        match self {
            Self::None(_) => None,
            Self::Required(name, _) | Self::File(name, _) | Self::OptionalFile(name, _) => {
                Some(name)
            }
        }
    }
}

/// One option.
#[derive(Debug)]
pub(crate) struct Flag {
    pub(crate) short: Option<char>,
    pub(crate) long: &'static str,
    pub(crate) argument: Argument,
    pub(crate) mode: Mode,
    /// The first version that has it.
    since: u8,
    /// The last version that has it.
    until: u8,
    pub(crate) meaning: &'static str,
}

impl Flag {
    const fn since(self, since: u8) -> Self {
        Self { since, ..self }
    }

    const fn until(self, until: u8) -> Self {
        Self { until, ..self }
    }

    /// Returns whether pgbench `dialect` has the option.
    pub(crate) fn is_in(&self, dialect: Dialect) -> bool {
        (self.since..=self.until).contains(&dialect.0)
    }

    /// Puts the option's `value` into `reading`.
    pub(crate) fn take(
        &self,
        reading: &mut Reading,
        value: Option<&OsStr>,
    ) -> Result<(), UsageError> {
        match self.argument {
            Argument::None(set) => set(reading),
            Argument::Required(_, set) => {
                let value = value.unwrap_or_default();
                let text = value.to_str().ok_or_else(|| {
                    UsageError::new(format!(
                        "invalid value \"{}\" for option --{}: it is not UTF-8",
                        value.display(),
                        self.long
                    ))
                })?;
                set(reading, text)
            }
            Argument::File(_, set) => set(reading, value.unwrap_or_default()),
            Argument::OptionalFile(_, set) => set(reading, value),
        }
    }
}

const fn flag(
    short: Option<char>,
    long: &'static str,
    mode: Mode,
    meaning: &'static str,
    argument: Argument,
) -> Flag {
    let (since, until) = (Dialect::OLDEST.0, Dialect::NEWEST.0);
    Flag { short, long, argument, mode, since, until, meaning }
}

fn on(switch: &mut bool) -> Result<(), UsageError> {
    *switch = true;
    Ok(())
}

fn set<T>(place: &mut T, value: Result<T, UsageError>) -> Result<(), UsageError> {
    *place = value?;
    Ok(())
}

fn text(place: &mut Option<String>, value: &str) -> Result<(), UsageError> {
    *place = Some(value.to_owned());
    Ok(())
}

use Argument::{File, None as No, OptionalFile as Maybe, Required as Takes};
use Mode::{Benchmark as Bench, Both, Initialization as Init, Own};

/// The table.
#[rustfmt::skip]
pub(crate) const FLAGS: &[Flag] = &[
    flag(Some('i'), "initialize", Both, "make the tables instead of running a load",
        No(|r| on(&mut r.is_initialization))),
    flag(Some('I'), "init-steps", Init,
        "steps in this order: d drop, t tables, g rows sent by COPY, G rows made by the server, \
        v vacuum, p primary keys, f foreign keys [dtgvp]",
        Takes("STEPS", |r, v| set(&mut r.init.steps, values::steps(v)))),
    flag(Some('F'), "fillfactor", Init, "fillfactor of the tables (10 to 100) [100]",
        Takes("NUM", |r, v| set(&mut r.init.fillfactor, integer(v, "-F/--fillfactor", 10, 100)))),
    flag(Some('n'), "no-vacuum", Both, "no vacuum, neither while tables are made nor before a run",
        No(|r| on(&mut r.no_vacuum))),
    flag(Some('q'), "quiet", Init, "a progress line every 5 s only",
        No(|r| on(&mut r.init.quiet))),
    flag(Some('s'), "scale", Both,
        "100,000 accounts each; in a run of own scripts: the value of :scale [1]",
        Takes("NUM", |r, v| set(&mut r.run.scale, integer(v, "-s/--scale", 1, INT_MAX).map(Some)))),
    flag(None, "foreign-keys", Init, "add foreign keys between the tables",
        No(|r| on(&mut r.foreign_keys))),
    flag(None, "index-tablespace", Init, "where indexes go",
        Takes("TABLESPACE", |r, v| text(&mut r.init.index_tablespace, v))),
    flag(None, "partition-method", Init, "how pgbench_accounts is partitioned [range]",
        Takes("range|hash", |r, v|
            set(&mut r.partition_method, values::partition_method(v).map(Some)))),
    flag(None, "partitions", Init, "partitions of pgbench_accounts; 0 means an ordinary table [0]",
        Takes("NUM", |r, v|
            set(&mut r.init.partitions, integer(v, "--partitions", 0, INT_MAX)))),
    flag(None, "tablespace", Init, "where tables go",
        Takes("TABLESPACE", |r, v| text(&mut r.init.tablespace, v))),
    flag(None, "unlogged-tables", Init, "make the tables unlogged",
        No(|r| on(&mut r.init.unlogged))),

    flag(Some('b'), "builtin", Bench,
        "add a built-in script, or list them (-b list), with weight W [1]",
        Takes("NAME[@W]", Reading::add_builtin)),
    flag(Some('f'), "file", Bench, "add the script of FILE (-: standard input) with weight W [1]",
        File("FILE[@W]", Reading::add_file)),
    flag(Some('N'), "skip-some-updates", Bench, "-b simple-update",
        No(|r| r.run.add(Chosen::builtin(Builtin::SimpleUpdate, 1)?))),
    flag(Some('S'), "select-only", Bench, "-b select-only",
        No(|r| r.run.add(Chosen::builtin(Builtin::SelectOnly, 1)?))),

    flag(Some('c'), "client", Bench, "clients, each with a connection [1]",
        Takes("NUM", |r, v|
            set(&mut r.run.clients, integer(v, "-c/--client", 1, INT_MAX)))),
    flag(Some('C'), "connect", Bench, "a new connection for every transaction",
        No(|r| on(&mut r.run.reconnect))),
    flag(Some('D'), "define", Bench, "set a variable for the scripts",
        Takes("NAME=VALUE", Reading::define)),
    flag(Some('j'), "jobs", Bench, "threads [1]",
        Takes("NUM", |r, v| set(&mut r.run.threads, integer(v, "-j/--jobs", 1, INT_MAX)))),
    flag(Some('l'), "log", Bench, "write every transaction to a file, one a thread",
        No(|r| on(&mut r.is_logged))),
    flag(Some('L'), "latency-limit", Bench,
        "count transactions that take longer; with -R skip those that are late already",
        Takes("MS", |r, v| set(&mut r.run.latency_limit_ms, values::latency_limit(v)))),
    flag(Some('M'), "protocol", Bench, "how statements are sent [simple]",
        Takes("simple|extended|prepared", |r, v| set(&mut r.run.protocol, values::protocol(v)))),
    flag(Some('P'), "progress", Bench, "a progress line every S seconds",
        Takes("S", |r, v| set(&mut r.run.progress, values::progress(v).map(Some)))),
    flag(Some('r'), "report-per-command", Bench, "latency, failures and retries of every command",
        No(|r| on(&mut r.run.per_command))),
    flag(Some('R'), "rate", Bench,
        "offer so many transactions per second, latency counted from when each was due",
        Takes("TPS", |r, v| set(&mut r.run.rate, values::rate(v)))),
    flag(Some('t'), "transactions", Bench, "transactions of each client [10]",
        Takes("NUM", |r, v|
            set(&mut r.run.transactions, integer(v, "-t/--transactions", 1, INT_MAX).map(Some)))),
    flag(Some('T'), "time", Bench, "run for S seconds instead",
        Takes("S", |r, v| set(&mut r.run.seconds, integer(v, "-T/--time", 1, INT_MAX).map(Some)))),
    flag(Some('v'), "vacuum-all", Bench, "vacuum all four tables before the run",
        No(|r| on(&mut r.run.vacuum_all))),
    flag(None, "aggregate-interval", Bench,
        "with -l: a line for S seconds, not for each transaction",
        Takes("S", |r, v|
            set(&mut r.log.aggregate, integer(v, "--aggregate-interval", 1, INT_MAX).map(Some)))),
    flag(None, "failures-detailed", Bench,
        "tell serialization failures, deadlocks and other failures apart",
        No(|r| on(&mut r.run.failures_detailed))),
    flag(None, "log-prefix", Bench, "beginning of the log files' names [pgbench_log]",
        File("PREFIX", |r, v| set(&mut r.log.prefix, Ok(Some(v.to_owned()))))),
    flag(None, "max-tries", Bench,
        "how often a transaction that met a serialization failure or a deadlock is tried; 0: no \
        limit [1]",
        Takes("NUM", |r, v| set(&mut r.run.max_tries, values::max_tries(v)))),
    flag(None, "progress-timestamp", Bench, "progress lines with Unix time",
        No(|r| on(&mut r.run.progress_timestamp))),
    flag(None, "random-seed", Bench, "time, rand or an unsigned number",
        Takes("SEED", |r, v|
            set(&mut r.run.seed, values::seed(v, "--random-seed option").map(Some)))),
    flag(None, "sampling-rate", Bench, "with -l: the share of transactions that are written",
        Takes("SHARE", |r, v|
            set(&mut r.log.sampling, values::positive(v, "sampling rate", 1.0).map(Some)))),
    flag(None, "show-script", Both, "print a built-in script",
        Takes("NAME", |r, v|
            set(&mut r.request, Builtin::find(v)
                .map(|script| Some(Request::Say(script.render())))))),
    flag(None, "verbose-errors", Bench, "print every error that a transaction met",
        No(|r| on(&mut r.run.verbose_errors))),
    flag(None, "exit-on-abort", Bench, "end the run when one client has given up",
        No(|r| on(&mut r.run.exit_on_abort))).since(17),

    flag(Some('d'), "debug", Both, "say what is connected to and every step of the clients",
        No(|r| on(&mut r.run.debug))).until(16),
    flag(None, "debug", Both, "say what is connected to and every step of the clients",
        No(|r| on(&mut r.run.debug))).since(17),
    flag(Some('d'), "dbname", Both, "the database",
        Takes("DBNAME", |r, v| text(&mut r.run.connect.dsn_or_dbname, v))).since(17),
    flag(Some('h'), "host", Both, "host, or directory of the server's socket",
        Takes("HOST", |r, v| text(&mut r.run.connect.host, v))),
    flag(Some('p'), "port", Both, "port",
        Takes("PORT", |r, v| text(&mut r.run.connect.port, v))),
    flag(Some('U'), "username", Both, "role",
        Takes("USER", |r, v| text(&mut r.run.connect.user, v))),
    flag(Some('V'), "version", Both, "print the version",
        No(|_| Ok(()))),
    flag(Some('?'), "help", Both, "print this",
        No(|_| Ok(()))),

    flag(None, "dialect", Own,
        "the version of pgbench whose options these are [the newest that accepts them]",
        Takes("15|16|17|18", |_, _| Ok(()))),
    flag(None, "init-batch-size", Own,
        "with -i: commit step g after every NUM rows of a table, and go on where it was when the \
        connection is lost [all rows in one transaction]",
        Takes("NUM", |r, v|
            set(&mut r.init.batch_size, integer(v, "--init-batch-size", 1, INT_MAX).map(Some)))),
    flag(None, "continue-on-error", Own,
        "a client goes on after an SQL error of any kind, as from pgbench 19 on",
        No(|r| on(&mut r.run.continue_on_error))),
    flag(None, "reconnect-lost", Own,
        "a client whose connection is lost makes another, and ends after NUM in a row [never]",
        Takes("never|NUM|always", |r, v|
            set(&mut r.run.reconnect_lost, values::reconnect_lost(v)))),
    flag(None, "json", Own,
        "write the results as JSON to FILE; after the report without it, and for -",
        Maybe("FILE", |r, v|
            set(&mut r.run.json, Ok(Some(v.filter(|file| *file != "-").map(PathBuf::from)))))),
    flag(None, "hdr-log", Own, "write the latency histogram as an HdrHistogram interval log",
        File("FILE", |r, v| set(&mut r.run.hdr_log, values::own_file(v, "--hdr-log").map(Some)))),
    flag(None, "store", Own,
        "keep the run in pgdyno's store, or in the store FILE: `pgdyno show`, `list`, `report` and \
        `compare` know it as an ad hoc run",
        Maybe("FILE", |r, v| set(&mut r.run.store,
            v.map(|file| values::own_file(file, "--store")).transpose().map(Some)))),
    flag(None, "extra-report", Own,
        "percentiles and more after pgbench's report, in lines that begin with \"pgdyno:\" [as \
        it is unless called as pgbench]",
        No(|r| on(&mut r.run.extra_report))),
    flag(None, "trust", Own,
        "as root: run \\shell of this script, or of those below this folder, although others \
        may change it",
        File("PATH", |r, v| { r.trusted.push(PathBuf::from(v)); Ok(()) })),
    flag(None, "reactor", Own,
        "how bytes are carried: auto, epoll or io_uring; blocking means epoll [auto]",
        Takes("NAME", |r, v| set(&mut r.run.reactor, values::reactor(v)))),
    flag(None, "generators", Own,
        "offer the load from NUM processes, from hosts by ssh, from NUM tasks of Slurm or nodes of \
        Ray, or from NUM workers that join, each with its part of clients and threads",
        Takes("local:NUM|ssh:HOST[*W],…|slurm:NUM|ray:workers=NUM|join:NUM,…", |r, v|
            set(&mut r.run.generators, values::generators(v).map(Some)))),
    flag(None, "max-start-skew", Own,
        "refuse a run whose generators began further apart [10]",
        Takes("MS", |r, v| set(&mut r.run.max_start_skew, values::start_skew(v).map(Some)))),
    flag(None, "allow-saturated", Own,
        "let a run count although a generator had no time left",
        No(|r| on(&mut r.run.allow_saturated))),
];
