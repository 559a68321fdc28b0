//! `pgdyno run`: runs an experiment, or resumes an interrupted run.

mod detach;
mod hosts;
mod options;
mod outcome;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use pgdyno_analysis::RunView;
use pgdyno_analysis::host_noise::{self, Forecast, NoForecast};
use pgdyno_audit::{Audit, ImportedRun};
use pgdyno_experiment::file::Override;
use pgdyno_experiment::{ResolvedExperiment, recipes};
use pgdyno_lab::Consent;
use pgdyno_lab::notify::notify;
use pgdyno_lab::run::{self as lab, Outcome};
use pgdyno_model::advice::with_causes;
use pgdyno_model::record::SessionEnd;
use pgdyno_provision::stores::open_store;
use pgdyno_report::{self as report, Page, RunReport};
use pgdyno_store::{Store, StoreError};
use pgdyno_text::format::counted;

pub(crate) use self::options::RunArgs;
use self::outcome::OutcomeDocument;
use crate::context::Context;
use crate::error::CommandError;
use crate::exit_status::ExitStatus;
use crate::metrics::{Measured, Metrics};
use crate::output::{print, print_line, print_stderr, report_error};
use crate::report_destination::{ReportDestination, is_standard_output};
use pgdyno_report::json::json;

/// Runs or resumes, here or without the terminal; then runs the command of `--notify`.
pub(crate) fn run(options: &RunArgs, context: &Context) -> Result<ExitStatus, CommandError> {
    if let Some(hosts) = &options.hosts {
        return hosts::run(options, hosts, context);
    }
    if options.detached {
        detach::leave()?;
    } else if options.detach {
        return detach::detach(&options.store.path(), &options.trust.trust(), context);
    }
    let mut outcome = OutcomeDocument::new(&options.store.path());
    let ended = measure(options, context, &mut outcome);
    if let Some(command) = &options.notify {
        let outcome = json(&outcome.record_end(&ended))?;
        if let Err(error) = notify(command, &outcome, context.stop()) {
            print_stderr(&format!("warning: {}", with_causes(&error)));
        }
    }
    ended
}

/// Runs or resumes, then prints the results and writes the report.
fn measure(
    options: &RunArgs,
    context: &Context,
    document: &mut OutcomeDocument,
) -> Result<ExitStatus, CommandError> {
    let store = options.store.path();
    let metrics = options.metrics.map(Metrics::serve).transpose()?;
    let mut recipe = None;
    let outcome = if let Some(run) = &options.resume {
        resume(options, run, &store, metrics.as_ref(), context)
    } else {
        let (resolved, name) = options.prepare()?;
        recipe = name;
        let (trust, file) = (options.trust.trust(), recipes::file(options.name()));
        if options.dry_run {
            resolved.check_programs(&trust, file)?;
            print(&pgdyno_lab::dry_run(&resolved)?);
            let found = forecast(&resolved, &store);
            let unreadable =
                |error: StoreError| Err(NoForecast::Unreadable { why: error.to_string() });
            print(&report::forecast(&found.unwrap_or_else(unreadable), context.width()));
            return Ok(ExitStatus::Success);
        }
        let resolved = resolved.with_trust(trust, file)?;
        context
            .with_progress_until(options.progress, end_of, |progress| {
                let progress = Measured::new(progress, metrics.as_ref());
                lab::run(&resolved, &store, &progress, context.stop())
            })
            .map_err(CommandError::from)
    };
    let outcome = match outcome {
        Err(error) if error.is_interruption() => {
            print_stderr(
                "interrupted before the first trial: nothing was measured, nothing is left behind",
            );
            return Ok(ExitStatus::Interrupted);
        }
        outcome => outcome?,
    };
    let read = RunReport::read(&Store::open_existing(&store)?, &outcome.run)?;
    document.record_results(&outcome, &read);
    // The table comes before anything that can fail.
    if !is_standard_output(options.output.as_deref()) {
        print(&report::terminal(&read, context.width(), context.detail()));
    }
    let status = status_of(&outcome, &read.view);
    match write_report(options, &read, recipe.as_deref(), &store) {
        Ok(file) => document.record_report(file),
        // The outcome of the run matters more than a report that could not be written.
        Err(error) if status == ExitStatus::Success => return Err(error),
        Err(error) => drop(report_error(&error)),
    }
    Ok(status)
}

/// Tells what a plan will find, by the runs of the store, if there is one.
fn forecast(
    resolved: &ResolvedExperiment,
    store: &Path,
) -> Result<Result<Forecast, NoForecast>, StoreError> {
    let store = store.exists().then(|| Store::open_existing(store)).transpose()?;
    host_noise::forecast(
        store.as_ref(),
        &resolved.plan,
        &pgdyno_lab::host(),
        resolved.experiment.host_noise,
    )
}

fn resume(
    options: &RunArgs,
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
    options: &RunArgs,
    read: &RunReport,
    recipe: Option<&str>,
    store: &Path,
) -> Result<Option<PathBuf>, CommandError> {
    let run = &read.view.run.id;
    let destination = ReportDestination::new(options.output.as_deref(), store, run)?;
    let file = destination.write(&Page::run(read)?)?.map(Path::to_owned);
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
    let Some(audit) = Audit::from_bytes(&source, bytes) else { return Ok(None) };
    let import = ImportedRun::new(&source, bytes, audit.recognised, SystemTime::now());
    Ok(Some(open_store(store)?.add_import(&import)?))
}

/// Returns how a run ended. A signal comes before a broken promise, that before trials that failed,
/// and those before an undecided verdict.
fn status_of(outcome: &Outcome, view: &RunView) -> ExitStatus {
    let crashes = ExitStatus::from_crashes(view);
    match outcome.end {
        SessionEnd::Completed => crashes,
        SessionEnd::Failed => {
            let trials = outcome.failed - outcome.not_crashed;
            let mut failed = Vec::new();
            if trials > 0 {
                let others = match view.run.trials_completed {
                    0 => "none is completed",
                    _ => "the others are kept",
                };
                failed.push(format!("{} failed; {others}", counted(trials, "trial")));
            }
            if outcome.not_crashed > 0 {
                failed.push(format!(
                    "crash tests of {} were not done to the end",
                    counted(outcome.not_crashed, "treatment")
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
