//! Which commands and programs of an experiment root would run. [`Trust`] judges their file.
//!
//! [`Trust`]: pgdyno_dataset::trust::Trust

use pgdyno_dataset::trust::Purpose;
use pgdyno_model::{Experiment, Plan};

/// Returns what an experiment runs as a command; none if it runs nothing.
pub(crate) fn commands_of(experiment: &Experiment, plan: &Plan) -> Option<Purpose> {
    let has_hook = experiment.storage.values().any(|storage| storage.device.hook.is_some())
        || plan.treatments.iter().any(|treatment| treatment.device.hook.is_some());
    if !experiment.between.command.is_empty() {
        Some(Purpose::BetweenCommand)
    } else if has_hook {
        Some(Purpose::DeviceHook)
    } else {
        None
    }
}

/// Returns whether an experiment says where PostgreSQL's programs are.
///
/// pgdyno runs these programs to ask them for their settings, also in a dry run.
pub(crate) fn names_programs(experiment: &Experiment, plan: &Plan) -> bool {
    experiment.postgres.bindir.is_some()
        || plan.treatments.iter().any(|treatment| treatment.postgres_bindir.is_some())
}
