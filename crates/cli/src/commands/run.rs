//! `pgdyno run`: runs an experiment, or resumes an interrupted run.

mod detach;
mod outcome;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::Args;
use pgdyno_audit::{Audit, ImportedRun};
use pgdyno_lab::file::Override;
use pgdyno_lab::notify::notify;
use pgdyno_lab::run::{self as lab, Outcome};
use pgdyno_lab::{Consent, LabError, Prepared, SessionEnd, Wipe, recipes};
use pgdyno_results::analysis::analyse;
use pgdyno_results::report::Page;
use pgdyno_results::store::Store;
use pgdyno_results::{RunView, report};

use self::outcome::OutcomeDocument;
use crate::context::Context;
use crate::error::CommandError;
use crate::exit_status::ExitStatus;
use crate::metrics::{Measured, Metrics, parse_address};
use crate::output::{print, print_line, print_stderr, report_error};
use crate::progress::ProgressOption;
use crate::render::to_json;
use crate::report_destination::{ReportDestination, is_standard_output};
use crate::shared_options::{StoreOption, TrustOption};

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// A recipe's name or an experiment file
    #[arg(
        value_name = "RECIPE|FILE",
        required_unless_present = "resume",
        conflicts_with = "resume"
    )]
    pub(crate) experiment: Option<String>,
    /// Set any key of the experiment file: `--set load.duration=2s --set factors.clients=[1,16]`.
    /// With `--resume`, only `experiment.repeats` can be set, and only to a larger number
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Use one of the sizes that the recipe or file defines (see `pgdyno recipes`). `--set` is
    /// applied after it
    #[arg(long, value_name = "SIZE", conflicts_with = "resume")]
    pub(crate) size: Option<String>,
    /// Print the plan and change nothing: every trial in order, every step that would change the
    /// host, the time and the space that it takes
    #[arg(long, conflicts_with = "resume")]
    pub(crate) dry_run: bool,
    /// Resume an interrupted run: execute its unfinished trials. With `--set experiment.repeats=N`
    /// also add repeats
    #[arg(long, value_name = "RUN")]
    pub(crate) resume: Option<String>,
    /// Measure an external server: a URI or `key=value` words. Give its password in PGPASSWORD or
    /// `.pgpass`. Several servers, `--dsn base:=DSN --dsn head:=DSN`, become the levels of a factor
    /// `server`
    #[arg(long, value_name = "[NAME:=]DSN")]
    pub(crate) dsn: Vec<String>,
    /// Store the serial numbers of disks. By default only their hashes are stored
    #[arg(long, conflicts_with = "resume")]
    pub(crate) keep_serials: bool,
    /// Allow DEVICE to be erased. May be repeated
    #[arg(long, value_name = "DEVICE")]
    pub(crate) wipe: Vec<PathBuf>,
    /// Erase a DEVICE of `--wipe` even if it holds a filesystem or a partition table
    #[arg(long, requires = "wipe")]
    pub(crate) overwrite_signature: bool,
    #[command(flatten)]
    pub(crate) trust: TrustOption,
    /// Write the HTML report to FILE; `-` writes it to standard output instead of the table
    /// [default: `reports/RUN.html` beside the store]
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Go on without this terminal: return once the run is in the store. `pgdyno attach` shows it,
    /// `pgdyno stop` ends it
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) detach: bool,
    /// The process that `--detach` starts
    #[arg(long, hide = true)]
    pub(crate) detached: bool,
    /// Run COMMAND in a shell when the run is over, with how it ended as JSON on its standard input
    #[arg(long, value_name = "COMMAND", conflicts_with = "dry_run")]
    pub(crate) notify: Option<String>,
    /// Serve metrics of the run for Prometheus at ADDRESS while it works: a port of the loopback
    /// interface, or IP:PORT. Whoever reaches the address can read them
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address, conflicts_with = "dry_run")]
    pub(crate) metrics: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) progress: ProgressOption,
    #[command(flatten)]
    pub(crate) store: StoreOption,
}

impl Options {
    fn wipe(&self) -> Wipe {
        Wipe { devices: self.wipe.clone(), overwrite_signature: self.overwrite_signature }
    }

    /// Returns the values of `--set`.
    fn set(&self) -> Result<Vec<Override>, CommandError> {
        Ok(self.set.iter().map(|given| Override::parse(given)).collect::<Result<_, _>>()?)
    }

    /// Reads the experiment and applies the options to it. Returns the recipe's name too, if the
    /// experiment is one.
    fn prepare(&self) -> Result<(Prepared, Option<String>), CommandError> {
        let source = recipes::source(self.name())?;
        let recipe = recipes::name_of(&source).map(str::to_owned);
        let mut overrides = match &self.size {
            Some(size) => pgdyno_lab::overrides_of(&source, size)?,
            None => Vec::new(),
        };
        overrides.extend(self.set()?);
        if self.keep_serials {
            overrides.push(Override::parse("telemetry.keep_serials=true")?);
        }
        overrides.extend(Override::servers(&self.dsn)?);
        Ok((Prepared::new(source, overrides)?.with_wipe(self.wipe())?, recipe))
    }

    /// Returns the recipe's name or the experiment's file. Empty for `--resume`.
    fn name(&self) -> &str {
        self.experiment.as_deref().unwrap_or_default()
    }
}

/// Runs or resumes, here or without the terminal; then runs the command of `--notify`.
pub(crate) fn run(options: &Options, context: &Context) -> Result<ExitStatus, CommandError> {
    if options.detached {
        detach::leave()?;
    } else if options.detach {
        return detach::detach(&options.store.path(), &options.trust.trust(), context);
    }
    let mut outcome = OutcomeDocument::new(&options.store.path());
    let ended = measure(options, context, &mut outcome);
    if let Some(command) = &options.notify {
        let outcome = to_json(&outcome.ended(&ended))?;
        if let Err(error) = notify(command, &outcome, context.stop()) {
            print_stderr(&format!("warning: {error}"));
        }
    }
    ended
}

/// Runs or resumes, then prints the results and writes the report.
fn measure(
    options: &Options,
    context: &Context,
    document: &mut OutcomeDocument,
) -> Result<ExitStatus, CommandError> {
    let store = options.store.path();
    let metrics = options.metrics.map(Metrics::serve).transpose()?;
    let mut recipe = None;
    let outcome = if let Some(run) = &options.resume {
        resume(options, run, &store, metrics.as_ref(), context)
    } else {
        let (prepared, name) = options.prepare()?;
        recipe = name;
        let (trust, file) = (options.trust.trust(), recipes::file(options.name()));
        if options.dry_run {
            prepared.check_programs(&trust, file)?;
            print(&pgdyno_lab::dry_run(&prepared)?);
            return Ok(ExitStatus::Success);
        }
        let prepared = prepared.with_trust(trust, file)?;
        context
            .with_progress_until(options.progress, end_of, |progress| {
                let progress = Measured::new(progress, metrics.as_ref());
                lab::run(&prepared, &store, &progress, context.stop())
            })
            .map_err(CommandError::from)
    };
    let outcome = match outcome {
        Err(CommandError::Lab(LabError::Interrupted)) => {
            print_stderr(
                "interrupted before the first trial: nothing was measured, nothing is left behind",
            );
            return Ok(ExitStatus::Interrupted);
        }
        outcome => outcome?,
    };
    let view = analyse(&Store::open_existing(&store)?, &outcome.run)?;
    document.measured(&outcome, &view);
    // The table comes before anything that can fail.
    if !is_standard_output(options.output.as_deref()) {
        print(&report::terminal(&view, context.width(), context.detail()));
    }
    let status = status_of(&outcome, &view);
    match write_report(options, &view, recipe.as_deref(), &store) {
        Ok(file) => document.report(file),
        // The outcome of the run matters more than a report that could not be written.
        Err(error) if status == ExitStatus::Success => return Err(error),
        Err(error) => drop(report_error(&error)),
    }
    Ok(status)
}

fn resume(
    options: &Options,
    run: &str,
    store: &Path,
    metrics: Option<&Metrics>,
    context: &Context,
) -> Result<Outcome, CommandError> {
    let servers = Override::servers(&options.dsn)?;
    let more = options.set()?;
    let consent = Consent { wipe: options.wipe(), trust: options.trust.trust() };
    Ok(context.with_progress_until(options.progress, end_of, |progress| {
        let progress = Measured::new(progress, metrics);
        lab::resume(run, &servers, &more, consent, store, &progress, context.stop())
    })?)
}

fn end_of(outcome: &Outcome) -> SessionEnd {
    outcome.end
}

/// Writes the run's report, and prints where it is. Returns the file, if it is one.
fn write_report(
    options: &Options,
    view: &RunView,
    recipe: Option<&str>,
    store: &Path,
) -> Result<Option<PathBuf>, CommandError> {
    let run = &view.run.id;
    let destination = ReportDestination::new(options.output.as_deref(), store, run)?;
    let file = destination.write(&Page::run(view)?)?.map(Path::to_owned);
    if let Some(file) = &file {
        print("");
        print_line(&format!("report: {}", file.display()));
    }
    if let Some(recipe) = recipe
        && let Some(figures) = import_figures(recipe, store)?
        && destination != ReportDestination::StandardOutput
    {
        print(&format!("beside the published report: pgdyno compare {figures} {run}"));
    }
    Ok(file)
}

/// Imports the figures of the published report that a recipe repeats, and returns the import's id.
/// Returns `None` if the recipe repeats no report.
fn import_figures(recipe: &str, store: &Path) -> Result<Option<String>, CommandError> {
    let Some((source, bytes)) = recipes::figures(recipe) else { return Ok(None) };
    let Some(audit) = Audit::of(&source, bytes) else { return Ok(None) };
    let import = ImportedRun::new(&source, bytes, audit.recognised, SystemTime::now());
    Ok(Some(lab::open_store(store)?.add_import(&import)?))
}

/// Returns how a run ended. A signal comes before a broken promise, that before trials that failed,
/// and those before an undecided verdict.
fn status_of(outcome: &Outcome, view: &RunView) -> ExitStatus {
    let crashes = status_of_crashes(view);
    match outcome.end {
        SessionEnd::Completed => crashes,
        SessionEnd::Failed => {
            let trials = outcome.failed - outcome.not_crashed;
            let mut failed = Vec::new();
            if trials > 0 {
                failed.push(format!("{trials} of the trials failed; the others are kept"));
            }
            if outcome.not_crashed > 0 {
                failed.push(format!(
                    "crash tests of {} treatments were not done to the end",
                    outcome.not_crashed
                ));
            }
            print_stderr(&format!(
                "{}. `pgdyno run --resume {}` tries again",
                failed.join("; "),
                outcome.run
            ));
            if crashes == ExitStatus::PromiseBroken { crashes } else { ExitStatus::TrialFailed }
        }
        SessionEnd::Interrupted => {
            print_stderr(&format!("interrupted; `pgdyno run --resume {}` goes on", outcome.run));
            ExitStatus::Interrupted
        }
    }
}

/// Returns the exit status that a run's crash tests ask for: the worst among the newest verdict of
/// each treatment and all failures.
pub(super) fn status_of_crashes(view: &RunView) -> ExitStatus {
    let newest = view.treatments.iter().filter_map(|t| t.crash.as_ref()).map(|crash| crash.verdict);
    let failed =
        view.crashes.iter().map(|crash| crash.verdict).filter(|verdict| verdict.is_failure());
    newest.chain(failed).max().map_or(ExitStatus::Success, ExitStatus::from)
}
