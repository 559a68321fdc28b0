//! The storages' part of a dry run: what is made, set, and taken down, step by step.

use std::collections::BTreeMap;
use std::path::Path;

use pgdyno_exec::account::Account;
use pgdyno_exec::device::safety;
use pgdyno_model::storage::{Backing, DeviceSettings};
use pgdyno_model::units::Bytes;
use pgdyno_storage::{Stack, Surroundings};

use crate::LabError;
use crate::prepare::Prepared;

/// A storage as a dry run knows it.
pub(super) struct Planned {
    pub(super) stack: Stack,
    /// The present contents of the storage's devices.
    pub(super) overwritten: Vec<String>,
    /// Why this machine cannot make it.
    pub(super) refusal: Option<String>,
    /// The room there is; none if that is not known.
    pub(super) available: Option<Bytes>,
}

/// The storages of `prepared`, as they would be made below `default`. Looks at no machine.
pub(super) fn designed(
    prepared: &Prepared,
    default: &Path,
) -> Result<BTreeMap<String, Planned>, LabError> {
    let design = |(letter, name): (char, &str)| {
        let asked = &prepared.experiment.storage[name];
        // Told apart, since a cluster can lie on several.
        let label = format!("pgdyno-{}", letter.to_string().repeat(8));
        let stack = Stack::design(name, asked, default, &label, &prepared.wipe)?;
        let planned = Planned { stack, overwritten: Vec::new(), refusal: None, available: None };
        Ok((name.to_owned(), planned))
    };
    ('A'..='Z').cycle().zip(prepared.storages()).map(design).collect()
}

/// The same, with what this machine has to say about it.
pub(super) fn on_this_machine(
    prepared: &Prepared,
    default: &Path,
    account: &Account,
) -> Result<BTreeMap<String, Planned>, LabError> {
    let keep = prepared.experiment.telemetry.keep_serials;
    let mut all = designed(prepared, default)?;
    for (name, planned) in &mut all {
        let asked = &prepared.experiment.storage[name];
        let around = Surroundings { default_directory: default, account, wipe: &prepared.wipe };
        planned.refusal = match Stack::plan(name, asked, &around) {
            Err(e) => Some(LabError::from(e).message()),
            Ok(stack) => {
                planned.stack = planned.stack.clone().with_devices_of(&stack);
                stack.refusals().into_iter().next().map(|e| LabError::from(e).message())
            }
        };
        for device in asked.devices() {
            planned
                .overwritten
                .push(safety::describe(device, keep).unwrap_or_else(|e| e.to_string()));
        }
        planned.available = match &asked.backing {
            Backing::Directory(named) => {
                // A default that is not made yet has the room of the folder above it.
                let there = named.as_deref().unwrap_or(default).ancestors().find(|d| d.exists());
                there.and_then(|d| pgdyno_exec::directory::room(d).ok().flatten())
            }
            _ => planned.stack.size(),
        };
    }
    Ok(all)
}

/// Every storage for which anything is done.
pub(super) fn making(prepared: &Prepared, planned: &BTreeMap<String, Planned>, out: &mut String) {
    for (name, Planned { stack, overwritten, refusal, .. }) in planned {
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
        .filter(|name| !prepared.excluded_by(name).is_empty())
        .map(String::as_str)
        .collect();
    if !in_turn.is_empty() {
        let anew: Vec<String> =
            prepared.made_anew().iter().map(|(ordinal, _)| (ordinal + 1).to_string()).collect();
        line!(
            out,
            "\nOn one device in turn: {}. Each takes the other's place with its clusters, which are made and loaded \
             anew: before {} of {} trials{}.",
            in_turn.join(", "),
            anew.len(),
            prepared.plan.trials.len(),
            if anew.is_empty() { String::new() } else { format!(" ({})", anew.join(", ")) }
        );
    }
}

/// Describes the device settings of treatments and the storages that are trimmed.
pub(super) fn before_each_trial(
    prepared: &Prepared,
    planned: &BTreeMap<String, Planned>,
    out: &mut String,
) {
    for (number, treatment) in (1..).zip(&prepared.plan.treatments) {
        if treatment.device == DeviceSettings::default() {
            continue;
        }
        let mut asked = prepared.experiment.storage[&treatment.storage].clone();
        asked.device = asked.device.overlaid(&treatment.device);
        for step in planned[&treatment.storage].stack.setting_steps(&asked.device) {
            step!(out, "treatment {number}, unless it is set so: {step}");
        }
    }
}

/// Describes the storages that are trimmed before each trial.
pub(super) fn trimming(prepared: &Prepared, planned: &BTreeMap<String, Planned>, out: &mut String) {
    for (name, Planned { stack, .. }) in planned {
        if prepared.experiment.storage[name].device.trim {
            step!(out, "if the trial is on {name}, run: fstrim {}", stack.path().display());
        }
    }
}

/// How all of them are taken down.
pub(super) fn taking_down(planned: &BTreeMap<String, Planned>, out: &mut String) {
    for Planned { stack, .. } in planned.values() {
        stack.take_down_steps().iter().for_each(|step| step!(out, "{step}"));
    }
}
