//! `pgdyno capture`: the load of a server as a workload.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use pgdyno_capture::document::{Obstacle, Part, Reason};
use pgdyno_capture::{CaptureOptions, Captured, ConnectOptions, capture};
use pgdyno_model::units::Span;
use pgdyno_report::json::json;
use pgdyno_text::format;

use crate::context::Context;
use crate::duration::parse_duration;
use crate::error::CommandError;
use crate::exit_status::ExitStatus;
use crate::output::{hint, print};

#[derive(Args, Debug)]
#[command(after_help = "\
Environment:
  PGHOST, PGPORT, PGUSER, PGPASSWORD, …
            Connections to servers of yours, as libpq has them

Examples:
  pgdyno capture --dsn host=db shop      Watch for a minute, and write the folder `shop`
  pgdyno capture --dsn host=db --watch 1h --top 200 shop
                                         Watch an hour, for statements that are rare
  pgdyno load ./shop -d twin             Load its tables into the database `twin`
  pgdyno fidelity shop --dsn dbname=twin
                                         Say how alike the two are

See also: pgdyno-fidelity(1), pgdyno-load(1), pgdyno-run(1)")]
pub(crate) struct CaptureArgs {
    /// Folder to write; it must not be there yet, or be empty
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// Server that is read, and role: a URI or `keyword=value` words. Nothing is written there.
    /// Give a password in PGPASSWORD or `.pgpass`
    #[arg(long, value_name = "DSN")]
    dsn: String,
    /// Schema whose tables and statements are captured
    #[arg(long, value_name = "NAME", default_value = "public")]
    schema: String,
    /// Number of statements at most: those that took most of the time
    #[arg(long, value_name = "NUM", default_value = "100",
          value_parser = clap::value_parser!(u32).range(1..))]
    top: u32,
    /// Capture what runs in this time from now on
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = parse_duration)]
    watch: Span,
    /// Capture at once what the server has counted since its statistics were reset. Waits are
    /// unknown then
    #[arg(long, conflicts_with = "watch")]
    since_reset: bool,
    /// Print JSON: what `captured.json` has
    #[arg(long)]
    json: bool,
}

/// Captures the load, and prints what was captured and what was not.
pub(crate) fn run(options: &CaptureArgs, context: &Context) -> Result<ExitStatus, CommandError> {
    let connect = ConnectOptions {
        dsn_or_dbname: Some(options.dsn.clone()),
        fallback_application_name: Some("pgdyno".into()),
        ..ConnectOptions::default()
    };
    let how = CaptureOptions {
        schema: options.schema.clone(),
        top: options.top as usize,
        watch: (!options.since_reset).then_some(options.watch.0),
    };
    if let Some(watch) = how.watch {
        hint(&format!("watching the server for {}", format::duration(watch.as_secs_f64())));
    }
    let captured = capture(&connect, &options.folder, &how, context.stop())?;
    let folder = options.folder.display().to_string();
    print(&if options.json { json(&captured)? } else { text(&captured, &folder) });
    Ok(ExitStatus::Success)
}

/// Renders what was captured into `folder`.
fn text(captured: &Captured, folder: &str) -> String {
    let left_out = &captured.statements_left_out;
    let sum = |counts: &mut dyn Iterator<Item = u64>| counts.sum::<u64>();
    let calls = sum(&mut captured.statements.iter().map(|s| s.counts.calls));
    let missed = sum(&mut left_out.iter().map(|s| s.counts.calls));
    let all = captured.statements.len() + left_out.len();
    let mut lines = vec![
        format!(
            "{folder}: {} of {} and {}",
            captured.statements.len(),
            format::counted(all as u64, "statement"),
            format::counted(captured.tables.len() as u64, "table"),
        ),
        format!("  they are {} of the calls", percent(calls as f64 / (calls + missed) as f64)),
        format!("  {}", activity(captured)),
    ];
    let guessed: Vec<u64> = captured
        .statements
        .iter()
        .filter(|statement| !statement.guessed.is_empty())
        .map(|statement| statement.counts.calls)
        .collect();
    if !guessed.is_empty() {
        lines.push(format!(
            "  guessed: {} with {} have parameters whose values nothing tells but their type",
            format::counted(guessed.len() as u64, "statement"),
            format::counted(guessed.iter().sum::<u64>(), "call"),
        ));
    }
    let reasons = left_out.iter().map(|one| (reason(&one.reason), one.counts.calls));
    lines.extend(tally(reasons).map(|(why, (count, calls))| {
        let statements = format::counted(count, "statement");
        format!("  left out: {statements} ({}): {why}", format::counted(calls, "call"))
    }));
    lines.extend(
        captured.tables_left_out.iter().map(|table| {
            format!("  left out: table {}: {}", table.name, obstacle(&table.obstacle))
        }),
    );
    lines.extend(captured.omissions.iter().map(|omission| {
        format!("  not as it was: {}.{}: {}", omission.table, omission.name, part(&omission.part))
    }));
    if captured.forgotten > 0 {
        lines.push(
            "  the server forgot statements meanwhile: raise pg_stat_statements.max for a whole \
             picture"
                .to_owned(),
        );
    }
    lines.push(
        "  cannot be known: the values, which are asked for most, and what ran in one transaction"
            .to_owned(),
    );
    let path = if folder.contains('/') { folder.to_owned() } else { format!("./{folder}") };
    lines.push(String::new());
    lines.push(format!("pgdyno load {path} -d TWIN    # its tables, into another database"));
    lines.push(format!("pgdyno fidelity {path} --dsn dbname=TWIN"));
    lines.join("\n") + "\n"
}

fn percent(share: f64) -> String {
    format!("{}%", format::percent(share))
}

/// Renders how much the server did.
fn activity(captured: &Captured) -> String {
    let commits = (captured.database.commits as f64).max(1.0);
    let hot = captured.database.hot_share();
    let hot = hot.map(|share| format!(", {} of updates HOT", percent(share)));
    format!(
        "in {}: {} transactions/s, with {} calls and {:.0} bytes of WAL each{}",
        format::duration(captured.seconds),
        format::rate(captured.commits_per_s()),
        format::rate(captured.total.calls as f64 / commits),
        captured.total.wal_bytes as f64 / commits,
        hot.unwrap_or_default(),
    )
}

/// Counts entries, and adds up their calls, by what they say.
fn tally(
    entries: impl Iterator<Item = (String, u64)>,
) -> impl Iterator<Item = (String, (u64, u64))> {
    let mut all: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (what, calls) in entries {
        let (count, sum) = all.entry(what).or_default();
        *count += 1;
        *sum += calls;
    }
    all.into_iter()
}

fn reason(reason: &Reason) -> String {
    match reason {
        Reason::Utility => "no rows are read or changed".to_owned(),
        Reason::Beyond => "beyond `--top`".to_owned(),
        Reason::HoldsValues => "the text holds values".to_owned(),
        Reason::NoRight => "the role may not see the text".to_owned(),
        Reason::NotUnderstood => {
            "the text is no SQL any more, as `extract($1 FROM a)` is not".to_owned()
        }
        Reason::Relation { name } => format!("{name} is not captured"),
        Reason::Function { name } => format!("{name} is a function of the database"),
        Reason::Parameter { number } => format!("nothing tells the values of ${number}"),
        Reason::Refused { sqlstate } => {
            format!("the server refuses the rewritten text (SQLSTATE {sqlstate})")
        }
    }
}

fn obstacle(obstacle: &Obstacle) -> String {
    match obstacle {
        Obstacle::Inheritance => {
            "it is a view, foreign, partitioned, a partition or a child".to_owned()
        }
        Obstacle::RowSecurity => "it is temporary, or has policies by row".to_owned(),
        Obstacle::NoRight => "the role has no SELECT on it".to_owned(),
        Obstacle::Column { column, r#type } => {
            format!("column {column} of type {type} cannot be filled")
        }
        Obstacle::Quotes => "a name in it needs quotes".to_owned(),
    }
}

fn part(part: &Part) -> &'static str {
    match part {
        Part::UniqueIndex => "a unique index is missing: its columns cannot be filled uniquely",
        Part::IndexExpression => {
            "an index is missing: it has a predicate, an expression or an \
                                  operator class of an extension"
        }
        Part::ForeignKey => "a foreign key is missing",
        Part::Check => "a check or trigger is missing",
        Part::Default => "the default is made up, or missing",
        Part::Statistics => "it has no statistics, so that its columns are a guess; ANALYZE it",
        Part::Frequencies => "its values are equally frequent",
    }
}
