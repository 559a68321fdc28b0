//! `pgdyno store thin`: removes detail of old runs.

use std::num::NonZeroU32;

use clap::Args;
use pgdyno_report::text::wrap;
use pgdyno_store::{DEFAULT_EVERY_S, Store, Stored, Thinning};
use pgdyno_text::format::counted;

use crate::commands::rm::{print_compacted, resolve_records};
use crate::confirmation::Confirmation;
use crate::context::Context;
use crate::error::CommandError;
use crate::exit_status::ExitStatus;
use crate::output::{print, print_line};
use crate::shared_options::StoreOption;
use pgdyno_report::json::json_list;

/// Line on the losses when telemetry is thinned.
const LOST_TELEMETRY: &str = "\
lost: points of telemetry's charts and of `export`'s table `telemetry`, with the extremes between \
two that stay; telemetry's causes beside changes of tps";

/// Line on the losses when latency distributions are removed.
const LOST_LATENCIES: &str = "\
lost: the heat map of latency; percentiles of a rate's stages; percentiles over several seconds in \
the page's chart of latency become the longest of these seconds";

/// Line on the parts that stay in either case.
const KEPT: &str = "\
kept: answer, table, intervals, percentiles, wait events, reasons of differences, tps and \
percentiles of every second, settings, server logs";

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pgdyno store thin --before 2026-01-01
            Say what thinning last year's runs would lose, and ask
  pgdyno store thin --every 10 quickstart-20260131-101500-abcd
            Keep a sample of telemetry in ten seconds

See also: pgdyno-store-size(1), pgdyno-archive(1), pgdyno-rm(1)")]
pub(crate) struct StoreThinArgs {
    /// The runs to thin: ids, or beginnings that only one id has
    #[arg(value_name = "RUN", required_unless_present = "before")]
    pub(crate) runs: Vec<String>,
    /// Thin the runs that began before DATE (2026-01-31, UTC)
    #[arg(long, value_name = "DATE", value_parser = date, conflicts_with = "runs")]
    pub(crate) before: Option<String>,
    /// Keep a sample of telemetry in so many seconds
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = DEFAULT_EVERY_S,
        value_parser = clap::value_parser!(u32).range(2..=86_400)
    )]
    pub(crate) every: u32,
    /// Print what was removed as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) confirmation: Confirmation,
    #[command(flatten)]
    pub(crate) store: StoreOption,
}

/// Prints what is lost, asks, and thins the runs.
pub(crate) fn run(options: &StoreThinArgs, context: &Context) -> Result<ExitStatus, CommandError> {
    let mut store = options.store.open_for_change(context)?;
    let every = NonZeroU32::new(options.every).unwrap_or(NonZeroU32::MIN);
    let (mut planned, mut samples, mut seconds) = (Vec::new(), false, false);
    for run in runs(&store, options)? {
        let thinning = store.plan_thinning(&run, every)?;
        if !options.json || thinning.is_empty() {
            say(options, &describe(&thinning));
        }
        if !thinning.is_empty() {
            planned.push(run);
            samples |= thinning.samples > 0;
            seconds |= thinning.seconds > 0;
        }
    }
    if planned.is_empty() {
        if options.json {
            print(&json_list::<Thinning>(&[])?);
        }
        say(options, "nothing was removed");
        return Ok(ExitStatus::Success);
    }
    for (is_so, line) in [(samples, LOST_TELEMETRY), (seconds, LOST_LATENCIES), (true, KEPT)] {
        if is_so {
            wrap(line, context.prose_width(), "  ").iter().for_each(|line| say(options, line));
        }
    }
    let question = format!("Thin {}? This cannot be undone.", counted(planned.len() as u64, "run"));
    if !options.confirmation.ask(&question, context)? {
        say(options, "nothing was removed");
        return Ok(ExitStatus::Success);
    }
    let thinned = store.thin(&planned, every)?;
    let compacted = store.compact();
    if options.json {
        print(&json_list(&thinned)?);
    } else {
        print_line(&format!("thinned: {}", counted(thinned.len() as u64, "run")));
        print_compacted(compacted?);
    }
    Ok(ExitStatus::Success)
}

/// Prints a line for readers; with `--json` on standard error.
fn say(options: &StoreThinArgs, line: &str) {
    if options.json { crate::output::hint(line) } else { print_line(line) }
}

/// Returns the ids of the runs that are named, or that began before the date.
fn runs(store: &Store, options: &StoreThinArgs) -> Result<Vec<String>, CommandError> {
    if let Some(before) = &options.before {
        let old = |started: String| started.as_str() < before.as_str();
        let runs = store.runs()?.into_iter().filter(|run| old(run.started_at.to_string()));
        return Ok(runs.map(|run| run.id).collect());
    }
    let mut runs = Vec::new();
    for record in resolve_records(&options.runs, |name| store.resolve_named(name))? {
        match record {
            Stored::Run(run) => runs.push(run),
            other => {
                let (kind, id) = (other.kind(), other.id());
                let message =
                    format!("cannot thin {kind} {id}: only runs hold seconds and telemetry");
                let help = "`pgdyno list` shows the runs; `pgdyno rm` removes it";
                return Err(CommandError::new(message).with_help(help));
            }
        }
    }
    Ok(runs)
}

fn describe(thinning: &Thinning) -> String {
    if thinning.is_empty() {
        return format!("{}: nothing to thin", thinning.run);
    }
    let mut parts = Vec::new();
    if thinning.samples > 0 {
        let samples = counted(thinning.samples, "sample");
        parts.push(format!("{samples} of telemetry, one in {} s stays", thinning.every_s));
    }
    if thinning.seconds > 0 {
        let seconds = counted(thinning.seconds, "second");
        parts.push(format!("the latency distribution of {seconds}"));
    }
    format!("{}: {}", thinning.run, parts.join("; "))
}

/// Checks a date as `list` shows it.
fn date(text: &str) -> Result<String, String> {
    let is_date = text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    if is_date { Ok(text.to_owned()) } else { Err("write it like 2026-01-31".to_owned()) }
}
