//! Checks of a plan: its parts go together, before anything on the host is touched.

pub mod crash;
mod flush_accounting;
pub mod generators;

use pgdyno_model::{Experiment, Plan};

use crate::error::ExperimentError;

/// Checks that the parts of `plan` go together.
///
/// # Errors
/// They do not.
pub(crate) fn check(experiment: &Experiment, plan: &Plan) -> Result<(), ExperimentError> {
    if experiment.crash.is_some() {
        crash::check(experiment, plan)?;
    }
    generators::check(&experiment.generators, plan)?;
    flush_accounting::check(experiment, plan)
}
