//! Taking down what a dead pgdyno left behind, and only what is provably pgdyno's.

use std::cmp::Reverse;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::Signal;

use crate::journal::{Entry, Journal, JournalError, MARKER, Made, MadeId, file_mark, nofollow};
use crate::process::{boot_id, children, is_alive, postmaster_of, servers_in};

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
    /// It does not bear the journal's mark, so that it is somebody else's; the entry was struck out.
    NotOurs {
        /// What was found in place of the mark.
        found: String,
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
            Outcome::PutBack => write!(f, "put {path} back as it was before a pgdyno that was killed"),
            Outcome::WasGone => write!(f, "{path}, journalled by a killed pgdyno, is gone already"),
            Outcome::NotOurs { found } => {
                write!(f, "left {path} alone: a killed pgdyno journalled it, but {found}")
            }
            Outcome::Failed { why } => {
                write!(f, "cannot take down {path}, left behind by a killed pgdyno: {why}")
            }
        }
    }
}

/// Finds what dead processes left behind: ends its servers, by pid, and removes it, where the thing itself carries
/// the journal's id. What a living process owns is left alone. Ends early on `stop`.
///
/// # Errors
/// [`JournalError`]: the journal cannot be read. What cannot be removed is told in its [`Outcome`].
pub fn sweep(journal: &Journal, stop: &AtomicBool) -> Result<Vec<Swept>, JournalError> {
    let _lock = journal.lock()?;
    let mut swept = Vec::new();
    let mut entries = journal.entries()?;
    // Newest first where one thing lies on another; the sort keeps the others' order.
    entries.sort_by_key(|e| {
        (layer(&e.made), matches!(e.made, Made::Stack { .. } | Made::Setting { .. }).then_some(Reverse(e.at)))
    });
    let mut failed = Vec::new();
    for entry in entries {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        if is_alive(&entry.owner) {
            continue;
        }
        let outcome = take_down(&entry, journal);
        let path = entry.made.path().to_owned();
        if matches!(outcome, Outcome::Failed { .. }) {
            failed.push((swept.len(), entry));
        } else {
            journal.done(&entry.id)?;
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

/// Something that a dead process left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// What, and whose.
    pub entry: Entry,
    /// Whether the journal names it, so that [`sweep`] takes it down. What bears a mark only, as after the journal was
    /// lost, is shown and left.
    pub journalled: bool,
}

/// What dead processes left behind: what the journal names, and what bears a mark directly below `directories`.
/// Nothing is changed.
///
/// # Errors
/// [`JournalError`]: the journal cannot be read.
pub fn leftovers(journal: &Journal, directories: &[&Path]) -> Result<Vec<Leftover>, JournalError> {
    let dead = |entry: &Entry| !is_alive(&entry.owner);
    let mut found: Vec<Leftover> =
        journal.entries()?.into_iter().map(|entry| Leftover { entry, journalled: true }).collect();
    for directory in directories {
        // One that is not there, or closed to us, holds nothing that we could show.
        let Ok(list) = fs::read_dir(directory) else { continue };
        let marked = list.flatten().filter_map(|child| fs::read(child.path().join(MARKER)).ok());
        for entry in marked.filter_map(|text| serde_json::from_slice::<Entry>(&text).ok()) {
            if !found.iter().any(|f| f.entry.id == entry.id) {
                found.push(Leftover { entry, journalled: false });
            }
        }
    }
    found.retain(|f| dead(&f.entry));
    Ok(found)
}

/// What must go earlier has the smaller number: what lies on a stack, then the stack, then what it lies in.
fn layer(made: &Made) -> u8 {
    match made {
        Made::Cluster { .. } | Made::File { .. } => 0,
        Made::Setting { .. } | Made::ServerSettings { .. } => 1,
        Made::Stack { .. } => 2,
        Made::Directory { .. } => 3,
    }
}

fn take_down(entry: &Entry, journal: &Journal) -> Outcome {
    let path = entry.made.path();
    match &entry.made {
        Made::Setting { restore, .. } => {
            // A reboot has put back what the kernel keeps.
            if !restore.outlives_boot() && boot_id().is_ok_and(|id| id != entry.owner.boot_id) {
                return Outcome::WasGone;
            }
            return match restore.perform() {
                Ok(None) => Outcome::PutBack,
                Ok(Some(found)) => Outcome::NotOurs { found },
                Err(why) => Outcome::Failed { why },
            };
        }
        Made::ServerSettings { recorded, .. } => {
            return match recorded.put_back_by_dsn() {
                Ok(left) if left.is_empty() => Outcome::PutBack,
                Ok(left) => Outcome::NotOurs { found: left.join("; ") },
                Err(why) => Outcome::Failed { why },
            };
        }
        Made::Stack { stack, .. } if matches!(mark(path, &entry.id), Ok(Mark::Ours)) => {
            if let Err(why) = stack.undo(journal) {
                return Outcome::Failed { why };
            }
        }
        _ => {}
    }
    let server = match &entry.made {
        // Ended first: it still writes into the directory that is to go.
        Made::Cluster { .. } if matches!(mark(path, &entry.id), Ok(Mark::Ours)) => {
            end_server(&path.join("data"))
        }
        _ => Ok(None),
    };
    let server_ended = match server {
        Ok(pid) => pid,
        Err(why) => return Outcome::Failed { why },
    };
    match remove_made(&entry.made, &entry.id) {
        Ok(Removal::Removed) => Outcome::Removed { server_ended },
        Ok(Removal::Absent) => Outcome::WasGone,
        Ok(Removal::NotOurs(found)) => Outcome::NotOurs { found },
        Err(e) => Outcome::Failed { why: e.to_string() },
    }
}

/// Ends the server that runs in `data`, whoever started it; its pid, if there was one.
pub(crate) fn end_server(data: &Path) -> Result<Option<i32>, String> {
    let postmaster = postmaster_of(data);
    let mut all = servers_in(data);
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

/// How an attempt to remove ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Removal {
    /// It was there, ours, and is gone.
    Removed,
    /// It was not there.
    Absent,
    /// It is not ours; what was found instead.
    NotOurs(String),
}

enum Mark {
    Ours,
    Absent,
    Empty,
    Other(String),
}

/// Removes a made thing if it carries `id`.
pub(crate) fn remove_made(made: &Made, id: &MadeId) -> io::Result<Removal> {
    let path = made.path();
    let found = match made {
        Made::File { .. } => file_mark_of(path, id)?,
        Made::Cluster { .. } | Made::Directory { .. } | Made::Stack { .. } => mark(path, id)?,
        Made::Setting { .. } | Made::ServerSettings { .. } => {
            unreachable!("a setting is put back, not removed")
        }
    };
    match (found, made) {
        (Mark::Absent, _) => Ok(Removal::Absent),
        (Mark::Other(found), _) => Ok(Removal::NotOurs(found)),
        (Mark::Ours | Mark::Empty, Made::File { .. }) => fs::remove_file(path).map(|()| Removal::Removed),
        // Made, and its maker died before the marker was in: removing an empty directory harms nobody.
        (Mark::Empty, _) => fs::remove_dir(path).map(|()| Removal::Removed),
        (Mark::Ours, _) => remove_tree(path).map(|()| Removal::Removed),
    }
}

/// Removes a directory's contents, its marker last, so that a removal that is cut short can be taken up again.
fn remove_tree(path: &Path) -> io::Result<()> {
    let device = fs::symlink_metadata(path)?.dev();
    for child in fs::read_dir(path)? {
        let child = child?;
        let metadata = child.metadata()?;
        if child.file_name() == MARKER {
            continue;
        }
        if metadata.dev() != device {
            let what = format!("{} is a mount point", child.path().display());
            return Err(io::Error::other(what));
        }
        if metadata.is_dir() { fs::remove_dir_all(child.path())? } else { fs::remove_file(child.path())? }
    }
    fs::remove_file(path.join(MARKER))?;
    fs::remove_dir(path)
}

fn mark(path: &Path, id: &MadeId) -> io::Result<Mark> {
    match fs::symlink_metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Mark::Absent),
        Err(e) => return Err(e),
        Ok(m) if !m.is_dir() => return Ok(Mark::Other("it is no directory now".into())),
        Ok(_) => {}
    }
    let marker = File::options().read(true).custom_flags(nofollow()).open(path.join(MARKER));
    let mut text = Vec::new();
    match marker {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return Ok(if fs::read_dir(path)?.next().is_none() {
                Mark::Empty
            } else {
                Mark::Other(format!("it holds files and no {MARKER}"))
            });
        }
        Err(e) => return Err(e),
        Ok(mut file) => file.read_to_end(&mut text)?,
    };
    match serde_json::from_slice::<Entry>(&text) {
        Ok(entry) if entry.id == *id => Ok(Mark::Ours),
        Ok(_) => Ok(Mark::Other(format!("its {MARKER} names another id"))),
        // A marker cut short: nothing was put beside it yet.
        Err(_) if fs::read_dir(path)?.count() == 1 => Ok(Mark::Ours),
        Err(_) => Ok(Mark::Other(format!("its {MARKER} is not pgdyno's"))),
    }
}

fn file_mark_of(path: &Path, id: &MadeId) -> io::Result<Mark> {
    let file = match File::options().read(true).custom_flags(nofollow()).open(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Mark::Absent),
        Err(e) => return Err(e),
        Ok(file) => file,
    };
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok(Mark::Other("it is no file now".into()));
    }
    if metadata.len() == 0 {
        return Ok(Mark::Empty);
    }
    let wanted = file_mark(id);
    let mut head = Vec::new();
    file.take(wanted.len() as u64).read_to_end(&mut head)?;
    Ok(if head == wanted.as_bytes() {
        Mark::Ours
    } else {
        Mark::Other("it does not begin with its id".into())
    })
}
