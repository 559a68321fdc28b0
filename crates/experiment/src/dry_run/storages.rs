//! The storages' part of a dry run: what is made, set, and taken down, step by step.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pgdyno_model::storage::DeviceSettings;
use pgdyno_model::units::Bytes;
use pgdyno_storage::{Stack, StorageError};

use crate::resolved_experiment::ResolvedExperiment;

/// A storage as a dry run knows it.
pub struct PlannedStorage {
    /// The design.
    pub stack: Stack,
    /// The present contents of the storage's devices.
    pub overwritten: Vec<String>,
    /// The reason why the machine cannot make it.
    pub refusal: Option<String>,
    /// The room that is free; none if that is not known.
    pub available: Option<Bytes>,
}

/// Room in a directory where storages have their files.
pub struct FilesRoom {
    /// The directory.
    pub directory: PathBuf,
    /// The room that all of them take together.
    pub needed: Bytes,
    /// The room that is free; none if that is not known.
    pub available: Option<Bytes>,
}

/// Designs the storages of `resolved`, as they would be made below `default`. Looks at no machine.
///
/// # Errors
/// A storage contradicts itself.
pub fn design_storages(
    resolved: &ResolvedExperiment,
    default: &Path,
) -> Result<BTreeMap<String, PlannedStorage>, StorageError> {
    let design = |(letter, name): (char, &str)| {
        let asked = &resolved.experiment.storage[name];
        // Labels differ, since a cluster can lie on several storages.
        let label = format!("pgdyno-{}", letter.to_string().repeat(8));
        let stack = Stack::design(name, asked, default, &label, &resolved.wipe)?;
        let planned =
            PlannedStorage { stack, overwritten: Vec::new(), refusal: None, available: None };
        Ok((name.to_owned(), planned))
    };
    ('A'..='Z').cycle().zip(resolved.storages()).map(design).collect()
}

/// Describes how each storage is made, if anything is done for it.
pub(super) fn making(
    resolved: &ResolvedExperiment,
    planned: &BTreeMap<String, PlannedStorage>,
    out: &mut String,
) {
    for (name, PlannedStorage { stack, overwritten, refusal, .. }) in planned {
        let steps = stack.steps();
        if steps.is_empty() && refusal.is_none() {
            continue;
        }
        line!(out, "\nStorage {name}");
        if let Some(why) = refusal {
            line!(out, "  cannot be made here: {why}");
        }
        for what in overwritten {
            line!(out, "  overwritten: {what}");
        }
        steps.iter().for_each(|step| step!(out, "{step}"));
    }
    let in_turn: Vec<&str> = planned
        .keys()
        .filter(|name| !resolved.excluded_by(name).is_empty())
        .map(String::as_str)
        .collect();
    if !in_turn.is_empty() {
        let anew: Vec<String> =
            resolved.made_anew().iter().map(|(ordinal, _)| (ordinal + 1).to_string()).collect();
        line!(
            out,
            "\nOn one device in turn: {}. Each takes the other's place with its clusters, which \
             are made and loaded anew: before {} of {} trials{}.",
            in_turn.join(", "),
            anew.len(),
            resolved.plan.trials.len(),
            if anew.is_empty() { String::new() } else { format!(" ({})", anew.join(", ")) }
        );
    }
}

/// Describes the device settings of treatments and the storages that are trimmed.
pub(super) fn before_each_trial(
    resolved: &ResolvedExperiment,
    planned: &BTreeMap<String, PlannedStorage>,
    out: &mut String,
) {
    for (number, treatment) in (1..).zip(&resolved.plan.treatments) {
        if treatment.device == DeviceSettings::default() {
            continue;
        }
        let mut asked = resolved.experiment.storage[&treatment.storage].clone();
        asked.device = asked.device.overlaid(&treatment.device);
        for step in planned[&treatment.storage].stack.setting_steps(&asked.device) {
            step!(out, "treatment {number}, unless it is set so: {step}");
        }
    }
}

/// Describes the storages that are trimmed before each trial.
pub(super) fn trimming(
    resolved: &ResolvedExperiment,
    planned: &BTreeMap<String, PlannedStorage>,
    out: &mut String,
) {
    for (name, PlannedStorage { stack, .. }) in planned {
        if resolved.experiment.storage[name].device.trim {
            step!(out, "if the trial is on {name}, run: fstrim {}", stack.path().display());
        }
    }
}

/// Describes how the storages are taken down.
pub(super) fn taking_down(planned: &BTreeMap<String, PlannedStorage>, out: &mut String) {
    for PlannedStorage { stack, .. } in planned.values() {
        stack.take_down_steps().iter().for_each(|step| step!(out, "{step}"));
    }
}
