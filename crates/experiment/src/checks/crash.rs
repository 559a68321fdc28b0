//! Crash tests: which are possible, which are meant to fail, and how many rounds controls take.

use std::collections::BTreeMap;

use pgdyno_model::crash::{CrashOptions, States, Under};
use pgdyno_model::storage::Backing;
use pgdyno_model::{Experiment, Fault, Plan, Storage, Treatment};
use pgdyno_storage::fault::CUTTABLE;

use crate::error::ExperimentError;

/// Faults of the disk that an emulated disk can have.
const DISK_FAULTS: &[Fault] =
    &[Fault::EmulatedLie, Fault::TornWrite, Fault::IoError, Fault::DiskFull];

/// Folders of PGDATA whose files a power loss must not find unflushed: tables and indexes, the
/// commit log, the control file and shared catalogs. For WAL, the control sets fsync=off.
pub const STALE_FOLDERS: [&str; 3] = ["base", "pg_xact", "global"];

/// Filesystems of which several clones, with one UUID, can be mounted at a time: btrfs where the
/// kernel can (`TestBed::can_have_replicas`).
const CLONABLE: [&str; 5] = ["ext2", "ext3", "ext4", "xfs", "btrfs"];

/// Returns how many rounds the positive controls of `fault` take, if each is seen at once.
pub fn control_rounds(fault: Fault) -> u32 {
    match fault {
        Fault::Power => 1 + STALE_FOLDERS.len() as u32,
        Fault::EmulatedLie | Fault::Plug => 0,
        _ => 1,
    }
}

/// Returns the storages that a crash test of a cluster on `storage` strikes: its own, and that of
/// its WAL.
pub fn struck_storages(storages: &BTreeMap<String, Storage>, storage: &str) -> Vec<String> {
    let wal = storages.get(storage).and_then(|s| s.wal.clone());
    std::iter::once(storage.to_owned()).chain(wal).collect()
}

/// Refuses the fault that only a hand brings about.
///
/// # Errors
/// The experiment names the fault `plug`.
pub fn refuse_plug(experiment: &Experiment) -> Result<(), ExperimentError> {
    if experiment.crash.as_ref().is_none_or(|crash| !crash.faults.contains(&Fault::Plug)) {
        return Ok(());
    }
    Err(refusal(
        "this machine",
        "nothing that pgdyno does pulls a plug",
        "`pgdyno crash --fault plug --witness HOST` waits for you to pull it",
    ))
}

/// Checks that every treatment's storage can be crashed in the ways that `[crash]` names.
///
/// # Errors
/// One cannot, or treatments that share a session are meant to fail differently.
pub(super) fn check(experiment: &Experiment, plan: &Plan) -> Result<(), ExperimentError> {
    let options = options(experiment, plan)?;
    check_planted(experiment, plan)?;
    for treatment in &plan.treatments {
        for name in struck_storages(&experiment.storage, &treatment.storage) {
            for fault in &options.faults {
                possible(experiment, &name, *fault)?;
            }
        }
        if options.states != States::Drawn {
            check_recordable(experiment, &treatment.storage, options.jobs)?;
        }
        if options.under != Under::Both && experiment.storage[&treatment.storage].wal.is_none() {
            return Err(refusal(
                &format!("storage `{}`", treatment.storage),
                "`under` names one of PGDATA and pg_wal, and both lie on this storage",
                "describe a storage of its own for pg_wal: `[storage.wal]`, and `wal = \"wal\"` \
                 here",
            ));
        }
    }
    Ok(())
}

/// Returns the options of the crash tests.
///
/// # Errors
/// The experiment asks for none.
pub fn options<'a>(
    experiment: &'a Experiment,
    plan: &Plan,
) -> Result<&'a CrashOptions, ExperimentError> {
    experiment.crash.as_ref().ok_or_else(|| {
        let help = "add `[crash]` with `faults = [\"process\"]`";
        refusal(&plan.name, "the experiment names no faults", help)
    })
}

/// Creates the error of a crash test of `what`, which `found` prevents.
fn refusal(what: &str, found: &str, help: &str) -> ExperimentError {
    ExperimentError::refused(format!("cannot crash {what}: {found}"), help)
}

/// Checks that storage `name` can be struck by `fault`.
fn possible(experiment: &Experiment, name: &str, fault: Fault) -> Result<(), ExperimentError> {
    let refuse = |found: &str, help: &str| Err(refusal(&format!("storage `{name}`"), found, help));
    let storage = &experiment.storage[name];
    if !fault.needs_filesystem() {
        return Ok(());
    }
    let cuttable = CUTTABLE.join(", ");
    match (&storage.backing, &storage.filesystem) {
        (Backing::Directory(_), _) => refuse(
            &format!(
                "the fault {fault} takes a filesystem that pgdyno made, and this is a directory \
                 that was there before"
            ),
            &format!(
                "name a filesystem for pgdyno to make in a file of its own, such as `--filesystem \
                 ext4` ({cuttable})"
            ),
        ),
        (Backing::Loop(_) | Backing::Emulated(_), Some(_))
            if fault == Fault::Power || DISK_FAULTS.contains(&fault) =>
        {
            Ok(())
        }
        (Backing::Loop(_) | Backing::Emulated(_), _) => {
            refuse(&format!("this version cannot bring the fault {fault} about"), "leave it out")
        }
        _ => refuse(
            &format!("the fault {fault} takes a filesystem on one disk of pgdyno's own making"),
            "choose `backing = { loop = { size = \"1300MiB\" } }`, or `emulated` in place of \
             `loop`",
        ),
    }
}

/// Checks that all states of storage `name` can be looked at: its disk is recorded whole.
fn check_recordable(experiment: &Experiment, name: &str, jobs: u32) -> Result<(), ExperimentError> {
    let storage = &experiment.storage[name];
    let refuse = |found: &str, help: &str| {
        Err(refusal(&format!("storage `{name}` at every flush"), found, help))
    };
    if storage.wal.is_some() {
        return refuse(
            "one disk is recorded, and pg_wal lies on another",
            "leave `wal` out, so that PGDATA and pg_wal lie on one storage",
        );
    }
    let filesystem = storage.filesystem.as_ref().map_or("", |filesystem| filesystem.name.as_str());
    if jobs > 1 && !CLONABLE.contains(&filesystem) {
        return refuse(
            &format!("the kernel does not mount two clones of {filesystem} at a time"),
            &format!("leave `jobs` out, or use one of {}", CLONABLE.join(", ")),
        );
    }
    if storage.backing.emulated().iter().any(|disk| disk.log) {
        return refuse(
            "its emulated disk keeps a log from its beginning on (`log = true`)",
            "leave `log` out: a log of the stretch is kept anyway",
        );
    }
    Ok(())
}

/// Returns the faults that `treatment` is meant to fail.
pub fn planted_faults(experiment: &Experiment, treatment: &Treatment) -> Vec<Fault> {
    let has = |(factor, level): &(String, _)| {
        treatment.levels.0.iter().any(|(f, l)| f == factor && l == level)
    };
    let its = || experiment.planted.iter().filter(|planted| planted.levels.iter().all(has));
    let tried = experiment.crash.iter().flat_map(|crash| &crash.faults);
    tried.filter(|fault| its().any(|planted| planted.faults.contains(fault))).copied().collect()
}

/// Refuses expectations that differ between treatments that share one session of crash tests.
fn check_planted(experiment: &Experiment, plan: &Plan) -> Result<(), ExperimentError> {
    let treatments = &plan.treatments;
    for (at, treatment) in treatments.iter().enumerate() {
        let first = &treatments[Treatment::first_crashed_alike(treatments, at)];
        if planted_faults(experiment, first) != planted_faults(experiment, treatment) {
            return Err(refusal(
                &treatment.levels.to_string(),
                "`[[crash.planted]]` tells it from a treatment that differs in its load only, and \
                 both share one session",
                "name storages, versions or settings in its `levels`: crash tests have a load of \
                 their own",
            ));
        }
    }
    Ok(())
}
