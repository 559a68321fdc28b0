//! What the options ask for, judged as pgbench judges it.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;

use pgdyno_dataset::trust::Trust;
use pgdyno_engine::ReactorChoice;
use pgdyno_engine::script::{is_variable_name, leading_integer};
use pgdyno_model::experiment::Protocol;

use crate::flags::{Dialect, FLAGS, Mode, Opt};
use crate::getopt;
use crate::request::{Initialize, Log, PartitionMethod, Request, Run};
use crate::scripts::{self, Builtin, Chosen};
use crate::usage_error::UsageError;
use crate::values::{INT_MAX, clients, integer, positive, seed, steps};

/// Values of all options, before they are judged together.
#[derive(Default)]
struct Reading {
    run: Run,
    init: Initialize,
    initialize: bool,
    no_vacuum: bool,
    foreign_keys: bool,
    method: Option<PartitionMethod>,
    log: bool,
    prefix: Option<String>,
    aggregate: Option<u32>,
    sampling: Option<f64>,
    /// The value of `--dialect`, if it was given.
    asked: Option<Dialect>,
    notes: Vec<String>,
    /// Scripts whose commands may run as root, although others may change them.
    trusted: Vec<PathBuf>,
}

/// Judges a command line; with notes where its reading depends on the version of pgbench.
///
/// # Errors
/// pgbench would refuse the command line.
pub(crate) fn read(
    args: &[String],
    say: &mut dyn FnMut(&str),
) -> Result<(Request, Vec<String>), UsageError> {
    let (dialect, parsed, note) =
        getopt::choose(args).map_err(|e| UsageError::usage(e.to_string()))?;
    // pgbench looks at these before anything else, and only in the first place.
    let first = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--dialect", _, first, ..] => Some(first),
        [own, first, ..] if own.starts_with("--dialect=") => Some(first),
        [first, ..] => Some(first),
        [] => None,
    };
    match first {
        Some("-?" | "--help") => {
            return Ok((Request::Print(crate::help::text(dialect)), Vec::new()));
        }
        Some("-V" | "--version") => return Ok((Request::Print(version()), Vec::new())),
        _ => {}
    }
    let mut seeded = |text: &str, from: &str| {
        let seed = seed(text, from)?;
        say(&format!("setting random seed to {seed}"));
        Ok(seed)
    };
    let from_environment = match std::env::var("PGBENCH_RANDOM_SEED") {
        Ok(text) => Some(seeded(&text, "PGBENCH_RANDOM_SEED environment variable")?),
        Err(_) => None,
    };
    let mut reading = Reading {
        run: Run::new(dialect),
        init: Initialize {
            dialect,
            steps: "dtgvp".chars().collect(),
            fillfactor: 100,
            scale: 1,
            on_terminal: std::io::stderr().is_terminal(),
            ..Initialize::default()
        },
        asked: parsed.options.iter().any(|(opt, _)| *opt == Opt::Dialect).then_some(dialect),
        notes: note.into_iter().collect(),
        ..Reading::default()
    };
    reading.run.seed = from_environment;
    for (opt, value) in &parsed.options {
        if let (Opt::RandomSeed, Some(text)) = (opt, value) {
            reading.run.seed = Some(seeded(text, "--random-seed option")?);
        } else if let Some(request) = reading.take(*opt, value.as_deref())? {
            return Ok((request, Vec::new()));
        }
    }
    if let Some(error) = parsed.error {
        return Err(UsageError::usage(error.to_string()));
    }
    let given: Vec<Opt> = parsed.options.iter().map(|(opt, _)| *opt).collect();
    let notes = std::mem::take(&mut reading.notes);
    Ok((reading.judge(&given, &parsed.operands)?, notes))
}

/// `--version`.
fn version() -> String {
    format!(
        "pgbench (PostgreSQL) {}.0 compatible (pgdyno {})\n",
        Dialect::NEWEST,
        env!("CARGO_PKG_VERSION")
    )
}

impl Reading {
    /// Takes one option; a request means: do that and no more.
    #[allow(clippy::too_many_lines)] // one arm an option
    fn take(&mut self, opt: Opt, value: Option<&str>) -> Result<Option<Request>, UsageError> {
        let text = value.unwrap_or("");
        let owned = || Some(text.to_owned());
        let (run, init) = (&mut self.run, &mut self.init);
        match opt {
            Opt::Initialize => self.initialize = true,
            Opt::InitSteps => init.steps = steps(text)?,
            Opt::Fillfactor => init.fillfactor = integer(text, "-F/--fillfactor", 10, 100)?,
            Opt::NoVacuum => self.no_vacuum = true,
            Opt::Quiet => init.quiet = true,
            Opt::Scale => {
                init.scale = integer(text, "-s/--scale", 1, INT_MAX)?;
                run.scale = Some(init.scale);
            }
            Opt::ForeignKeys => self.foreign_keys = true,
            Opt::IndexTablespace => init.index_tablespace = owned(),
            Opt::Tablespace => init.tablespace = owned(),
            Opt::PartitionMethod => {
                self.method = Some(match text.to_ascii_lowercase().as_str() {
                    "range" => PartitionMethod::Range,
                    "hash" => PartitionMethod::Hash,
                    _ => {
                        return Err(UsageError::new(format!(
                            "invalid partition method, expecting \"range\" or \"hash\", got: \"{text}\""
                        )));
                    }
                });
            }
            Opt::Partitions => init.partitions = integer(text, "--partitions", 0, INT_MAX)?,
            Opt::UnloggedTables => init.unlogged = true,
            Opt::Builtin if text == "list" => return Ok(Some(Request::Say(scripts::list()))),
            Opt::Builtin => {
                let (name, weight) = scripts::weighted(text)?;
                run.add(Chosen::builtin(Builtin::find(name)?, weight)?)?;
            }
            Opt::File => {
                let (file, weight) = scripts::weighted(text)?;
                let (script, note) = Chosen::file(file, weight, self.asked)?;
                run.add(script)?;
                self.notes.extend(note);
            }
            Opt::SkipSomeUpdates => run.add(Chosen::builtin(Builtin::SimpleUpdate, 1)?)?,
            Opt::SelectOnly => run.add(Chosen::builtin(Builtin::SelectOnly, 1)?)?,
            Opt::Client => run.clients = clients(text)?,
            Opt::Connect => run.reconnect = true,
            Opt::Define => {
                let (name, value) = text
                    .split_once('=')
                    .filter(|(name, value)| !name.is_empty() && !value.is_empty())
                    .ok_or_else(|| {
                        UsageError::new(format!("invalid variable definition: \"{text}\""))
                    })?;
                if !is_variable_name(name) {
                    return Err(UsageError::new(format!(
                        "option: invalid variable name: \"{name}\""
                    )));
                }
                run.variables.retain(|(known, _)| known != name);
                run.variables.push((name.to_owned(), value.to_owned()));
            }
            Opt::Jobs => run.threads = integer(text, "-j/--jobs", 1, INT_MAX)?,
            Opt::Log => self.log = true,
            Opt::LatencyLimit => {
                let limit = positive(text, "latency limit", f64::MAX)?;
                // pgbench counts in whole microseconds, and what is less than one is no limit.
                run.latency_limit_ms = Some(limit).filter(|limit| *limit >= 0.001);
            }
            Opt::Protocol => {
                run.protocol = Protocol::parse(text).ok_or_else(|| {
                    UsageError::new(format!("invalid query mode (-M): \"{text}\""))
                })?;
            }
            Opt::Progress => {
                let seconds = integer(text, "-P/--progress", 1, INT_MAX)?;
                run.progress = Some(Duration::from_secs(seconds.into()));
            }
            Opt::ReportPerCommand => run.per_command = true,
            Opt::Rate => {
                let rate = positive(text, "rate limit", f64::INFINITY)?;
                run.rate = Some(rate).filter(|rate| rate.is_finite());
            }
            Opt::Transactions => {
                run.transactions = Some(integer(text, "-t/--transactions", 1, INT_MAX)?);
            }
            Opt::Time => run.seconds = Some(integer(text, "-T/--time", 1, INT_MAX)?),
            Opt::VacuumAll => run.vacuum_all = true,
            Opt::AggregateInterval => {
                self.aggregate = Some(integer(text, "--aggregate-interval", 1, INT_MAX)?);
            }
            Opt::FailuresDetailed => run.failures_detailed = true,
            Opt::LogPrefix => self.prefix = owned(),
            Opt::MaxTries => {
                run.max_tries = i32::try_from(leading_integer(text.as_bytes()))
                    .map_err(|_| ())
                    .and_then(|tries| u32::try_from(tries).map_err(|_| ()))
                    .map_err(|_| {
                        UsageError::new(format!("invalid number of maximum tries: \"{text}\""))
                    })?;
            }
            Opt::ProgressTimestamp => run.progress_timestamp = true,
            Opt::SamplingRate => self.sampling = Some(positive(text, "sampling rate", 1.0)?),
            Opt::ShowScript => return Ok(Some(Request::Say(Builtin::find(text)?.shown()))),
            Opt::VerboseErrors => run.verbose_errors = true,
            Opt::ExitOnAbort => run.exit_on_abort = true,
            Opt::ContinueOnError => run.continue_on_error = true,
            Opt::Debug => run.debug = true,
            Opt::Dbname => run.connect.database = owned(),
            Opt::Host => run.connect.host = owned(),
            Opt::Port => run.connect.port = owned(),
            Opt::Username => run.connect.user = owned(),
            Opt::RandomSeed | Opt::Version | Opt::Help | Opt::Dialect => {}
            Opt::ReconnectLost => {
                run.reconnect_lost = text
                    .parse()
                    .map_err(|wrong| UsageError::new(format!("--reconnect-lost: {wrong}")))?;
            }
            Opt::Json => run.json = Some(value.map(PathBuf::from)),
            Opt::HdrLog => run.hdr_log = Some(PathBuf::from(text)),
            Opt::ExtraReport => run.extra_report = true,
            Opt::Trust => self.trusted.push(PathBuf::from(text)),
            Opt::Reactor => {
                run.reactor = ReactorChoice::parse(text).ok_or_else(|| {
                    let names = ReactorChoice::NAMES.join(", ");
                    UsageError::new(format!("unrecognized reactor \"{text}\"; known are {names}"))
                })?;
            }
        }
        Ok(None)
    }

    /// Checks rules that concern several options, and makes the request.
    fn judge(mut self, given: &[Opt], operands: &[String]) -> Result<Request, UsageError> {
        let mut operands = operands.iter();
        if self.run.connect.database.is_none() {
            self.run.connect.database = operands.next().cloned();
        }
        let run = &mut self.run;
        if run.scripts.is_empty() {
            run.scripts.push(Chosen::builtin(Builtin::TpcbLike, 1)?);
        }
        let trust = Trust::new(std::mem::take(&mut self.trusted));
        run.scripts.iter().try_for_each(|script| script.check_trust(&trust))?;
        require(run.scripts.iter().any(|s| s.weight != 0), "total script weight must not be zero")?;
        // More threads than clients would have nothing to do.
        run.threads = run.threads.min(run.clients);
        if let Some(extra) = operands.next() {
            return Err(UsageError::new(format!(
                "too many command-line arguments (first is \"{extra}\")"
            ))
            .try_help());
        }
        if self.initialize {
            return self.judge_initialize(given);
        }
        if let Some(flag) = first_of(given, Mode::Initialization) {
            return Err(UsageError::new(
                "some of the specified options cannot be used in benchmarking mode",
            )
            .detail(format!("--{flag} is for initialization (-i)")));
        }
        require(
            run.transactions.is_none() || run.seconds.is_none(),
            "specify either a number of transactions (-t) or a duration (-T), not both",
        )?;
        if run.transactions.is_none() && run.seconds.is_none() {
            run.transactions = Some(10);
        }
        self.judge_log()?;
        require(
            !self.run.progress_timestamp || self.run.progress.is_some(),
            "--progress-timestamp is allowed only under --progress",
        )?;
        require(
            self.run.max_tries > 0
                || self.run.latency_limit_ms.is_some()
                || self.run.seconds.is_some(),
            "an unlimited number of transaction tries can only be used with --latency-limit or a duration (-T)",
        )?;
        require(
            !(self.run.exit_on_abort && self.run.continue_on_error),
            "--exit-on-abort and --continue-on-error exclude each other",
        )?;
        self.run.vacuum = !self.no_vacuum;
        for script in &self.run.scripts {
            script.check_parameters(self.run.protocol)?;
        }
        Ok(Request::Run(Box::new(self.run)))
    }

    fn judge_log(&mut self) -> Result<(), UsageError> {
        require(
            self.log || self.sampling.is_none(),
            "log sampling (--sampling-rate) is allowed only when logging transactions (-l)",
        )?;
        require(
            self.sampling.is_none() || self.aggregate.is_none(),
            "log sampling (--sampling-rate) and aggregation (--aggregate-interval) cannot be used at the same time",
        )?;
        require(
            self.log || self.aggregate.is_none(),
            "log aggregation is allowed only when actually logging transactions",
        )?;
        require(
            self.log || self.prefix.is_none(),
            "log file prefix (--log-prefix) is allowed only when logging transactions (-l)",
        )?;
        if let (Some(interval), Some(seconds)) = (self.aggregate, self.run.seconds) {
            require(
                interval <= seconds,
                format!(
                    "number of seconds for aggregation ({interval}) must not be higher than test duration ({seconds})"
                ),
            )?;
            require(
                seconds % interval == 0,
                format!(
                    "duration ({seconds}) must be a multiple of aggregation interval ({interval})"
                ),
            )?;
        }
        if self.log {
            self.run.log = Some(Log {
                prefix: self.prefix.take().unwrap_or_else(|| "pgbench_log".to_owned()),
                aggregate: self.aggregate,
                sampling: self.sampling,
            });
        }
        Ok(())
    }

    fn judge_initialize(mut self, given: &[Opt]) -> Result<Request, UsageError> {
        if let Some(flag) = first_of(given, Mode::Benchmark) {
            return Err(UsageError::new(
                "some of the specified options cannot be used in initialization (-i) mode",
            )
            .detail(format!("--{flag} is for a run")));
        }
        if let Some(own) = given
            .iter()
            .find(|o| matches!(o, Opt::Json | Opt::HdrLog | Opt::ExtraReport | Opt::Reactor))
        {
            let name = FLAGS.iter().find(|f| f.opt == *own).map_or("", |f| f.long);
            return Err(UsageError::new(format!(
                "--{name} cannot be used in initialization (-i) mode"
            )));
        }
        require(
            self.init.partitions > 0 || self.method.is_none(),
            "--partition-method requires greater than zero --partitions",
        )?;
        self.init.partition_method = self.method.unwrap_or_default();
        if self.no_vacuum {
            self.init.steps.retain(|s| *s != 'v');
        }
        if self.foreign_keys && !self.init.steps.contains(&'f') {
            self.init.steps.push('f');
        }
        self.init.connect = self.run.connect;
        Ok(Request::Initialize(self.init))
    }
}

/// Returns the name of the first given option that is only for `mode`.
fn first_of(given: &[Opt], mode: Mode) -> Option<&'static str> {
    given
        .iter()
        .find_map(|opt| FLAGS.iter().find(|f| f.opt == *opt && f.mode == mode))
        .map(|f| f.long)
}

/// Checks that `holds`, or else refuses the command line with `refusal`.
fn require(holds: bool, refusal: impl Into<String>) -> Result<(), UsageError> {
    if holds { Ok(()) } else { Err(UsageError::new(refusal)) }
}
