//! Reads a command line into a [`Request`], and refuses it where pgbench would.

use std::ffi::OsString;
use std::io::IsTerminal as _;

use pgdyno_dataset::trust::Trust;
use pgdyno_engine::allow_open_files;

use crate::dialect::Dialect;
use crate::flags::{Flag, Mode, Reading};
use crate::getopt::{self, Given};
use crate::request::{Initialize, Request, Run};
use crate::scripts::{Builtin, Chosen};
use crate::usage_error::UsageError;
use crate::values::seed;

/// Files beside the load's: of signals, of the session that sets up, of results (count).
const BESIDE_LOAD: usize = 8;

/// Reads a command line. Returns the request, and notes where the reading depends on the version of
/// pgbench.
///
/// # Errors
/// pgbench would refuse the command line.
pub(crate) fn read(
    args: &[OsString],
    say: &mut dyn FnMut(&str),
) -> Result<(Request, Vec<String>), UsageError> {
    let is_told =
        |arg: &OsString| matches!(arg.to_str(), Some("-?" | "--help" | "-V" | "--version"));
    let read = &args[usize::from(args.first().is_some_and(is_told))..];
    let (dialect, parsed, note) =
        getopt::choose(read).map_err(|e| UsageError::usage(e.to_string()))?;
    // pgbench looks at these before anything else, and only in the first place.
    let words: Vec<&str> = args.iter().map(|arg| arg.to_str().unwrap_or_default()).collect();
    let first = match words[..] {
        ["--dialect", _, first, ..] => Some(first),
        [own, first, ..] if own.starts_with("--dialect=") => Some(first),
        [first, ..] => Some(first),
        [] => None,
    };
    match first {
        Some("-?" | "--help") => {
            return Ok((Request::Print(crate::help::text(dialect)), Vec::new()));
        }
        Some("-V" | "--version") => return Ok((Request::Print(version(dialect)), Vec::new())),
        _ => {}
    }
    let mut reading = Reading {
        run: Run::new(dialect),
        init: Initialize {
            dialect,
            steps: "dtgvp".chars().collect(),
            fillfactor: 100,
            on_terminal: std::io::stderr().is_terminal(),
            ..Initialize::default()
        },
        asked: parsed.options.iter().any(|(f, _)| f.long == "dialect").then_some(dialect),
        notes: note.into_iter().collect(),
        ..Reading::default()
    };
    let mut tell_seed = |seed: Option<u64>| {
        if let Some(seed) = seed {
            say(&format!("setting random seed to {seed}"));
        }
    };
    if let Ok(text) = std::env::var("PGBENCH_RANDOM_SEED") {
        reading.run.seed = Some(seed(&text, "PGBENCH_RANDOM_SEED environment variable")?);
        tell_seed(reading.run.seed);
    }
    for (flag, value) in &parsed.options {
        flag.take(&mut reading, value.as_deref())?;
        if flag.long == "random-seed" {
            tell_seed(reading.run.seed);
        }
        if let Some(request) = reading.request {
            return Ok((request, Vec::new()));
        }
    }
    if let Some(error) = parsed.error {
        return Err(UsageError::usage(error.to_string()));
    }
    if reading.is_initialization && reading.run.store.is_some() {
        reading.notes.push("an initialization (-i) is no run: nothing is stored".to_owned());
    }
    let notes = std::mem::take(&mut reading.notes);
    Ok((reading.judge(&parsed.options, &parsed.operands)?, notes))
}

/// `--version`.
fn version(dialect: Dialect) -> String {
    let pgdyno = env!("CARGO_PKG_VERSION");
    format!("pgbench (PostgreSQL) {dialect}.0 compatible (pgdyno {pgdyno})\n")
}

impl Reading {
    /// Checks rules that concern several options, and makes the request.
    fn judge(mut self, given: &[Given], operands: &[OsString]) -> Result<Request, UsageError> {
        let mut operands = operands.iter();
        let run = &mut self.run;
        if run.connect.dsn_or_dbname.is_none()
            && let Some(name) = operands.next()
        {
            let text = name.to_str().ok_or_else(|| {
                UsageError::new(format!("invalid database \"{}\": it is not UTF-8", name.display()))
            })?;
            run.connect.dsn_or_dbname = Some(text.to_owned());
        }
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
                "too many command-line arguments (first is \"{}\")",
                extra.display()
            ))
            .try_help());
        }
        if self.is_initialization {
            return self.judge_initialize(given);
        }
        let initializes =
            |flag: &Flag| flag.mode == Mode::Initialization || flag.long == "init-batch-size";
        if let Some(flag) = first_of(given, initializes) {
            return Err(UsageError::new(
                "some of the specified options cannot be used in benchmarking mode",
            )
            .detail(format!("--{} is for initialization (-i)", flag.long)));
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
            "an unlimited number of transaction tries can only be used with --latency-limit \
             or a duration (-T)",
        )?;
        require(
            !(self.run.exit_on_abort && self.run.continue_on_error),
            "--exit-on-abort and --continue-on-error exclude each other",
        )?;
        self.judge_generators()?;
        self.run.vacuum = !self.no_vacuum;
        for script in &self.run.scripts {
            script.check_parameters(self.run.protocol)?;
        }
        Ok(Request::Run(Box::new(self.run)))
    }

    /// Deals the run to its generators, which may take more threads; without any, this process is
    /// to have the open files that it needs.
    fn judge_generators(&mut self) -> Result<(), UsageError> {
        let run = &mut self.run;
        require(
            run.generators.is_some() || run.max_start_skew.is_none(),
            "--max-start-skew is allowed only with --generators",
        )?;
        require(
            run.generators.is_some() || !run.allow_saturated,
            "--allow-saturated is allowed only with --generators",
        )?;
        let Some(generators) = &mut run.generators else {
            let (clients, threads) = (run.clients as usize, run.threads as usize);
            return Ok(allow_open_files(clients, threads, BESIDE_LOAD)?);
        };
        require(run.log.is_none(), "--generators cannot be used with a log of transactions (-l)")?;
        let limits = &mut generators.limits;
        limits.allow_saturated = run.allow_saturated;
        limits.max_start_skew = run.max_start_skew.unwrap_or(limits.max_start_skew);
        let dealt = generators.deal(run.clients, run.threads);
        (run.threads, _) = dealt.map_err(|e| UsageError::new(format!("--generators: {e}")))?;
        Ok(())
    }

    fn judge_log(&mut self) -> Result<(), UsageError> {
        let (is_logged, log) = (self.is_logged, std::mem::take(&mut self.log));
        let (is_sampled, is_aggregated) = (log.sampling.is_some(), log.aggregate.is_some());
        for (holds, refusal) in [
            (
                is_logged || !is_sampled,
                "log sampling (--sampling-rate) is allowed only when logging transactions (-l)",
            ),
            (
                !(is_sampled && is_aggregated),
                "log sampling (--sampling-rate) and aggregation (--aggregate-interval) cannot be \
                 used at the same time",
            ),
            (
                is_logged || !is_aggregated,
                "log aggregation is allowed only when actually logging transactions",
            ),
            (
                is_logged || log.prefix.is_none(),
                "log file prefix (--log-prefix) is allowed only when logging transactions (-l)",
            ),
        ] {
            require(holds, refusal)?;
        }
        if let (Some(interval), Some(seconds)) = (log.aggregate, self.run.seconds) {
            require(
                interval <= seconds,
                format!(
                    "number of seconds for aggregation ({interval}) must not be higher than test \
                     duration ({seconds})"
                ),
            )?;
            require(
                seconds % interval == 0,
                format!(
                    "duration ({seconds}) must be a multiple of aggregation interval ({interval})"
                ),
            )?;
        }
        self.run.log = is_logged.then_some(log);
        Ok(())
    }

    fn judge_initialize(mut self, given: &[Given]) -> Result<Request, UsageError> {
        if let Some(flag) = first_of(given, |flag| flag.mode == Mode::Benchmark) {
            return Err(UsageError::new(
                "some of the specified options cannot be used in initialization (-i) mode",
            )
            .detail(format!("--{} is for a run", flag.long)));
        }
        let is_of_runs =
            |name| matches!(name, "json" | "hdr-log" | "extra-report" | "reactor" | "generators");
        if let Some((own, _)) = given.iter().find(|(flag, _)| is_of_runs(flag.long)) {
            let name = own.long;
            return Err(UsageError::new(format!(
                "--{name} cannot be used in initialization (-i) mode"
            )));
        }
        require(
            self.init.partitions > 0 || self.partition_method.is_none(),
            "--partition-method requires greater than zero --partitions",
        )?;
        self.init.partition_method = self.partition_method.unwrap_or_default();
        if self.init.batch_size.is_some() && self.init.steps.contains(&'G') {
            return Err(UsageError::new(
                "--init-batch-size cannot be used with rows that the server makes (step \"G\")",
            )
            .hint("take step \"g\" in -I, or leave --init-batch-size out"));
        }
        if self.no_vacuum {
            self.init.steps.retain(|s| *s != 'v');
        }
        if self.foreign_keys && !self.init.steps.contains(&'f') {
            self.init.steps.push('f');
        }
        self.init.scale = self.run.scale.unwrap_or(1);
        self.init.connect = self.run.connect;
        Ok(Request::Initialize(Box::new(self.init)))
    }
}

/// Returns the first given option that `is_wanted`.
fn first_of(given: &[Given], is_wanted: impl Fn(&Flag) -> bool) -> Option<&'static Flag> {
    given.iter().map(|(flag, _)| *flag).find(|flag| is_wanted(flag))
}

/// Checks that `holds`, or else refuses the command line with `refusal`.
fn require(holds: bool, refusal: impl Into<String>) -> Result<(), UsageError> {
    if holds { Ok(()) } else { Err(UsageError::new(refusal)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_size_is_for_an_initialization_that_sends_its_rows() {
        let read_line = |line: &str| {
            let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            read(&args, &mut |_| {}).map(|(request, _)| request)
        };
        for (line, size) in [
            ("-i", None),
            ("-i --init-batch-size=1", Some(1)),
            ("--init-batch-size 2147483647 -i -I dt", Some(2_147_483_647)),
        ] {
            let request = read_line(line);
            let Ok(Request::Initialize(init)) = request else { panic!("{line}: {request:?}") };
            assert_eq!(init.batch_size, size, "{line}");
        }
        for (line, says) in [
            ("-i --init-batch-size=0", "--init-batch-size must be in range 1..2147483647"),
            ("-i --init-batch-size=2147483648", "must be in range 1.."),
            ("-i --init-batch-size=1k", "invalid value \"1k\" for option --init-batch-size"),
            // The value is read before options are judged together, as pgbench's are.
            ("--init-batch-size=x", "invalid value \"x\""),
            ("--init-batch-size=1", "cannot be used in benchmarking mode"),
            ("-i -c 2 --init-batch-size=1 -I G", "cannot be used in initialization (-i) mode"),
            ("-i --init-batch-size=1 -I dtGvp", "(step \"G\")"),
            ("-i --init-batch-size", "option '--init-batch-size' requires an argument"),
            ("-i --init-batch=1", "unrecognized option '--init-batch"),
        ] {
            let refused = read_line(line).unwrap_err();
            assert!(refused.what().contains(says), "{line}: {refused:?}");
        }
    }
}
