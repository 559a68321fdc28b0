//! Taking down what a dead pgdyno left behind, and only what is provably pgdyno's.

use std::cmp::Reverse;
use std::ffi::OsString;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pgdyno_model::facts::Owner;
use rustix::process::Signal;

use crate::account::server_account;
use crate::beneath::Directory;
use crate::journal::{
    Entry, Journal, JournalError, MARKER, Made, MadeId, RecordedSchema, RecordedSettings,
};
use crate::marked::{self, Removal, Thing, remove_made};
use crate::perform_undo;
use crate::process::{boot_id, children, is_alive, postmaster_of, programs_of, servers_of};
use crate::undo::Undo;

/// What became of one leftover.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swept {
    /// Where it was.
    pub path: PathBuf,
    /// What was done.
    pub outcome: Outcome,
}

/// What was done about a leftover.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is gone now.
    Removed {
        /// A server still ran in it and was ended; its pid.
        server_ended: Option<i32>,
    },
    /// A setting is again as it was.
    PutBack,
    /// It was gone already: only the journal's entry was struck out.
    WasGone,
    /// It does not bear the journal's mark, so that it is somebody else's; the entry was struck
    /// out.
    NotOurs {
        /// What was found in place of the mark.
        found: String,
    },
    /// Only a command of the user's own undoes it, which no journal makes pgdyno run. The entry
    /// stays.
    ByHand {
        /// The entry, for [`Journal::done`] once the user was told.
        id: MadeId,
        /// What is to be run, and where the user finds it.
        what: String,
    },
    /// It is ours, and could not be removed; the entry stays.
    Failed {
        /// Why not.
        why: String,
    },
}

impl std::fmt::Display for Swept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = self.path.display();
        match &self.outcome {
            Outcome::Removed { server_ended: None } => {
                write!(f, "removed {path}, left behind by a killed pgdyno")
            }
            Outcome::Removed { server_ended: Some(pid) } => {
                write!(f, "ended server {pid} and removed {path}, left behind by a killed pgdyno")
            }
            Outcome::PutBack => {
                write!(f, "put {path} back as it was before a pgdyno that was killed")
            }
            Outcome::WasGone => write!(f, "{path}, journalled by a killed pgdyno, is gone already"),
            Outcome::NotOurs { found } => {
                write!(f, "left {path} alone: a killed pgdyno journalled it, but {found}")
            }
            Outcome::ByHand { what, .. } => {
                write!(f, "left {path} as a killed pgdyno set it, for you to put back: {what}")
            }
            Outcome::Failed { why } => {
                write!(f, "cannot take down {path}, left behind by a killed pgdyno: {why}")
            }
        }
    }
}

/// Undoes changes to servers that pgdyno does not own; implemented by the crate that connects to
/// servers.
pub trait ExternalServers {
    /// Puts the settings back that `recorded` names.
    fn put_back_settings(&self, recorded: &RecordedSettings) -> Outcome;

    /// Drops everything that bears the mark `id` in the database of `recorded`.
    fn drop_schema(&self, recorded: &RecordedSchema, id: &MadeId) -> Outcome;
}

/// Finds what dead processes left behind: ends the programs that they started and their servers, by
/// pid, and removes it, where identity and marker agree with the journal (`marked`). What
/// a living process owns is left alone. Ends early on `stop`.
///
/// # Errors
/// [`JournalError`]: the journal cannot be read. What cannot be removed is told in its [`Outcome`].
pub fn sweep(
    journal: &Journal,
    servers: &dyn ExternalServers,
    stop: &AtomicBool,
) -> Result<Vec<Swept>, JournalError> {
    let _lock = journal.lock()?;
    let mut swept = Vec::new();
    let mut entries = journal.entries()?;
    entries.retain(|entry| !is_alive(&entry.owner));
    // Newest first where one thing lies on another; the sort keeps the others' order.
    entries.sort_by_key(|e| {
        (
            layer(&e.made),
            matches!(e.made, Made::Stack { .. } | Made::Setting { .. }).then_some(Reverse(e.at)),
        )
    });
    let running = if stop.load(Ordering::Relaxed) { Vec::new() } else { end_programs(&entries) };
    let mut failed = Vec::new();
    for entry in entries {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let outcome = match running.iter().find(|(owner, _)| *owner == entry.owner) {
            // It may still write into what is to go.
            Some((_, why)) => Outcome::Failed { why: why.clone() },
            None => take_down(&entry, journal, servers),
        };
        let path = entry.made.path().to_owned();
        match outcome {
            Outcome::Failed { .. } => failed.push((swept.len(), entry)),
            Outcome::ByHand { .. } => {}
            _ => journal.done(&entry.id)?,
        }
        swept.push(Swept { path, outcome });
    }
    // What a filesystem without power would not let go has gone with it.
    for (at, entry) in failed {
        let lies_on_a_stack = matches!(entry.made, Made::Cluster { .. } | Made::Directory { .. });
        if lies_on_a_stack && matches!(entry.made.path().try_exists(), Ok(false)) {
            journal.done(&entry.id)?;
            swept[at].outcome = Outcome::Removed { server_ended: None };
        }
    }
    Ok(swept)
}

/// Ends what the owners of `entries`, all dead, had started and what still runs; whose programs do
/// not end, and which.
fn end_programs(entries: &[Entry]) -> Vec<(Owner, String)> {
    let account = server_account().ok().map(|account| account.uid);
    let mut owners: Vec<&Owner> = Vec::new();
    for entry in entries {
        if !owners.contains(&&entry.owner) && boot_id().is_ok_and(|id| id == entry.owner.boot_id) {
            owners.push(&entry.owner);
        }
    }
    let mut running = Vec::new();
    for owner in owners {
        let own = entries.iter().filter(|entry| entry.owner == *owner);
        let places: Vec<&Path> =
            own.map(|entry| entry.made.path()).filter(|p| p.is_absolute()).collect();
        if let Err(pid) = end_programs_of(owner, account, &places) {
            running.push((
                owner.clone(),
                format!("the program that it started as process {pid} does not end"),
            ));
        }
    }
    running
}

/// Ends what `owner` had started; the pid of one that does not end.
fn end_programs_of(owner: &Owner, account: Option<u32>, places: &[&Path]) -> Result<(), i32> {
    /// Rounds until nothing new is found: what is ended may have started more in between.
    const ROUNDS: u8 = 10;
    for _ in 0..ROUNDS {
        let all = programs_of(owner, account, places);
        if all.is_empty() {
            return Ok(());
        }
        // An initdb that is asked to end removes what it made; a mkfs closes its device.
        all.iter().for_each(|program| program.signal(Signal::TERM));
        for program in all {
            if !program.wait_gone(Duration::from_secs(2)) {
                program.signal(Signal::KILL);
                if !program.wait_gone(Duration::from_secs(10)) {
                    return Err(program.pid());
                }
            }
        }
    }
    programs_of(owner, account, places).first().map_or(Ok(()), |program| Err(program.pid()))
}

/// Something that a dead process left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// Where it is.
    pub path: PathBuf,
    /// What, and whose.
    pub entry: Entry,
    /// Whether the journal names it, so that [`sweep`] takes it down. What bears a mark only, as
    /// after the journal was lost, is shown and left.
    pub journalled: bool,
}

/// What dead processes left behind: what the journal names, and what bears a mark directly below
/// `directories`. Nothing is changed.
///
/// # Errors
/// [`JournalError`]: the journal cannot be read.
pub fn leftovers(journal: &Journal, directories: &[&Path]) -> Result<Vec<Leftover>, JournalError> {
    let journalled =
        |entry: Entry| Leftover { path: entry.made.path().to_owned(), entry, journalled: true };
    let mut found: Vec<Leftover> = journal.entries()?.into_iter().map(journalled).collect();
    for path in directories {
        // One that is not there, or closed to us, holds nothing that we could show.
        let Ok(directory) = path.canonicalize().and_then(|real| Directory::open(&real)) else {
            continue;
        };
        for name in directory.entries().unwrap_or_default().into_iter().map(|child| child.name) {
            let Ok(entry) = marked_entry(&directory, &name) else { continue };
            if !found.iter().any(|f| f.entry.id == entry.id) {
                found.push(Leftover { path: path.join(name), entry, journalled: false });
            }
        }
    }
    found.retain(|f| !is_alive(&f.entry.owner));
    Ok(found)
}

/// The entry in the marker of the directory `name`.
fn marked_entry(parent: &Directory, name: &OsString) -> io::Result<Entry> {
    /// More than any marker has (bytes).
    const MOST: u64 = 1 << 20;
    let mut text = Vec::new();
    parent.directory(name)?.file(MARKER)?.take(MOST).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

/// What must go earlier has the smaller number: what lies on a stack, then the stack, then what it
/// lies in.
fn layer(made: &Made) -> u8 {
    match made {
        Made::Cluster { .. } | Made::File { .. } => 0,
        Made::Setting { .. } | Made::ServerSettings { .. } | Made::ServerSchema { .. } => 1,
        Made::Stack { .. } => 2,
        Made::Directory { .. } => 3,
    }
}

fn take_down(entry: &Entry, journal: &Journal, servers: &dyn ExternalServers) -> Outcome {
    match &entry.made {
        Made::Setting { undo, .. } => return put_back(entry, undo),
        Made::ServerSettings { recorded, .. } => return servers.put_back_settings(recorded),
        Made::ServerSchema { recorded, .. } => return servers.drop_schema(recorded, &entry.id),
        Made::Stack { plan: Some(_), .. } => {
            let why = "the plan that an earlier version wrote of it cannot be read".to_owned();
            return Outcome::Failed { why };
        }
        _ => {}
    }
    let prepared = match marked::open(entry, journal) {
        Ok(Thing::Directory(directory)) => prepare(&entry.made, &directory),
        Ok(_) => Ok(None),
        Err(e) => Err(e.to_string()),
    };
    let server_ended = match prepared {
        Ok(pid) => pid,
        Err(why) => return Outcome::Failed { why },
    };
    match remove_made(entry, journal) {
        Ok(Removal::Removed) => Outcome::Removed { server_ended },
        Ok(Removal::Absent) => Outcome::WasGone,
        Ok(Removal::NotOurs(found)) => Outcome::NotOurs { found },
        Err(e) => Outcome::Failed { why: e.to_string() },
    }
}

/// Ends what uses a made directory: its server, which still writes into it, or what is mounted on
/// it. The server's pid.
fn prepare(made: &Made, directory: &Directory) -> Result<Option<i32>, String> {
    match made {
        Made::Stack { undo, .. } => perform_undo::take_down(undo).map(|()| None),
        Made::Cluster { .. } => match directory.directory("data") {
            Ok(data) => end_server(&data),
            // What stands in its place is removed, and not followed.
            Err(_) => Ok(None),
        },
        _ => Ok(None),
    }
}

fn put_back(entry: &Entry, undo: &Undo) -> Outcome {
    // A reboot has put back what the kernel keeps.
    if !undo.outlives_boot() && boot_id().is_ok_and(|id| id != entry.owner.boot_id) {
        return Outcome::WasGone;
    }
    if let Undo::RunHook { storage } = undo {
        let name = if storage.is_empty() { "NAME" } else { storage };
        return Outcome::ByHand {
            id: entry.id.clone(),
            what: format!(
                "run the commands of `storage.{name}.device.hook.restore` in the experiment file of the run of {} \
                 (process {}); pgdyno runs no commands from its journal",
                entry.at, entry.owner.pid
            ),
        };
    }
    match perform_undo::put_back(undo) {
        Ok(None) => Outcome::PutBack,
        Ok(Some(found)) => Outcome::NotOurs { found },
        Err(why) => Outcome::Failed { why },
    }
}

/// Ends the server that runs in `data`, whoever started it; its pid, if there was one.
fn end_server(data: &Directory) -> Result<Option<i32>, String> {
    let postmaster = postmaster_of(data);
    let mut all = servers_of(data);
    if let Some(postmaster) = postmaster {
        all.extend(children(postmaster.pid()));
        postmaster.signal(Signal::QUIT);
        if !postmaster.wait_gone(Duration::from_secs(10)) {
            all.extend(children(postmaster.pid()));
        }
    }
    for process in all {
        // What outlived its postmaster notices that by itself, mostly at once.
        if !process.wait_gone(Duration::from_secs(2)) {
            process.signal(Signal::KILL);
            if !process.wait_gone(Duration::from_secs(10)) {
                return Err(format!("its server's process {} does not end", process.pid()));
            }
        }
    }
    Ok(postmaster.map(crate::process::Identity::pid))
}
