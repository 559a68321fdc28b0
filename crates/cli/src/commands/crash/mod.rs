//! `pgdyno crash`: crashes a server under load and judges what it kept.

mod experiment;
mod judge;
mod options;

use std::io::{IsTerminal, stdin, stdout};

pub(crate) use options::CrashArgs;
use options::{Action, Exhaustive, WitnessOptions};
use pgdyno_crash as lab;
use pgdyno_crash::witness::{self, Plugged};
use pgdyno_experiment::ResolvedExperiment;
use pgdyno_generators::host_name;
use pgdyno_model::crash::CrashRecord;
use pgdyno_provision::{BenchError, ThisHost};

use crate::context::Context;
use crate::error::{CommandError, unless_interrupted};
use crate::exit_status::ExitStatus;
use crate::output::{print, print_stderr};
use crate::render::render_crash;

/// The text below the options in the help.
pub(crate) const AFTER_HELP: &str = "\
Environment:
  PGDYNO_SSH  The command in place of ssh, with its options, in words

Files:
  $XDG_DATA_HOME/pgdyno/crashes/  Images and ledgers of failed crash tests. `pgdyno clean --crashes`
                                  removes them

Examples:
  pgdyno crash --fault process --storage /mnt/disk
                                  Kill the server under load. Needs no root
  pgdyno crash --fault power,torn-write --filesystem ext4 --storage /mnt/disk
                                  Cut the power of an ext4 in a file, as root

See also: pgdyno-crash-witness(1), pgdyno-filesystems(1), pgdyno-clean(1)";

/// Runs crash tests, or the witness of a machine whose plug is pulled.
pub(crate) fn run(options: &CrashArgs, context: &Context) -> Result<ExitStatus, CommandError> {
    match &options.action {
        Some(Action::Witness(options)) => return run_witness(options, context),
        Some(Action::Judge(options)) => return judge::run(options, context),
        None => {}
    }
    if let Some(session) = &options.resume {
        return resume(session.clone(), options, context);
    }
    let (source, overrides) = (experiment::source(options), experiment::overrides(options)?);
    let resolved = ResolvedExperiment::new(source, overrides, &ThisHost)?;
    let host = witness_host(options)?;
    if options.dry_run {
        print(&lab::dry_run(&resolved)?);
        return Ok(ExitStatus::Success);
    }
    let resolved = resolved.with_trust(options.trust.trust(), None)?;
    match host {
        Some(host) => pull_plug(&resolved, host, options, context),
        None => crash(&resolved, options, context),
    }
}

fn crash(
    resolved: &ResolvedExperiment,
    options: &CrashArgs,
    context: &Context,
) -> Result<ExitStatus, CommandError> {
    let store = options.store.path();
    let record = context.with_progress(options.progress, |progress| {
        lab::crash(resolved, lab::Interference::default(), &store, progress, context.stop())
    });
    finish(
        record,
        "interrupted before the first round was over; nothing is left behind",
        options,
        context,
    )
}

/// Goes on with what `session` recorded, else with the newest recording.
fn resume(
    session: Option<String>,
    options: &CrashArgs,
    context: &Context,
) -> Result<ExitStatus, CommandError> {
    let states = options.exhaustive.map(Exhaustive::states);
    let CrashArgs { budget, jobs, .. } = *options;
    let resumption = lab::Resumption { session, states, budget, jobs };
    let (trust, store) = (options.trust.trust(), options.store.path());
    let record = context.with_progress(options.progress, |progress| {
        lab::resume(&resumption, trust, &store, progress, context.stop())
    });
    finish(
        record,
        "interrupted before another state was judged; what was judged is kept",
        options,
        context,
    )
}

/// Prints what came of a session; `interrupted` if a signal came before there was something.
fn finish(
    record: Result<CrashRecord, BenchError>,
    interrupted: &str,
    options: &CrashArgs,
    context: &Context,
) -> Result<ExitStatus, CommandError> {
    let Some(record) = unless_interrupted(record, interrupted)? else {
        return Ok(ExitStatus::Interrupted);
    };
    print(&render_crash(&record, options.json)?);
    if context.is_stopped() {
        print_stderr("interrupted: what was done is kept");
        return Ok(ExitStatus::Interrupted);
    }
    Ok(record.outcome.verdict.into())
}

/// Keeps the ledger of the machine that started this by `ssh`.
fn run_witness(options: &WitnessOptions, context: &Context) -> Result<ExitStatus, CommandError> {
    let replaced = [
        ("--listen", options.listen.is_some()),
        ("--directory", options.directory.is_some()),
        ("--secret-file", options.secret_file.is_some()),
    ];
    if let Some((option, _)) = replaced.into_iter().find(|(_, given)| *given) {
        return Err(witness_by_ssh(option));
    }
    if stdin().is_terminal() {
        return Err(witness_by_ssh("a terminal"));
    }
    witness::serve(&pgdyno_lab::default_witness(), stdin(), stdout(), context.stop())?;
    Ok(ExitStatus::Success)
}

/// Creates the error of `given`, which belongs to a witness that was reached without `ssh`.
fn witness_by_ssh(given: &str) -> CommandError {
    let message = format!(
        "cannot use {given}: a witness is reached by `ssh`, which knows addresses, ports and keys"
    );
    CommandError::new(message).with_help(
        "on the machine under test: `pgdyno crash --fault plug --witness HOST --storage DIR`, \
         HOST as `ssh HOST` knows it; ledgers lie there in $XDG_DATA_HOME/pgdyno/witness",
    )
}

/// Returns the value of `--witness`, which goes with `--fault plug` alone.
fn witness_host(options: &CrashArgs) -> Result<Option<&str>, CommandError> {
    if options.secret_file.is_some() {
        return Err(witness_by_ssh("--secret-file"));
    }
    let is_plug = options.fault.iter().any(|fault| fault == "plug");
    let Some(host) = options.witness.as_deref() else { return Ok(None) };
    if !is_plug || options.fault.len() > 1 {
        let message = "cannot use `--witness`: it goes with `--fault plug` alone";
        return Err(CommandError::new(message).with_help("leave it out, or name that fault only"));
    }
    // An address of IPv6 has more colons.
    let has_port = |(host, port): (&str, &str)| !host.contains(':') && port.parse::<u16>().is_ok();
    if host.rsplit_once(':').is_some_and(has_port) || host_name(host).is_err() {
        return Err(witness_by_ssh(&format!("--witness {host}")));
    }
    Ok(Some(host))
}

fn pull_plug(
    resolved: &ResolvedExperiment,
    host: &str,
    options: &CrashArgs,
    context: &Context,
) -> Result<ExitStatus, CommandError> {
    let store = options.store.path();
    match context.with_progress(options.progress, |progress| {
        witness::plug(resolved, host, &store, progress, context.stop())
    }) {
        Ok(Plugged::Judged(record)) => {
            print(&render_crash(&record, options.json)?);
            Ok(record.outcome.verdict.into())
        }
        Ok(Plugged::Ended) | Err(BenchError::Interrupted) => {
            print_stderr("ended without a plug pulled; nothing is left behind");
            Ok(ExitStatus::Interrupted)
        }
        Err(error) => Err(error.into()),
    }
}
