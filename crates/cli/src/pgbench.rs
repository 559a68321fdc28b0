//! `pgdyno pgbench`, also under the name `pgbench`: arguments go through unread.

use std::ffi::{OsStr, OsString};
use std::io::{self, stderr};
use std::path::Path;
use std::process::ExitCode;

use pgdyno_pgbench::{CalledAs, Invocation};

use crate::output::{StandardOutput, Visible};
use crate::{output, signals};

/// The arguments for pgbench, if that is what this process was called for, and the name it was
/// called by.
pub(crate) fn arguments(
    mut words: impl Iterator<Item = OsString>,
) -> Option<(Vec<String>, CalledAs)> {
    let program = words.next()?;
    let called = Path::new(&program).file_name() == Some(OsStr::new("pgbench"));
    if !called && words.next()? != "pgbench" {
        return None;
    }
    let name = if called { CalledAs::Pgbench } else { CalledAs::Pgdyno };
    Some((words.map(|word| word.to_string_lossy().into_owned()).collect(), name))
}

/// Runs it. Until its scripts are read, signals end this process as they end any; then they are
/// taken.
pub(crate) fn run(arguments: &[String], called_as: CalledAs) -> ExitCode {
    // Not locked: the load's threads speak while the run lasts.
    let invocation = match Invocation::read(arguments, called_as, &mut Visible::new(stderr())) {
        Ok(invocation) => invocation,
        Err(status) => return ExitCode::from(u8::try_from(status).unwrap_or(1)),
    };
    let stop = match signals::take() {
        Ok(stop) => stop,
        Err(failure) => return ExitCode::from(output::complain(&failure)),
    };
    let status =
        invocation.run(&mut Visible::new(StandardOutput), &mut Visible::new(stderr()), &stop);
    // pgbench itself would lose its report without a word and exit with 0.
    let complain = |error: &io::Error| {
        output::tell(&format!("pgbench: error: could not write to standard output: {error}"));
    };
    let status = output::exit_status(u8::try_from(status).unwrap_or(1), complain);
    // It ends here: to give the memory of millions of statements back takes longer than a signal
    // may.
    std::process::exit(status.into())
}
