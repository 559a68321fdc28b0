//! Gives more repeats to a run that has its trials.
//!
//! Whoever sees inconclusive verdicts and adds repeats analyses twice. The plan remembers after how
//! many repeats that was, so that the analysis accounts for each interim analysis.

use pgdyno_experiment::file::Override;
use pgdyno_model::Plan;
use pgdyno_model::record::RunState;

use crate::error::LabError;

/// The only key that may be set anew.
const REPEATS: &str = "experiment.repeats";

/// Checks that `more` asks for nothing but repeats.
pub(super) fn check(run: &str, more: &[Override]) -> Result<(), LabError> {
    match more.iter().find(|given| given.key() != REPEATS) {
        None => Ok(()),
        Some(given) => Err(refused(run, given, "only its number of repeats can change")),
    }
}

/// Returns `plan`, resolved with `more`, as the continuation of run `run`, whose plan is `old` and
/// whose state is `state`.
///
/// # Errors
/// The plan decides about repeats itself, has as many already, or orders trials so that more
/// repeats do not continue it.
pub(super) fn continued(
    run: &str,
    (old, state): (&Plan, RunState),
    mut plan: Plan,
    more: &[Override],
) -> Result<Plan, LabError> {
    plan.extended_after.clone_from(&old.extended_after);
    (plan.noise_prior, plan.conditioning) = (old.noise_prior, old.conditioning);
    let Some(last) = more.last() else { return Ok(plan) };
    if old.stopping.is_some() {
        return Err(refused(run, last, "it decides itself how many repeats it takes"));
    }
    if plan.trials.len() <= old.trials.len() {
        return Err(refused(run, last, "it has as many already"));
    }
    if !plan.trials.starts_with(&old.trials) {
        return Err(refused(
            run,
            last,
            "in its order (`sequential`) a treatment's repeats follow each other, \
             and others came after",
        ));
    }
    // Before it was complete it had no verdicts that one could have looked at.
    if matches!(state, RunState::Completed | RunState::Failed) {
        plan.extended_after.push(old.repeats());
    }
    Ok(plan)
}

fn refused(run: &str, given: &Override, why: &'static str) -> LabError {
    LabError::NoContinuation { run: run.to_owned(), given: given.given.clone(), why }
}
