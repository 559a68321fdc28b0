//! `pgdyno pgbench`, also under the name `pgbench`: arguments go through unread.

use std::ffi::{OsStr, OsString};
use std::io::{stderr, stdout};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

/// The arguments for pgbench, if that is what this process was called for.
pub(crate) fn arguments(mut words: impl Iterator<Item = OsString>) -> Option<Vec<String>> {
    let program = words.next()?;
    let called = Path::new(&program).file_name() == Some(OsStr::new("pgbench"));
    if !called && words.next()? != "pgbench" {
        return None;
    }
    Some(words.map(|word| word.to_string_lossy().into_owned()).collect())
}

/// Runs it.
pub(crate) fn run(arguments: &[String], stop: &AtomicBool) -> ExitCode {
    // Not locked: the load's threads speak while the run lasts.
    let status = pgdyno_lab::pgbench::main(arguments, &mut stdout(), &mut stderr(), stop);
    ExitCode::from(u8::try_from(status).unwrap_or(1))
}
