//! Pauses of a treatment's clients: those of its workload's scripts, as the load multiplies them.

use pgdyno_dataset::workload::Workload;
use pgdyno_model::Treatment;

use crate::error::ExperimentError;

/// Gives `treatment` the number that multiplies the pauses of `workload`, where it has any.
/// `is_searched`: the experiment looks for the highest rate.
///
/// # Errors
/// The load multiplies pauses that are not there, or clients that pause are given a rate.
pub(super) fn set(
    treatment: &mut Treatment,
    workload: &Workload,
    is_searched: bool,
) -> Result<(), ExperimentError> {
    let options = &mut treatment.options;
    if !workload.has_pauses() {
        if options.pauses.is_none() {
            return Ok(());
        }
        return Err(ExperimentError::refused(
            format!("cannot multiply the pauses of `{}`: its scripts have none", workload.name),
            "leave out `load.pauses`; a folder of your own gives a script `keying_time` and \
             `think_time`",
        ));
    }
    options.pauses = options.pauses.or(Some(workload.pauses));
    let has_pauses = options.has_pauses();
    if has_pauses && (is_searched || treatment.rates().next().is_some()) {
        return Err(ExperimentError::refused(
            format!(
                "clients of `{}` have a rate and pause between transactions{}: a transaction would \
                 be due at two times",
                workload.name,
                treatment.levels.in_parentheses()
            ),
            "set `load.pauses = 0`, or leave out the rate",
        ));
    }
    Ok(())
}
