//! `pgdyno run --hosts`: the experiment on every one of several hosts.

use pgdyno_experiment::ResolvedExperiment;
use pgdyno_experiment::file::{Override, Source, host_overrides};
use pgdyno_experiment::recipes;
use pgdyno_lab::hosts::{Assignment, HostError, HostResult, hosts, run_on_hosts};
use pgdyno_model::lab_host::LabHost;
use pgdyno_model::record::SessionEnd;
use pgdyno_provision::ThisHost;
use pgdyno_report::{self as report, RunReport};
use pgdyno_store::Store;

use super::options::RunArgs;
use crate::context::Context;
use crate::error::CommandError;
use crate::exit_status::ExitStatus;
use crate::output::{hint, print, print_line, print_stderr};

/// Runs on all hosts that `on` names, or prints what each would do.
pub(super) fn run(
    options: &RunArgs,
    on: &str,
    context: &Context,
) -> Result<ExitStatus, CommandError> {
    let source = recipes::source(options.name())?;
    let mut plans = Vec::new();
    // All is looked at before anything starts anywhere.
    for host in hosts(on)? {
        let overrides = overrides(options, &source, &host.name)?;
        let resolved = ResolvedExperiment::new(source.clone(), overrides.clone(), &ThisHost)?
            .with_trust(options.trust.trust(), recipes::file(options.name()))?;
        plans.push((host, overrides, resolved));
    }
    if options.dry_run {
        for (host, _, resolved) in &plans {
            print_line(&format!("== {}", host.name));
            print(&pgdyno_lab::dry_run(resolved)?);
        }
        return Ok(ExitStatus::Success);
    }
    let assignment = |(host, overrides, _): (LabHost, Vec<Override>, ResolvedExperiment)| {
        let assignment = Assignment::new(&host.name, &source, &overrides, &options.wipe());
        (host, assignment)
    };
    let assignments: Vec<(LabHost, Assignment)> = plans.into_iter().map(assignment).collect();
    let folder = tempfile::tempdir().map_err(CommandError::from_exchange)?;
    let say = |host: &str, line: &str| hint(&format!("{host}: {line}"));
    let stop = context.stop_flag();
    let results = run_on_hosts(&assignments, &options.store.path(), folder.path(), &say, &stop);
    conclude(options, &results, context)
}

/// Returns the values that the experiment, its size, the host's table and the options set, the
/// stronger ones last.
fn overrides(
    options: &RunArgs,
    source: &Source,
    host: &str,
) -> Result<Vec<Override>, CommandError> {
    let mut overrides = options.overrides_of_size(source)?;
    overrides.extend(host_overrides(source, host)?);
    overrides.extend(options.set_by_options()?);
    Ok(overrides)
}

/// Prints the results of each host, then all hosts that have none.
fn conclude(
    options: &RunArgs,
    results: &[HostResult],
    context: &Context,
) -> Result<ExitStatus, CommandError> {
    let mut status = ExitStatus::Success;
    let mut failed = Vec::new();
    let mut views = Vec::new();
    for result in results {
        let Ok((run, end)) = &result.run else { continue };
        let read = RunReport::read(&Store::open_existing(options.store.path())?, run)?;
        print_line(&format!("== {}: {run}", result.host.name));
        print(&report::terminal(&read, context.width(), context.detail()));
        match (end, ExitStatus::from_crashes(&read.view)) {
            (SessionEnd::Failed, _) => failed.push(result.host.name.clone()),
            (_, ExitStatus::Success) => {}
            (_, crashes) => status = crashes,
        }
        views.push(read);
    }
    if views.len() > 1 {
        print_line("== all hosts");
        print(&report::hosts(&views, context.width()));
    }
    for result in results {
        match &result.run {
            Ok((run, end)) => {
                print_stderr(&format!(
                    "host {}: {}, run {run}",
                    result.host.name,
                    <&str>::from(*end)
                ));
            }
            Err(HostError::Interrupted) if context.is_stopped() => {
                print_stderr(&format!(
                    "host {}: interrupted; the same command resumes it",
                    result.host.name
                ));
            }
            Err(error) => {
                failed.push(result.host.name.clone());
                print_stderr(&format!("host {}: FAILED: {error}", result.host.name));
            }
        }
    }
    if context.is_stopped() {
        return Ok(ExitStatus::Interrupted);
    }
    if failed.is_empty() {
        return Ok(status);
    }
    let failed = failed.join(", ");
    Err(CommandError::new(format!("failed on {failed}; the runs of all others are stored"))
        .with_help("what is wrong on each stands above; the same command resumes unfinished runs"))
}
