//! `pgdyno replay`: the statements of a server's log on another server.

mod text;

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::Args;
use pgdyno_model::units::Span;
use pgdyno_replay::{
    ConnectOptions, ReadOptions, Recording, ReplayEnd, ReplayOptions, ReplayProgress, ReplayReport,
    Speed, replay,
};
use pgdyno_report::json::json;

use crate::context::Context;
use crate::duration::parse_duration;
use crate::error::CommandError;
use crate::exit_status::ExitStatus;
use crate::output::{hint, print};

/// Least time between two lines of progress on a terminal (seconds).
const OFTEN: f64 = 0.9;

/// Least time between two lines of progress elsewhere (seconds).
const SELDOM: f64 = 10.0;

/// Size of a log that takes some seconds to read (bytes).
const LONG_LOG: u64 = 500_000_000;

#[derive(Args, Debug)]
#[command(after_help = "\
Environment:
  PGHOST, PGPORT, PGUSER, PGPASSWORD, …
            Connections to servers of yours, as libpq has them

Examples:
  pgdyno replay --dry-run postgresql.csv          Say what the log holds; touch no server
  pgdyno replay --dsn host=copy postgresql.csv    Replay it on the server `copy`, as fast as it was
  pgdyno replay --dsn host=copy --speed 2 *.json  Replay several files of one log, twice as fast

See also: pgdyno-pgbench(1), pgdyno-run(1)")]
pub(crate) struct ReplayArgs {
    /// Files of one log, in any order: `csvlog` or `jsonlog` of PostgreSQL 13 or newer. `-` is
    /// standard input
    #[arg(value_name = "LOG", required = true)]
    logs: Vec<PathBuf>,
    /// Server that is written to, and role: a URI or `keyword=value` words. Give a password in
    /// PGPASSWORD or `.pgpass`
    #[arg(long, value_name = "DSN", required_unless_present = "dry_run")]
    dsn: Option<String>,
    /// Times as fast as the log: a number, or `max` to wait for nothing but each session's order
    #[arg(long, value_name = "FACTOR", default_value = "1")]
    speed: Speed,
    /// Send all sessions to this database [default: each to the database of its name in the log]
    #[arg(long, value_name = "DBNAME")]
    database: Option<String>,
    /// Replay only the sessions of this database of the log. May be repeated
    #[arg(long, value_name = "DBNAME")]
    only_database: Vec<String>,
    /// Number of sessions at one time at most [default: what the server has room for; with `--speed
    /// max`: as many as in the log]
    #[arg(long, value_name = "NUM", value_parser = clap::value_parser!(u32).range(1..))]
    max_connections: Option<u32>,
    /// Cancel a statement that takes longer than this and its duration in the log
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = parse_duration)]
    statement_timeout: Span,
    /// End the replay after this time
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    max_duration: Option<Span>,
    /// Skip statements that the log does not hold whole, and report how many
    #[arg(long)]
    skip_unknown: bool,
    /// Leave out the last record of a file if it is cut off
    #[arg(long)]
    allow_cut: bool,
    /// Take parameters that end in `...` as they are: log_parameter_max_length was -1
    #[arg(long)]
    whole_parameters: bool,
    /// Read the log, say what it holds, and touch no server
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Replays the log, and prints what was measured.
pub(crate) fn run(options: &ReplayArgs, context: &Context) -> Result<ExitStatus, CommandError> {
    hint_at_length(&options.logs);
    let read_options = ReadOptions { stop: Some(context.stop_flag()), ..options.read_options() };
    let recording = Recording::read(&options.logs, &read_options)?;
    let summary = recording.summary();
    if options.dry_run {
        let text = if options.json { json(&summary)? } else { text::summary(&summary) };
        print(&text);
        return Ok(ExitStatus::Success);
    }
    if !summary.obstacles.is_empty() && !options.skip_unknown {
        return Err(text::refusal(&summary));
    }
    text::cautions(&summary).iter().for_each(|line| hint(line));
    let connect = ConnectOptions {
        dsn_or_dbname: options.dsn.clone(),
        fallback_application_name: Some("pgdyno".into()),
        ..ConnectOptions::default()
    };
    let between = if std::io::stderr().is_terminal() { OFTEN } else { SELDOM };
    let mut next_s = between;
    let mut observe = |progress: &ReplayProgress| {
        if progress.elapsed_s >= next_s {
            next_s = progress.elapsed_s + between;
            hint(&text::progress(progress));
        }
    };
    let stop = context.stop();
    let report = replay(&recording, &connect, &options.replay_options(), stop, &mut observe)?;
    print(&if options.json { json(&report)? } else { text::report(&report) });
    Ok(status(&report))
}

/// Says that a log is read that takes a while.
fn hint_at_length(logs: &[PathBuf]) {
    let size = |path: &PathBuf| path.metadata().map_or(0, |metadata| metadata.len());
    let bytes: u64 = logs.iter().map(size).sum();
    if bytes >= LONG_LOG {
        hint(&format!("reading a log of {} MB", bytes / 1_000_000));
    }
}

/// Returns the exit status for what became of the sessions. Statements that fail are a result.
fn status(report: &ReplayReport) -> ExitStatus {
    if report.end == ReplayEnd::Interrupted {
        ExitStatus::Interrupted
    } else if report.lost_sessions + report.failed_connections > 0 {
        ExitStatus::TrialFailed
    } else {
        ExitStatus::Success
    }
}

impl ReplayArgs {
    fn read_options(&self) -> ReadOptions {
        ReadOptions {
            databases: self.only_database.clone(),
            allow_cut: self.allow_cut,
            whole_parameters: self.whole_parameters,
            stop: None,
        }
    }

    fn replay_options(&self) -> ReplayOptions {
        ReplayOptions {
            speed: self.speed,
            database: self.database.clone(),
            max_connections: self.max_connections.map(|number| number as usize),
            statement_timeout: self.statement_timeout.0,
            max_duration: self.max_duration.map(|span| span.0),
        }
    }
}
