//! `pgdyno emulated-disk`: serves an emulated disk. pgdyno starts this command itself.

use crate::error::CommandError;
use crate::exit_status::ExitStatus;

/// Serves the disk that the environment describes, until it is unmounted.
///
/// # Errors
/// The disk cannot be served.
pub(crate) fn run() -> Result<ExitStatus, CommandError> {
    pgdyno_lab::serve_emulated_disk().map_err(CommandError::new)?;
    Ok(ExitStatus::Success)
}
