//! Dry runs of plans on this machine: asks it for the parts that the plan's text names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pgdyno_exec::account::{Account, server_account};
use pgdyno_exec::device::safety;
use pgdyno_exec::{directory, paths};
use pgdyno_experiment::ResolvedExperiment;
use pgdyno_experiment::dry_run::{
    self, BuildPrograms, FilesRoom, Machine, PlannedStorage, design_storages,
};
use pgdyno_model::storage::Backing;
use pgdyno_model::units::Bytes;
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
    let files = files_room(&storages);
    let socket_base = paths::socket_base();
    Ok(Machine { account, socket_base, default_storage, programs, storages, files })
}

/// Returns the room below `directory`, which may not be made yet; none if it is not known.
fn room(directory: &Path) -> Option<Bytes> {
    directory::room(directory::nearest(directory)).ok().flatten()
}

/// Returns the directories where the storages that can be made have their files.
fn files_room(storages: &BTreeMap<String, PlannedStorage>) -> Vec<FilesRoom> {
    let can_be_made = storages.values().filter(|planned| planned.refusal.is_none());
    let mut needed: BTreeMap<PathBuf, u64> = BTreeMap::new();
    for (directory, size) in can_be_made.flat_map(|planned| planned.stack.needed()) {
        let sum = needed.entry(directory).or_default();
        *sum = sum.saturating_add(size.0);
    }
    needed.retain(|_, sum| *sum > 0);
    let of = |(directory, sum): (PathBuf, u64)| FilesRoom {
        available: room(&directory),
        directory,
        needed: Bytes(sum),
    };
    needed.into_iter().map(of).collect()
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
            Backing::Directory(named) => room(named.as_deref().unwrap_or(default)),
            _ => planned.stack.size(),
        };
    }
    Ok(all)
}
