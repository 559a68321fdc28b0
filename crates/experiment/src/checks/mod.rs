//! Checks of a plan: its parts go together, before anything on the host is touched.

mod copied_tables;
pub mod crash;
mod flush_accounting;
pub mod generators;

use std::collections::BTreeMap;

pub(crate) use copied_tables::check_script;
use pgdyno_engine::WeightedScript;
use pgdyno_model::{Experiment, Plan};

use crate::error::ExperimentError;

/// Checks that the parts of `plan` go together; `scripts` are those of its workloads.
///
/// # Errors
/// They do not.
pub(crate) fn check(
    experiment: &Experiment,
    plan: &Plan,
    scripts: &BTreeMap<String, Vec<WeightedScript>>,
) -> Result<(), ExperimentError> {
    if experiment.crash.is_some() {
        crash::check(experiment, plan)?;
    }
    generators::check(&experiment.generators, plan)?;
    copied_tables::check(experiment, plan, scripts)?;
    flush_accounting::check(experiment, plan)
}
