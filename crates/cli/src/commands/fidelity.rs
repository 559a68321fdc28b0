//! `pgdyno fidelity`: a captured workload on another server, beside the original.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use pgdyno_capture::{Agreement, ConnectOptions, Fidelity, ReplayOptions, ReplayRate, replay};
use pgdyno_model::experiment::Protocol;
use pgdyno_model::units::Span;
use pgdyno_report::json::json;
use pgdyno_text::format;

use crate::context::Context;
use crate::duration::parse_duration;
use crate::error::CommandError;
use crate::exit_status::ExitStatus;
use crate::output::{hint, print};

/// Longest text of a statement in the table (characters).
const LONGEST: usize = 60;

#[derive(Args, Debug)]
#[command(after_help = "\
Environment:
  PGHOST, PGPORT, PGUSER, PGPASSWORD, …
            Connections to servers of yours, as libpq has them

Examples:
  pgdyno fidelity shop --dsn dbname=twin                Replay at the original's rate for a minute
  pgdyno fidelity shop --dsn dbname=twin --rate max -c 8  As fast as eight connections can

See also: pgdyno-capture(1), pgdyno-load(1)")]
pub(crate) struct FidelityArgs {
    /// Folder that `pgdyno capture` wrote
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// Database that the folder's tables are loaded into: a URI or `keyword=value` words. Its
    /// server needs pg_stat_statements. Give a password in PGPASSWORD or `.pgpass`
    #[arg(long, value_name = "DSN")]
    dsn: String,
    /// Number of connections [default: as many as the original had]
    #[arg(short = 'c', long)]
    clients: Option<NonZeroU32>,
    /// Transactions a second over all connections: `original`, a number, or `max`
    #[arg(long, value_name = "RATE", default_value = "original", value_parser = parse_rate)]
    rate: ReplayRate,
    /// Length of the stretch that is compared
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = parse_duration)]
    duration: Span,
    /// Load before that stretch
    #[arg(long, value_name = "DURATION", default_value = "3s", value_parser = parse_duration)]
    warm_up: Span,
    /// Protocol that statements are sent with
    #[arg(long, value_enum, default_value = "prepared")]
    protocol: ProtocolName,
    /// Seed of random numbers
    #[arg(long, default_value = "1")]
    seed: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ProtocolName {
    Simple,
    Extended,
    Prepared,
}

fn parse_rate(given: &str) -> Result<ReplayRate, &'static str> {
    match given {
        "original" => Ok(ReplayRate::Original),
        "max" => Ok(ReplayRate::Max),
        number => match number.parse() {
            Ok(rate) if rate > 0.0 && f64::is_finite(rate) => Ok(ReplayRate::PerSecond(rate)),
            _ => Err("a rate is `original`, `max` or a number above 0"),
        },
    }
}

/// Replays the workload, and prints how alike the two servers' activities were.
pub(crate) fn run(options: &FidelityArgs, context: &Context) -> Result<ExitStatus, CommandError> {
    let connect = ConnectOptions {
        dsn_or_dbname: Some(options.dsn.clone()),
        fallback_application_name: Some("pgdyno".into()),
        ..ConnectOptions::default()
    };
    let how = ReplayOptions {
        clients: options.clients,
        rate: options.rate,
        warm_up: options.warm_up.0,
        length: options.duration.0,
        protocol: match options.protocol {
            ProtocolName::Simple => Protocol::Simple,
            ProtocolName::Extended => Protocol::Extended,
            ProtocolName::Prepared => Protocol::Prepared,
        },
        seed: options.seed,
    };
    let length = format::duration((how.warm_up + how.length).as_secs_f64());
    hint(&format!("replaying for {length}"));
    let (fidelity, measurement) = replay(&options.folder, &connect, &how, context.stop())?;
    if options.json {
        print(&json(&fidelity)?);
        return Ok(ExitStatus::Success);
    }
    let mut text = text(&fidelity);
    let failed = measurement.failed;
    if failed > 0 {
        text += &format!("{} of the replay failed\n", format::counted(failed, "transaction"));
    }
    print(&text);
    Ok(ExitStatus::Success)
}

fn percent(share: f64) -> String {
    format!("{}%", format::percent(share))
}

fn text(fidelity: &Fidelity) -> String {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::TableStyle::default());
    table.set_header(["", "original", "replay", "agreement"]);
    let mut row = |what: &str, agreement: Option<Agreement>, figure: fn(f64) -> String| {
        let shown = |value: Option<f64>| value.map(figure).unwrap_or_default();
        let cells = agreement.map_or_else(
            || [String::new(), String::new(), "unknown".to_owned()],
            |a| [shown(a.original), shown(a.replay), percent(a.agreement)],
        );
        let [original, replay, agreement] = cells;
        table.add_row([what.to_owned(), original, replay, agreement]);
    };
    row("calls, by statement", Some(fidelity.calls), format::rate);
    row("calls of a transaction", Some(fidelity.calls_per_transaction), format::rate);
    row("rows of a call, by statement", Some(fidelity.rows), format::rate);
    row("WAL of a transaction (bytes)", Some(fidelity.wal_bytes), format::rate);
    row("blocks found in shared buffers", fidelity.hit_ratio, percent);
    row("updates that were HOT", fidelity.hot_share, percent);
    row("waits, by class", fidelity.waits, format::rate);
    let mut text = format!(
        "fidelity {}: the mean of the agreements below\n\
         transactions: {}/s, the original's {}/s\n\n{table}\n\n",
        percent(fidelity.score),
        format::rate(fidelity.replay_per_s),
        format::rate(fidelity.original_per_s),
    );
    let (original, twin) = &fidelity.versions;
    if major(original) != major(twin) {
        text += &format!(
            "the original's PostgreSQL is {original}, this one {twin}: WAL, waits and plans differ \
             by that, too\n\n"
        );
    }
    text += &waits(fidelity);
    text += &statements(fidelity);
    text
}

fn major(version: &str) -> &str {
    version.split(|c: char| !c.is_ascii_digit()).next().unwrap_or(version)
}

/// Renders the shares of classes of waits.
fn waits(fidelity: &Fidelity) -> String {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::TableStyle::default());
    table.set_header(["active sessions", "original", "replay"]);
    for (class, (original, replay)) in &fidelity.wait_classes {
        table.add_row([class.clone(), percent(*original), percent(*replay)]);
    }
    format!("{table}\n\n")
}

/// Renders the statements, each with the original's figures and the replay's.
fn statements(fidelity: &Fidelity) -> String {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::TableStyle::default());
    table.set_header(["statement", "calls/tx", "rows/call", "WAL/call", "ms/call"]);
    let both = |a: Agreement, figure: fn(f64) -> String| {
        let shown = |value: Option<f64>| value.map(figure).unwrap_or_default();
        format!("{} : {}", shown(a.original), shown(a.replay))
    };
    for one in &fidelity.statements {
        let mut text: String = one.text.chars().take(LONGEST).collect();
        if text.len() < one.text.len() {
            text.push('…');
        }
        table.add_row([
            format!("{} {text}", one.number),
            both(one.calls, format::rate),
            both(one.rows, format::rate),
            both(one.wal_bytes, format::rate),
            both(one.time_ms, |ms| format!("{ms:.3}")),
        ]);
    }
    format!("{table}\noriginal : replay\n")
}
