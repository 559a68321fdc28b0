//! `pgdyno crash`: crashes a server under load and judges what it kept.

mod experiment;
mod judge;
mod options;

use std::path::Path;

pub(crate) use options::Options;
use options::{Action, Exhaustive, WitnessOptions};
use pgdyno_lab::crash::witness::{self, Plugged, Secret, Witness};
use pgdyno_lab::{CrashRecord, LabError, Prepared, crash as lab};

use crate::context::Context;
use crate::error::CommandError;
use crate::exit_status::ExitStatus;
use crate::output::{print, print_stderr};
use crate::render::render_crash;

/// The text below the options in the help.
pub(crate) const AFTER_HELP: &str = "\
Environment:
  PGDYNO_WITNESS_SECRET  The secret that a witness shares, unless --secret-file names a file

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
pub(crate) fn run(options: &Options, context: &Context) -> Result<ExitStatus, CommandError> {
    match &options.action {
        Some(Action::Witness(options)) => return run_witness(options, context),
        Some(Action::Judge(options)) => return judge::run(options, context),
        None => {}
    }
    if let Some(session) = &options.resume {
        return resume(session.clone(), options, context);
    }
    let (source, overrides) = (experiment::source(options), experiment::overrides(options)?);
    let prepared = Prepared::new(source, overrides)?;
    let address = witness_address(options)?;
    if options.dry_run {
        print(&lab::dry_run(&prepared)?);
        return Ok(ExitStatus::Success);
    }
    match address {
        Some(address) => pull_plug(prepared, address, options, context),
        None => crash(prepared, options, context),
    }
}

fn crash(
    prepared: Prepared,
    options: &Options,
    context: &Context,
) -> Result<ExitStatus, CommandError> {
    let prepared = prepared.with_trust(options.trust.trust(), None)?;
    let store = options.store.path();
    let record = context.with_progress(options.progress, |progress| {
        lab::crash(&prepared, lab::Interference::default(), &store, progress, context.stop())
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
    options: &Options,
    context: &Context,
) -> Result<ExitStatus, CommandError> {
    let states = options.exhaustive.map(Exhaustive::states);
    let Options { budget, jobs, .. } = *options;
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
    record: Result<CrashRecord, LabError>,
    interrupted: &str,
    options: &Options,
    context: &Context,
) -> Result<ExitStatus, CommandError> {
    let record = match record {
        Err(LabError::Interrupted) => {
            print_stderr(interrupted);
            return Ok(ExitStatus::Interrupted);
        }
        record => record?,
    };
    print(&render_crash(&record, options.json)?);
    if context.is_stopped() {
        print_stderr("interrupted: what was done is kept");
        return Ok(ExitStatus::Interrupted);
    }
    Ok(record.outcome.verdict.into())
}

/// Serves the ledger of another machine until a signal comes.
fn run_witness(options: &WitnessOptions, context: &Context) -> Result<ExitStatus, CommandError> {
    let directory = options.directory.clone().unwrap_or_else(pgdyno_lab::default_witness);
    let secret = read_secret(options.secret_file.as_deref())?;
    witness::serve(options.listen, &directory, secret, context.stop(), &print_stderr)?;
    Ok(ExitStatus::Success)
}

/// Returns the value of `--witness`, which goes with `--fault plug` alone.
fn witness_address(options: &Options) -> Result<Option<&str>, CommandError> {
    let is_plug = options.fault.iter().any(|fault| fault == "plug");
    match &options.witness {
        Some(_) if !is_plug || options.fault.len() > 1 => {
            Err(CommandError::new("cannot use `--witness`: it goes with `--fault plug` alone")
                .with_help("leave it out, or name that fault only"))
        }
        witness => Ok(witness.as_deref()),
    }
}

/// Reads the secret of a witness, from `file` or the environment.
fn read_secret(file: Option<&Path>) -> Result<Option<Secret>, CommandError> {
    Ok(witness::shared_secret(file)?)
}

fn pull_plug(
    prepared: Prepared,
    address: &str,
    options: &Options,
    context: &Context,
) -> Result<ExitStatus, CommandError> {
    let secret = read_secret(options.secret_file.as_deref())?.ok_or_else(|| {
        CommandError::new(format!(
            "cannot speak with the witness at {address}: the secret that both sides share is \
             missing"
        ))
        .with_help(
            "name its file by `--secret-file FILE`, or set PGDYNO_WITNESS_SECRET as the witness \
             prints it",
        )
    })?;
    let witness = Witness { address: address.to_owned(), secret };
    let prepared = prepared.with_trust(options.trust.trust(), None)?;
    let store = options.store.path();
    match context.with_progress(options.progress, |progress| {
        witness::plug(&prepared, &witness, &store, progress, context.stop())
    }) {
        Ok(Plugged::Judged(record)) => {
            print(&render_crash(&record, options.json)?);
            Ok(record.outcome.verdict.into())
        }
        Ok(Plugged::Ended) | Err(LabError::Interrupted) => {
            print_stderr("ended without a plug pulled; nothing is left behind");
            Ok(ExitStatus::Interrupted)
        }
        Err(error) => Err(error.into()),
    }
}
