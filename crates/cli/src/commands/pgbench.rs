//! `pgdyno pgbench`, also called by the name `pgbench`: passes its arguments on unread.

use std::ffi::{OsStr, OsString};
use std::io::{self, stderr};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use pgdyno_lab::{ad_hoc, wait};
use pgdyno_model::record::AdHocRun;
use pgdyno_pgbench::{CalledAs, Invocation};
use pgdyno_provision::stores::open_store;

use crate::output::{StandardOutput, Visible};
use crate::shared_options::StoreOption;
use crate::{output, signals};

/// The text below the options in the man page. `pgdyno pgbench --help` is pgbench's.
pub(crate) const AFTER_HELP: &str = "\
Examples:
  pgdyno pgbench -i -s 100 bench         Make and fill the tables
  pgdyno pgbench -c 8 -j 2 -T 60 bench   Offer load with 8 clients for a minute
  pgdyno pgbench -c 8 -T 60 -R 500 -f mine.sql --json=run.json bench
                                         Offer 500 transactions per second of a script, write JSON

See also: pgbench(1), pgdyno-load(1)";

/// Returns the arguments for pgbench and the name that the process was called by, or `None` if
/// another command was called.
pub(crate) fn arguments(
    mut words: impl Iterator<Item = OsString>,
) -> Option<(Vec<OsString>, CalledAs)> {
    let program = words.next()?;
    let called = Path::new(&program).file_name() == Some(OsStr::new("pgbench"));
    if !called && words.next()? != "pgbench" {
        return None;
    }
    let name = if called { CalledAs::Pgbench } else { CalledAs::Pgdyno };
    Some((words.collect(), name))
}

/// Runs pgbench. Signals end the process at once until the scripts are read, and in order after it.
pub(crate) fn run(arguments: &[OsString], called_as: CalledAs) -> ExitCode {
    // Not locked: the load's threads speak while the run lasts.
    let invocation = match Invocation::read(arguments, called_as, &mut Visible::new(stderr())) {
        Ok(invocation) => invocation,
        Err(status) => return ExitCode::from(u8::try_from(status).unwrap_or(1)),
    };
    let stop = signals::flag();
    if let Err(error) = signals::handle(false) {
        return ExitCode::from(output::report_error(&error));
    }
    let store = invocation.store().map(StoreOption::path_or_default);
    // A run that cannot be kept is told of before it is run.
    if let Some(store) = &store
        && let Err(error) = open_store(store)
    {
        return ExitCode::from(output::report_error(&error.into()));
    }
    // As pgbench does, and unlike pgbench not in silence.
    wait::be_patient();
    wait::listen(Some(Arc::new(|waiting| {
        output::hint(&format!("pgbench: note: a statement has {waiting}"));
    })));
    let mut measured = None;
    let (mut out, mut err) = (Visible::new(StandardOutput), Visible::new(stderr()));
    let status = invocation.run_and_keep(&mut out, &mut err, &stop, &mut measured);
    let status = match (store, measured) {
        (Some(store), Some(measured)) => keep(&store, measured, status),
        _ => status,
    };
    // pgbench itself would lose its report without a word and exit with 0.
    let report = |error: io::Error| {
        output::print_stderr(&format!(
            "pgbench: error: could not write to standard output: {error}"
        ));
    };
    let status = output::exit_status(u8::try_from(status).unwrap_or(1), report);
    // Exits without dropping: freeing the memory of millions of statements takes too long after a
    // signal.
    std::process::exit(status.into())
}

/// Puts a run into the store, and says so on standard error: what pgbench prints stays as it is.
/// Returns the exit status: 1 for a run that ended well and could not be kept.
fn keep(store: &Path, run: AdHocRun, status: i32) -> i32 {
    match ad_hoc::keep(store, run) {
        Ok(id) => {
            output::hint(&format!("pgbench: note: stored as {id}; `pgdyno show {id}` shows it"));
            status
        }
        Err(error) => {
            let failed = output::report_error(&error.into());
            if status == 0 { failed.into() } else { status }
        }
    }
}
