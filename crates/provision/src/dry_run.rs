//! Dry runs of plans on this machine: asks it for the parts that the plan's text names.

use std::collections::BTreeMap;
use std::path::Path;

use pgdyno_exec::account::{Account, server_account};
use pgdyno_exec::device::safety;
use pgdyno_exec::paths;
use pgdyno_experiment::ResolvedExperiment;
use pgdyno_experiment::dry_run::{self, BuildPrograms, Machine, PlannedStorage, design_storages};
use pgdyno_model::storage::Backing;
use pgdyno_storage::{Stack, Surroundings};

use crate::BenchError;
use crate::programs::{Programs, find_programs, judge_settings};

/// Describes the plan of `resolved` on this machine.
///
/// # Errors
/// The server's account or its programs are not to be had, or a program refuses a setting.
pub fn dry_run(resolved: &ResolvedExperiment) -> Result<String, BenchError> {
    if resolved.experiment.postgres.is_external() {
        return Ok(dry_run::dry_run(resolved, None));
    }
    Ok(dry_run::dry_run(resolved, Some(&machine(resolved)?)))
}

/// Describes how storages and clusters of `resolved` are made on this machine, and loaded.
///
/// # Errors
/// As [`dry_run()`].
pub fn making(resolved: &ResolvedExperiment) -> Result<String, BenchError> {
    Ok(dry_run::making(resolved, &machine(resolved)?))
}

/// Asks this machine for the parts of it that the text of `resolved` names.
fn machine(resolved: &ResolvedExperiment) -> Result<Machine, BenchError> {
    let default_storage = paths::default_storage_dir();
    let mut programs = BTreeMap::new();
    for build in resolved.builds() {
        let found = match find_programs(&build)? {
            Programs::Here(install) => {
                let judgement = judge_settings(&install, resolved, &build)?;
                BuildPrograms::Installed(install, judgement)
            }
            Programs::ToFetch(_, version) => BuildPrograms::ToFetch(version),
        };
        programs.insert(build, found);
    }
    let account = server_account()?;
    let storages = storages_here(resolved, &default_storage, &account)?;
    Ok(Machine { account, socket_base: paths::socket_base(), default_storage, programs, storages })
}

/// Designs the storages of `resolved` below `default`, and asks this machine about each.
fn storages_here(
    resolved: &ResolvedExperiment,
    default: &Path,
    account: &Account,
) -> Result<BTreeMap<String, PlannedStorage>, BenchError> {
    let keep = resolved.experiment.telemetry.keep_serials;
    let mut all = design_storages(resolved, default)?;
    for (name, planned) in &mut all {
        let asked = &resolved.experiment.storage[name];
        let around = Surroundings { default_directory: default, account, wipe: &resolved.wipe };
        planned.refusal = match Stack::plan(name, asked, &around) {
            Err(e) => Some(BenchError::from(e).message()),
            Ok(stack) => {
                planned.stack = planned.stack.clone().with_devices_of(&stack);
                stack.refusals().into_iter().next().map(|e| BenchError::from(e).message())
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
