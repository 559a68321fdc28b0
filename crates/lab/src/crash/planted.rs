//! Planted failures: which treatment of an experiment is meant to fail which fault.

use pgdyno_model::{Fault, Treatment};

use crate::LabError;
use crate::prepare::Prepared;

/// The faults that `treatment` is meant to fail.
pub(crate) fn planted(prepared: &Prepared, treatment: &Treatment) -> Vec<Fault> {
    let has = |(factor, level): &(String, _)| {
        treatment.levels.0.iter().any(|(f, l)| f == factor && l == level)
    };
    let its =
        || prepared.experiment.planted.iter().filter(|planted| planted.levels.iter().all(has));
    let tried = prepared.experiment.crash.iter().flat_map(|crash| &crash.faults);
    tried.filter(|fault| its().any(|planted| planted.faults.contains(fault))).copied().collect()
}

/// Refuses expectations that differ between treatments that share one session of crash tests.
pub(super) fn check(prepared: &Prepared) -> Result<(), LabError> {
    let treatments = &prepared.plan.treatments;
    for (at, treatment) in treatments.iter().enumerate() {
        let first = treatments[..at].iter().find(|other| other.is_crashed_alike(treatment));
        if first.is_some_and(|first| planted(prepared, first) != planted(prepared, treatment)) {
            return Err(LabError::Crash {
                what: treatment.levels.to_string(),
                found: "`[[crash.planted]]` tells it from a treatment that differs in its load only, and both share one \
                        session"
                    .into(),
                help: "name storages, versions or settings in its `levels`: crash tests have a load of their own"
                    .into(),
            });
        }
    }
    Ok(())
}
