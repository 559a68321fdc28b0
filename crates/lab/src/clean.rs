//! `pgdyno clean` and `pgdyno filesystems`: what killed processes left behind, what is kept, and
//! what this machine can make.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use crate::error::LabError;
use pgdyno_exec::journal::{Journal, OwnedResource};
use pgdyno_exec::paths;
use pgdyno_exec::undo::Undo;
use pgdyno_model::Advice;
use pgdyno_model::units::Bytes;
use pgdyno_postgres::KeptTemplate;
use pgdyno_postgres::sweep::{Leftover, Outcome, leftovers, sweep};
use pgdyno_storage::filesystem::FILESYSTEMS;
pub use pgdyno_storage::kept::KeptCrash;
use pgdyno_storage::kept::{KeptCrashes, LeftAlone};

use pgdyno_provision::BenchError;
use pgdyno_provision::stores::remove_unfinished;

/// The result of a cleanup.
#[derive(Debug)]
pub struct Cleaned {
    /// A line for each thing that was found.
    pub told: Vec<String>,
    /// Whether something that the journal names is still there, or is left for the user to put
    /// back. What only bears a mark is not counted: another journal may name it.
    pub left: bool,
}

/// Lists what dead processes left behind, by the journal and by marks in `directories`. Changes
/// nothing.
///
/// # Errors
/// The journal cannot be read.
pub fn find(directories: &[PathBuf]) -> Result<Vec<String>, BenchError> {
    let journal = Journal::open(&paths::state_dir())?;
    Ok(find_leftovers(&journal, directories)?.iter().map(describe).collect())
}

/// Takes down what dead processes left behind according to the journal. Lists, and leaves alone,
/// what bears only a mark.
///
/// # Errors
/// The journal cannot be read.
pub fn clean(directories: &[PathBuf], stop: &AtomicBool) -> Result<Cleaned, BenchError> {
    let journal = Journal::open(&paths::state_dir())?;
    let swept = sweep(&journal, stop)?;
    let left =
        swept.iter().any(|s| matches!(s.outcome, Outcome::Failed { .. } | Outcome::ByHand { .. }));
    let mut lines: Vec<String> = swept.iter().map(ToString::to_string).collect();
    lines.extend(
        find_leftovers(&journal, directories)?.iter().filter(|l| !l.journalled).map(describe),
    );
    lines.extend(remove_unfinished());
    // The lines say it now, and nothing that pgdyno does makes it undone.
    for swept in &swept {
        if let Outcome::ByHand { id, .. } = &swept.outcome {
            journal.done(id)?;
        }
    }
    Ok(Cleaned { told: lines, left })
}

/// Lists the templates that earlier runs kept (`workload.keep_template`), a line each. Removes them
/// if `remove`.
///
/// # Errors
/// A template cannot be removed.
pub fn templates(remove: bool) -> Result<Vec<String>, BenchError> {
    let mut lines = Vec::new();
    for kept in KeptTemplate::all() {
        if remove {
            kept.remove()
                .map_err(|source| LabError::Template { path: kept.path.clone(), source })?;
        }
        let done = if remove { "removed" } else { "kept" };
        let what = kept.what.lines().next().unwrap_or_default();
        let size = Bytes(kept.bytes);
        lines.push(format!("{done}: a loaded cluster, {what}, {size} in {}", kept.path.display()));
    }
    Ok(lines)
}

/// Lists the data that crash tests keep, a line a session. Removes the data if `remove`; the
/// records stay in the store.
pub fn crashes(remove: bool) -> Cleaned {
    let KeptCrashes { all, mut left } = KeptCrashes::find();
    let (mut told, mut bytes) = (Vec::new(), 0);
    for kept in &all {
        let (freed, stays) = if remove { kept.remove() } else { (kept.bytes, Vec::new()) };
        left.extend(stays);
        bytes += freed;
        if freed == 0 && kept.bytes > 0 {
            continue;
        }
        let done = if remove { "removed" } else { "kept" };
        let what = if kept.has_stretch { ", a load whose states are not all judged" } else { "" };
        let (id, path) = (&kept.id, kept.path.display());
        told.push(format!("{done}: {id}{what}, {} in {path}", Bytes(freed)));
    }
    if remove && bytes > 0 {
        told.push(format!(
            "{} freed; the records of these crash tests stay in the store",
            Bytes(bytes)
        ));
    }
    let stays = |left: &LeftAlone| format!("left: {}: {}", left.path.display(), left.why);
    told.extend(left.iter().map(stays));
    Cleaned { told, left: remove && !left.is_empty() }
}

/// Returns place and size of the data that crash tests keep, by session.
pub fn kept_crashes() -> Vec<KeptCrash> {
    KeptCrashes::find().all
}

fn find_leftovers(journal: &Journal, directories: &[PathBuf]) -> Result<Vec<Leftover>, BenchError> {
    let (storage, sockets) = (paths::default_storage_dir(), paths::socket_base());
    let mut all: Vec<&Path> = vec![&storage, &sockets];
    all.extend(directories.iter().map(PathBuf::as_path));
    Ok(leftovers(journal, &all)?)
}

fn describe(leftover: &Leftover) -> String {
    let (path, owner) = (leftover.path.display(), leftover.entry.owner.pid);
    let at = leftover.entry.at;
    if let OwnedResource::Setting { undo: undo @ Undo::RunHook { .. }, .. } = &leftover.entry.made {
        return format!(
            "{path}: set at {at} by process {owner}, which is gone; left for you: {undo}"
        );
    }
    if leftover.journalled {
        format!("{path}: made at {at} by process {owner}, which is gone")
    } else {
        format!(
            "{path}: marked as made at {at} by process {owner}, which is gone; \
             the journal does not name it, so it stays"
        )
    }
}

/// A filesystem that pgdyno knows.
#[derive(Debug)]
pub struct Known {
    /// Name of the filesystem in experiment files.
    pub name: &'static str,
    /// Reason why this machine cannot make the filesystem, and the remedy; none if it can.
    pub missing: Option<(String, Option<String>)>,
}

/// Returns every filesystem that pgdyno knows. Takes root, to find out what the kernel has.
pub fn filesystems() -> Vec<Known> {
    let known = |f: &&'static dyn pgdyno_storage::filesystem::Filesystem| Known {
        name: f.name(),
        missing: f.check_machine().err().map(|e| (e.to_string(), e.help())),
    };
    FILESYSTEMS.iter().map(known).collect()
}
