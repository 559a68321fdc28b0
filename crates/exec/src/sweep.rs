//! Cleans up after killed pgdyno processes. Only things that provably belong to pgdyno are removed.

use std::cmp::Reverse;
use std::ffi::OsString;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pgdyno_model::facts::Owner;
use rustix::io::Errno;
use rustix::process::Signal;

use crate::account::server_account;
use crate::beneath::Directory;
use crate::context::ExecContext;
use crate::error::StepError;
use crate::executor::{Effect, Executor, take_down};
use crate::journal::{
    Entry, Journal, JournalError, MARKER, MadeId, OwnedResource, RecordedSchema, RecordedSettings,
};
use crate::marked::{self, Thing};
use crate::mountinfo;
use crate::process::{boot_id, end_server, end_servers_below, is_gone, programs_of};
use crate::step::Step;
use crate::undo::Undo;
use pgdyno_model::advice::with_causes;

/// The result of cleaning up one leftover.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CleanupResult {
    /// Path where the leftover was.
    pub path: PathBuf,
    /// Whether it is gone, and if not, why.
    pub outcome: Outcome,
}

/// The result of cleaning up a leftover.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Outcome {
    /// It is gone now.
    Removed {
        /// Pid of a server that still ran in it and was ended.
        server_ended: Option<i32>,
    },
    /// A setting is again as it was.
    PutBack,
    /// It was gone already: only the journal's entry was struck out.
    WasGone,
    /// It does not bear the journal's mark, so that it is somebody else's; the entry was struck
    /// out.
    NotOurs {
        /// Description of the thing that is there in place of a marked one.
        found: String,
    },
    /// Only a command of the user's own undoes it, which no journal makes pgdyno run. The entry
    /// stays.
    ByHand {
        /// The entry's id, for [`Journal::done`] once the message was printed.
        id: MadeId,
        /// The command to run, and where the user finds it.
        what: String,
    },
    /// It is ours, and could not be removed; the entry stays.
    Failed { why: String },
}

impl std::fmt::Display for CleanupResult {
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

/// Cleans up after dead processes: ends the programs and servers that they started, and removes the
/// journalled things.
///
/// A thing is removed only if its identity and marker agree with the journal ([`marked`]).
/// Things of living processes and of other machines stay. Returns early on `stop`.
///
/// # Errors
/// [`JournalError`]: the journal cannot be read. A removal that fails is an [`Outcome`].
pub fn sweep(
    journal: &Journal,
    servers: &dyn ExternalServers,
    stop: &AtomicBool,
) -> Result<Vec<CleanupResult>, JournalError> {
    let _lock = journal.lock()?;
    journal.remove_unfinished()?;
    let mut swept = Vec::new();
    let mut entries = journal.entries()?;
    entries.retain(|entry| is_gone(&entry.owner));
    // Newest first where one thing lies on another; the sort keeps the others' order.
    entries.sort_by_key(|e| {
        (
            layer(&e.made),
            matches!(e.made, OwnedResource::Stack { .. } | OwnedResource::Setting { .. })
                .then_some(Reverse(e.at)),
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
            None => take_down_entry(&entry, journal, servers),
        };
        let path = entry.made.path().to_owned();
        match outcome {
            Outcome::Failed { .. } => failed.push((swept.len(), entry)),
            Outcome::ByHand { .. } => {}
            _ => journal.done(&entry.id)?,
        }
        swept.push(CleanupResult { path, outcome });
    }
    // What a filesystem without power would not let go has gone with it.
    for (at, entry) in failed {
        let lies_on_a_stack =
            matches!(entry.made, OwnedResource::Cluster { .. } | OwnedResource::Directory { .. });
        if lies_on_a_stack && matches!(entry.made.path().try_exists(), Ok(false)) {
            journal.done(&entry.id)?;
            swept[at].outcome = Outcome::Removed { server_ended: None };
        }
    }
    Ok(swept)
}

/// Ends the running programs that the dead owners of `entries` started. Returns the owners whose
/// programs do not end, each with a message that names the process.
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

/// Ends the programs that `owner` started. The error is the pid of one that does not end.
fn end_programs_of(owner: &Owner, account: Option<u32>, places: &[&Path]) -> Result<(), i32> {
    /// The most rounds: a program may start others before it ends.
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
    /// Path of the leftover.
    pub path: PathBuf,
    /// Journal entry, or the entry in its marker: the kind of thing, and its dead owner.
    pub entry: Entry,
    /// Whether the journal names the leftover, so that [`sweep`] takes it down. One that bears a
    /// mark only, as after the journal was lost, is shown and left.
    pub journalled: bool,
}

/// Returns the leftovers of dead processes: the things that the journal names, and those that bear
/// a mark directly below `directories`. Changes nothing.
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
    found.retain(|f| is_gone(&f.entry.owner));
    Ok(found)
}

/// Returns the entry in the marker of the directory `name`.
fn marked_entry(parent: &Directory, name: &OsString) -> io::Result<Entry> {
    /// More than any marker has (bytes).
    const MOST: u64 = 1 << 20;
    let mut text = Vec::new();
    parent.directory(name)?.file(MARKER)?.take(MOST).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

/// Returns the order of removal, smaller first: things on a stack, then the stack, then the
/// directory that it lies in.
fn layer(made: &OwnedResource) -> u8 {
    match made {
        OwnedResource::Cluster { .. } | OwnedResource::File { .. } => 0,
        OwnedResource::Setting { .. }
        | OwnedResource::ServerSettings { .. }
        | OwnedResource::ServerSchema { .. } => 1,
        OwnedResource::Stack { .. } => 2,
        OwnedResource::Directory { .. } => 3,
    }
}

fn take_down_entry(entry: &Entry, journal: &Journal, servers: &dyn ExternalServers) -> Outcome {
    match &entry.made {
        OwnedResource::Setting { undo, .. } => return put_back(entry, undo, journal),
        OwnedResource::ServerSettings { recorded, .. } => {
            return servers.put_back_settings(recorded);
        }
        OwnedResource::ServerSchema { recorded, .. } => {
            return servers.drop_schema(recorded, &entry.id);
        }
        OwnedResource::Stack { plan: Some(_), .. } => {
            let why = "the plan that an earlier version wrote of it cannot be read".to_owned();
            return Outcome::Failed { why };
        }
        _ => {}
    }
    // What is not provably pgdyno's is not touched, and nothing that the entry says of it is done.
    let (steps, mut server_ended) = match marked::open(entry, journal) {
        Ok(Thing::Directory(_)) => match end_servers_on(&entry.made) {
            Ok(ended) => (uses_of(&entry.made), ended),
            Err(e) => return Outcome::Failed { why: e.to_string() },
        },
        Ok(_) => (Vec::new(), None),
        Err(e) => return Outcome::Failed { why: e.to_string() },
    };
    let never = AtomicBool::new(false);
    let mut context = ExecContext { journal, stop: &never, made: vec![entry.clone()] };
    if let [step @ Step::StopServer { .. }] = steps.as_slice() {
        match context.execute(step) {
            Ok(Effect::ServerEnded { pid }) => server_ended = Some(pid),
            Ok(_) => {}
            Err(e) => return Outcome::Failed { why: cause(&e) },
        }
    } else {
        let left = take_down(&mut context, &steps);
        if !left.is_empty() {
            return Outcome::Failed { why: left.join("; ") };
        }
    }
    match context.execute(&Step::RemoveMarked { path: entry.made.path().to_owned() }) {
        Ok(Effect::NothingToUndo) => Outcome::WasGone,
        Ok(Effect::LeftAlone { found }) => Outcome::NotOurs { found },
        Ok(_) => Outcome::Removed { server_ended },
        Err(e) => Outcome::Failed { why: cause(&e) },
    }
}

/// Returns the steps that end what uses a made directory: its server, which still writes into it,
/// or what is mounted on it.
fn uses_of(made: &OwnedResource) -> Vec<Step> {
    match made {
        OwnedResource::Stack { undo, .. } => undo.iter().cloned().map(Step::Undo).collect(),
        OwnedResource::Cluster { path } => vec![Step::StopServer { data: path.join("data") }],
        _ => Vec::new(),
    }
}

/// Ends the servers of clusters on a stack, and returns the pid of one. No entry names them on a
/// clone of another stack's filesystem, which bears the markers of that one's clusters.
fn end_servers_on(made: &OwnedResource) -> io::Result<Option<i32>> {
    let OwnedResource::Stack { undo, .. } = made else { return Ok(None) };
    let mut ended = None;
    for step in undo {
        let Undo::Unmount { target, filesystem, source } = step else { continue };
        let mounted = mountinfo::mounted_at(target).ok().flatten();
        if !mounted.is_some_and(|mount| mount.is(filesystem, source)) {
            continue;
        }
        let of_these = match end_servers_of_clusters_in(target) {
            // A dead disk does not tell whose clusters these are; the filesystem is the stack's.
            Err(e) if is_dead(&e) => {
                let account = server_account().map_err(io::Error::other)?;
                end_servers_below(target, account.uid)?
            }
            other => other?,
        };
        ended = of_these.or(ended);
    }
    Ok(ended)
}

/// Ends the servers of the clusters in the directory `place` whose makers are gone.
fn end_servers_of_clusters_in(place: &Path) -> io::Result<Option<i32>> {
    /// Returns none for an entry that cannot be opened: it is no cluster. A dead disk stays an
    /// error.
    fn opened<T>(result: io::Result<T>) -> io::Result<Option<T>> {
        match result {
            Err(e) if is_dead(&e) => Err(e),
            other => Ok(other.ok()),
        }
    }
    let mut ended = None;
    let Some(directory) = opened(Directory::open(place))? else { return Ok(None) };
    for child in opened(directory.entries())?.unwrap_or_default() {
        let entry = opened(marked_entry(&directory, &child.name))?;
        let is_cluster = |entry: Entry| {
            matches!(entry.made, OwnedResource::Cluster { .. }) && is_gone(&entry.owner)
        };
        if !entry.is_some_and(is_cluster) {
            continue;
        }
        let data = directory.directory(&child.name).and_then(|cluster| cluster.directory("data"));
        if let Some(data) = opened(data)? {
            ended = end_server(&data)?.or(ended);
        }
    }
    Ok(ended)
}

/// Whether the error is what a filesystem without its disk says.
fn is_dead(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::IO.raw_os_error())
}

/// Returns why a step failed; the path is named already.
fn cause(error: &StepError) -> String {
    match error {
        StepError::Io { source, .. } => source.to_string(),
        other => with_causes(other),
    }
}

fn put_back(entry: &Entry, undo: &Undo, journal: &Journal) -> Outcome {
    // A reboot has put back what the kernel keeps.
    if !undo.outlives_boot() && boot_id().is_ok_and(|id| id != entry.owner.boot_id) {
        return Outcome::WasGone;
    }
    if let Undo::RunHook { storage } = undo {
        let name = if storage.is_empty() { "NAME" } else { storage };
        return Outcome::ByHand {
            id: entry.id.clone(),
            what: format!(
                "run the commands of `storage.{name}.device.hook.restore` in the experiment file \
                 of the run of {} (process {}); pgdyno runs no commands from its journal",
                entry.at, entry.owner.pid
            ),
        };
    }
    if !undo.is_of_setting() {
        return Outcome::NotOurs { found: format!("`{undo}` is not done for a setting") };
    }
    let never = AtomicBool::new(false);
    match ExecContext::new(journal, &never).execute(&Step::Undo(undo.clone())) {
        Ok(Effect::LeftAlone { found }) => Outcome::NotOurs { found },
        Ok(_) => Outcome::PutBack,
        Err(e) => Outcome::Failed { why: with_causes(&e) },
    }
}
