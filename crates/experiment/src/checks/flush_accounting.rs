//! Flush accounting: the disk must be in reach of those that offer the load.

use pgdyno_model::Plan;
use pgdyno_model::experiment::Experiment;

use super::generators::launch_of;
use crate::error::ExperimentError;

/// Refuses flush accounting where the processes that offer the load cannot reach the disk.
///
/// # Errors
/// Generators offer the load, or the server is external.
pub(super) fn check(experiment: &Experiment, plan: &Plan) -> Result<(), ExperimentError> {
    let asked = |name: &str| experiment.storage.get(name).is_some_and(|s| s.flush_accounting);
    let mut asking = plan.treatments.iter().filter(|t| asked(&t.storage)).peekable();
    let Some(treatment) = asking.peek() else { return Ok(()) };
    let cannot = format!("cannot account for flushes of storage `{}`", treatment.storage);
    if experiment.postgres.is_external() {
        return Err(ExperimentError::refused(
            format!("{cannot}: the server (`postgres.dsn`) does not lie on it"),
            "leave `flush_accounting` out, or `postgres.dsn`",
        ));
    }
    if asking.any(|treatment| launch_of(&experiment.generators, treatment).is_some()) {
        return Err(ExperimentError::refused(
            format!("{cannot}: generators in processes of their own do not see the disk"),
            "leave `flush_accounting` out, or the generators",
        ));
    }
    Ok(())
}
