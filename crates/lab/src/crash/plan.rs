//! What can be crashed, and what a dry run tells of it. Touches nothing.

use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;

use pgdyno_host::facts::Serials;
use pgdyno_host::fault::CUTTABLE;
use pgdyno_host::server_account;
use pgdyno_model::crash::{CrashOptions, Under};
use pgdyno_model::storage::Backing;
use pgdyno_model::{Fault, Treatment};

use super::aim::aims;
use super::planted;
use super::subject::{Interference, Subject, takes_emulated};
use crate::LabError;
use crate::prepare::Prepared;
use crate::run::{base_settings, installs};
use pgdyno_model::progress::Progress;

/// Whether every treatment's storage can be crashed in the ways that `[crash]` names.
pub(crate) fn check(prepared: &Prepared) -> Result<(), LabError> {
    let options = options(prepared)?;
    planted::check(prepared)?;
    for treatment in &prepared.plan.treatments {
        for name in prepared.crashed(&treatment.storage) {
            for fault in &options.faults {
                possible(prepared, name, *fault)?;
            }
        }
        if options.under != Under::Both
            && prepared.experiment.storage[&treatment.storage].wal.is_none()
        {
            return Err(LabError::Crash {
                what: format!("storage `{}`", treatment.storage),
                found: "`under` names one of PGDATA and pg_wal, and both lie on this storage".into(),
                help: "describe a storage of its own for pg_wal: `[storage.wal]`, and `wal = \"wal\"` here"
                    .into(),
            });
        }
    }
    Ok(())
}

fn options(prepared: &Prepared) -> Result<&CrashOptions, LabError> {
    prepared.experiment.crash.as_ref().ok_or_else(|| LabError::Crash {
        what: prepared.plan.name.clone(),
        found: "the experiment names no faults".into(),
        help: "add `[crash]` with `faults = [\"process\"]`".into(),
    })
}

/// Whether storage `name` can be struck by `fault`.
fn possible(prepared: &Prepared, name: &str, fault: Fault) -> Result<(), LabError> {
    let refuse = |found: String, help: String| {
        Err(LabError::Crash { what: format!("storage `{name}`"), found, help })
    };
    let storage = &prepared.experiment.storage[name];
    if !fault.needs_filesystem() {
        return Ok(());
    }
    let cuttable = CUTTABLE.join(", ");
    match (&storage.backing, &storage.filesystem) {
        (Backing::Directory(_), _) => refuse(
            format!(
                "the fault {fault} takes a filesystem that pgdyno made, and this is a directory that was there before"
            ),
            format!(
                "name a filesystem for pgdyno to make in a file of its own, such as `--filesystem ext4` ({cuttable})"
            ),
        ),
        (Backing::Loop(_) | Backing::Emulated(_), Some(_))
            if fault == Fault::Power || super::disk::FAULTS.contains(&fault) =>
        {
            Ok(())
        }
        (Backing::Loop(_) | Backing::Emulated(_), _) => {
            refuse(format!("this version cannot bring the fault {fault} about"), "leave it out".into())
        }
        _ => refuse(
            format!("the fault {fault} takes a filesystem on one disk of pgdyno's own making"),
            "choose `backing = { loop = { size = \"1300MiB\" } }`, or `emulated` in place of `loop`".into(),
        ),
    }
}

/// The subject that `treatment` of `prepared` describes.
pub(crate) fn subject(
    prepared: &Prepared,
    treatment: &Treatment,
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<Subject, LabError> {
    let account = server_account()?;
    let install = installs(prepared, &account, progress, stop)?
        .remove(&prepared.build(treatment))
        .ok_or_else(|| LabError::Storage {
            found: "no programs of the treatment's version".into(),
        })?;
    let experiment = &prepared.experiment;
    let mut settings = base_settings(prepared);
    for (name, value) in &treatment.settings {
        settings.retain(|n, _| !n.eq_ignore_ascii_case(name));
        settings.insert(name.clone(), value.clone());
    }
    let labels: Vec<String> =
        treatment.levels.0.iter().map(|(name, level)| format!("{name}={level}")).collect();
    let name = if labels.is_empty() { described(prepared, treatment) } else { labels.join(" ") };
    Ok(Subject {
        name,
        storage: treatment.storage.clone(),
        storages: experiment.storage.clone(),
        device: treatment.device.clone(),
        wipe: prepared.wipe.clone(),
        serials: if experiment.telemetry.keep_serials { Serials::Kept } else { Serials::Hashed },
        install,
        account,
        initdb: experiment.postgres.initdb.clone(),
        connect: experiment.postgres.connect,
        settings,
        options: CrashOptions {
            planted: planted::planted(prepared, treatment),
            ..options(prepared)?.clone()
        },
        interference: Interference::default(),
    })
}

/// A subject without factors by its filesystem and settings.
fn described(prepared: &Prepared, treatment: &Treatment) -> String {
    let storage = &prepared.experiment.storage[&treatment.storage];
    let mut words = vec![match (&storage.backing, &storage.filesystem) {
        (Backing::Directory(None), None) => "a directory".to_owned(),
        (Backing::Directory(Some(path)), None) => path.display().to_string(),
        (_, Some(filesystem)) => filesystem.name.clone(),
        (_, None) => treatment.storage.clone(),
    }];
    let settings = prepared.experiment.postgres.settings.iter();
    words.extend(settings.map(|(name, value)| format!("{name}={value}")));
    words.join(", ")
}

/// What a crash test would do: faults, what each models, rounds, aims, controls, and the steps that
/// make its storages.
///
/// # Errors
/// The programs of the server, or an account to run it as, cannot be found.
pub fn dry_run(prepared: &Prepared) -> Result<String, LabError> {
    let options = options(prepared)?;
    let mut out = String::new();
    let _ = writeln!(
        out,
        "crash tests of {} (nothing is done: this is the plan)\n",
        described(prepared, &prepared.plan.treatments[0])
    );
    let _ = writeln!(
        out,
        "each round: tables brought back and made durable; {} clients, scale {}, TPC-B with a ledger; a fault within {} at a \
         moment drawn by seed {}; recovery within {}; {} oracles",
        options.clients,
        options.scale,
        options.load,
        options.seed,
        options.recovery_limit,
        pgdyno_durability::oracles::ORACLES.len()
    );
    for fault in &options.faults {
        let storage = &prepared.experiment.storage[&prepared.plan.treatments[0].storage];
        let emulated = takes_emulated(storage, *fault);
        let aims: Vec<&str> = aims(*fault, emulated).iter().map(|a| a.name()).collect();
        let _ = writeln!(out, "\n{fault}, {} rounds: {}", options.rounds, fault.models());
        let _ = writeln!(out, "  aimed in turn at {}", aims.join(", "));
    }
    let controls = if options.controls {
        "run before the rounds"
    } else {
        "left out: a pass will be called invalid"
    };
    let _ = writeln!(out, "\npositive controls: {controls}\n");
    let _ = writeln!(
        out,
        "what each session stands on, made anew after every failure; page checksums, WAL segments of 1 MB and max_wal_size = 32MB \
         unless said otherwise; for faults of the disk an emulated disk takes the loop file's place:"
    );
    out.push_str(&crate::dry_run::making(prepared)?);
    Ok(out)
}
