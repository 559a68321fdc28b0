//! Dry runs of plans on this machine, with the room that logs of crash tests take.

use pgdyno_crash::describe_log_rooms;
use pgdyno_experiment::ResolvedExperiment;
use pgdyno_provision::BenchError;

/// Describes the plan of `resolved` on this machine.
///
/// # Errors
/// The server's account or its programs are not to be had, or a program refuses a setting.
pub fn dry_run(resolved: &ResolvedExperiment) -> Result<String, BenchError> {
    let plan = pgdyno_provision::dry_run(resolved)?;
    match resolved.experiment.postgres.is_external() {
        true => Ok(plan),
        false => Ok(plan + &describe_log_rooms(resolved)),
    }
}
