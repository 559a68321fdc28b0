//! The end of a probe: `pgdyno fsync` and `pgdyno disk`.

use pgdyno_model::ProbeRecord;
use pgdyno_provision::BenchError;

use crate::context::Context;
use crate::error::{CommandError, unless_interrupted};
use crate::exit_status::ExitStatus;
use crate::output::{print, print_stderr};
use crate::render::render_probe;

/// Prints what a probe measured, and returns the exit status.
///
/// # Errors
/// The probe failed, or its result cannot be rendered.
pub(crate) fn finish_probe(
    measured: Result<ProbeRecord, BenchError>,
    as_json: bool,
    context: &Context,
) -> Result<ExitStatus, CommandError> {
    let said = "interrupted before anything was measured; nothing is left behind";
    let Some(record) = unless_interrupted(measured, said)? else {
        return Ok(ExitStatus::Interrupted);
    };
    print(&render_probe(&record, as_json)?);
    if record.result.is_complete() {
        return Ok(ExitStatus::Success);
    }
    print_stderr("not complete: what was measured is kept");
    Ok(if context.is_stopped() { ExitStatus::Interrupted } else { ExitStatus::TrialFailed })
}
