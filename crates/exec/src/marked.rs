//! Directories and files of pgdyno's own: made so that they are known again, and removed only if
//! they are the ones.
//!
//! Three things have to agree before anything is removed: the journal's entry, the marker with the
//! entry's id inside the thing, and the thing's identity, which the entry got right after it was
//! made. The marker alone is not enough: anybody who can read one can copy it into a twin.
//!
//! The parent must be a directory that only root or the caller can change
//! ([`crate::trust::check_parent`]). It is opened, and everything else happens below its
//! descriptor: the thing is opened, compared, emptied and removed through no symbolic link.
//!
//! **Identity.** Within one boot, device and inode number must be the noted ones. Device numbers
//! are the kernel's to give: a restart of the machine gives others, and so does mounting anew what
//! lies on a loop device or is btrfs. So the inode number and the marker do, where the entry is of
//! an earlier boot; and where the thing lies below the mount point of a stack that the same journal
//! names, if that stack's own directory passes all of this and exactly its filesystem is mounted
//! there. Both are places where no account but root and the caller could have put anything.
//!
//! **Without identity.** An entry of this version gets none if its maker was killed in between.
//! Nothing was put into the thing by then, and so it is removed only if it is empty or holds only
//! its marker. Earlier versions noted none at all: there the marker does, since the parent is one
//! that nobody else can put a twin into.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::io::Errno;

use crate::account::Account;
use crate::beneath::{Directory, FileIdentity};
use crate::journal::{
    Entry, FORM, Journal, JournalError, MARKER, MadeId, OwnedResource, file_mark,
};
use crate::mountinfo;
use crate::process::boot_id;
use crate::trust::{self, TrustError};
use crate::undo::Undo;
use pgdyno_model::Advice;

/// More than any marker has (bytes).
const MARKER_LIMIT: u64 = 1 << 20;

/// A directory that was not made.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum MakeError {
    /// Others can change the directory's parent.
    #[error(transparent)]
    Untrusted(#[from] TrustError),
    /// The directory could not be journalled.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The directory or its marker could not be made.
    #[error("cannot {what}")]
    Io {
        /// The attempt, as a verb for the message.
        what: &'static str,
        source: io::Error,
    },
}

/// Makes the directory of `made`, which must not exist yet: journalled first, marked, and given to
/// `owner` at last. Once it is there its entry is in `entries`, whatever fails afterwards.
pub fn make(
    made: &OwnedResource,
    mode: u32,
    owner: Option<&Account>,
    journal: &Journal,
    entries: &mut Vec<Entry>,
) -> Result<(), MakeError> {
    let io = |what| move |source| MakeError::Io { what, source };
    let (parent, name) = trusted_parent(made.path())?;
    let parent = parent.map_err(io("open the directory above"))?;
    let mut entry = journal.record(made)?;
    // Nobody else may enter before the marker is in and the permissions are right.
    let directory = match parent.create_directory(&name, 0o700) {
        Ok(directory) => directory,
        Err(source) => {
            // Nothing was made; what may be there is somebody else's.
            journal.done(&entry.id)?;
            return Err(MakeError::Io { what: "make the directory", source });
        }
    };
    entries.push(entry.clone());
    let identity = directory.identity().map_err(io("look at the directory"))?;
    journal.identify(&mut entry, identity)?;
    if let Some(last) = entries.last_mut() {
        last.clone_from(&entry);
    }
    write_marker(&directory, &entry).map_err(io("write the marker"))?;
    parent.sync().map_err(io("make the name durable"))?;
    directory.hand_over(owner, mode).map_err(io("set owner and permissions"))
}

fn write_marker(directory: &Directory, entry: &Entry) -> io::Result<()> {
    let mut marker = directory.create_file(MARKER, 0o644)?;
    marker.write_all(&entry.to_json()?)?;
    marker.sync_all()?;
    directory.sync()
}

/// Returns the directory above `path`, open, and the name below it. Refused where another account
/// can change what it leads to.
fn trusted_parent(path: &Path) -> Result<(io::Result<Directory>, OsString), TrustError> {
    let refused = || {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is no absolute path of a name in a directory",
        )
    };
    let (Some(parent), Some(name), true) = (path.parent(), path.file_name(), path.is_absolute())
    else {
        return Err(TrustError::Io { component: path.to_owned(), source: refused() });
    };
    trust::check_parent(parent)?;
    // Nobody else can change where it leads to.
    let opened = parent.canonicalize().and_then(|real| Directory::open(&real));
    Ok((opened, name.to_owned()))
}

/// The result of an attempt to remove.
#[derive(Debug, PartialEq, Eq)]
pub enum Removal {
    /// It was there, ours, and is gone.
    Removed,
    /// It was not there.
    Absent,
    /// It is not pgdyno's; the text says what was found instead.
    NotOurs(String),
}

/// The thing that lies at an entry's path.
pub enum Thing {
    /// The directory, provably pgdyno's.
    Directory(Directory),
    /// The file, provably pgdyno's.
    File,
    /// A directory that its maker had put nothing into, not even a whole marker.
    Unfilled(Directory),
    /// Nothing.
    Absent,
    /// Something else; the text says what differs.
    Other(String),
}

/// Opens the thing that `entry` names, and compares it with the entry.
///
/// # Errors
/// The parent can be changed by others, with what to do; or something cannot be looked at.
pub fn open(entry: &Entry, journal: &Journal) -> io::Result<Thing> {
    match trusted_parent(entry.made.path()).map_err(|e| refused(&e))? {
        (Ok(parent), name) => open_below(&parent, &name, entry, journal),
        (Err(e), _) if e.kind() == io::ErrorKind::NotFound => Ok(Thing::Absent),
        (Err(e), _) => Err(e),
    }
}

/// Removes the thing that `entry` names, if it is pgdyno's, with all below it.
///
/// # Errors
/// As [`open`], or it cannot be removed whole: a filesystem is mounted below it, say.
pub fn remove_made(entry: &Entry, journal: &Journal) -> io::Result<Removal> {
    let (parent, name) = match trusted_parent(entry.made.path()).map_err(|e| refused(&e))? {
        (Ok(parent), name) => (parent, name),
        (Err(e), _) if e.kind() == io::ErrorKind::NotFound => return Ok(Removal::Absent),
        (Err(e), _) => return Err(e),
    };
    match open_below(&parent, &name, entry, journal)? {
        Thing::Absent => Ok(Removal::Absent),
        Thing::Other(found) => Ok(Removal::NotOurs(found)),
        Thing::File => parent.remove_file(&name).map(|()| Removal::Removed),
        Thing::Directory(directory) | Thing::Unfilled(directory) => {
            // The marker goes last, so that a removal that is cut short can be taken up again.
            directory.empty(&[OsStr::new(MARKER)])?;
            match directory.remove_file(MARKER) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
                _ => {}
            }
            parent.remove_directory(&name).map(|()| Removal::Removed)
        }
    }
}

fn refused(error: &TrustError) -> io::Error {
    let cause =
        std::error::Error::source(error).map_or_else(String::new, |cause| format!(": {cause}"));
    let help = error.help().map_or_else(String::new, |help| format!("; {help}"));
    io::Error::other(format!("{error}{cause}{help}"))
}

fn open_below(
    parent: &Directory,
    name: &OsStr,
    entry: &Entry,
    journal: &Journal,
) -> io::Result<Thing> {
    let stat = match parent.stat(name) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Thing::Absent),
        stat => stat?,
    };
    let kind = rustix::fs::FileType::from_raw_mode(stat.st_mode);
    match (&entry.made, kind) {
        (OwnedResource::File { .. }, rustix::fs::FileType::RegularFile) => {
            file(&parent.file(name)?, entry, journal)
        }
        (OwnedResource::File { .. }, _) => Ok(Thing::Other("it is no file now".into())),
        (
            OwnedResource::Setting { .. }
            | OwnedResource::ServerSettings { .. }
            | OwnedResource::ServerSchema { .. },
            _,
        ) => Err(io::Error::other("a setting is put back, not removed")),
        (_, rustix::fs::FileType::Directory) => directory(parent.directory(name)?, entry, journal),
        _ => Ok(Thing::Other("it is no directory now".into())),
    }
}

fn directory(directory: Directory, entry: &Entry, journal: &Journal) -> io::Result<Thing> {
    let held: Vec<OsString> = directory.entries()?.into_iter().map(|e| e.name).collect();
    let marker = match directory.file(MARKER) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        Err(e)
            if e.kind() == io::ErrorKind::InvalidInput
                || e.raw_os_error() == Some(Errno::LOOP.raw_os_error()) =>
        {
            return Ok(Thing::Other(format!("its {MARKER} is no regular file")));
        }
        marker => Some(marker?),
    };
    let is_unfilled = held.iter().all(|name| name == MARKER);
    if let Some(found) = stranger(entry, directory.identity()?, journal)? {
        return Ok(Thing::Other(found));
    }
    let Some(marker) = marker else {
        return Ok(if is_unfilled {
            Thing::Unfilled(directory)
        } else {
            Thing::Other(format!("it holds files and no {MARKER}"))
        });
    };
    let uid = marker.metadata()?.uid();
    if uid != rustix::process::geteuid().as_raw() {
        return Ok(Thing::Other(format!("its {MARKER} belongs to uid {uid}")));
    }
    let mut text = Vec::new();
    marker.take(MARKER_LIMIT).read_to_end(&mut text)?;
    Ok(match serde_json::from_slice::<Marker>(&text) {
        Ok(found) if found.id != entry.id => Thing::Other(format!("its {MARKER} names another id")),
        Ok(_) if entry.identity.is_some() || entry.form < FORM => Thing::Directory(directory),
        // A marker cut short, or an entry without identity: nothing was put beside it yet.
        _ if is_unfilled => Thing::Unfilled(directory),
        Ok(_) => Thing::Other(
            "its maker was killed before it put anything into it, and it holds files".into(),
        ),
        Err(_) => Thing::Other(format!("its {MARKER} is not pgdyno's")),
    })
}

/// Content of a marker file, as far as it decides. The rest is for people without the journal.
#[derive(serde::Deserialize)]
struct Marker {
    id: MadeId,
}

fn file(file: &File, entry: &Entry, journal: &Journal) -> io::Result<Thing> {
    if let Some(found) = stranger(entry, FileIdentity::from_file(file)?, journal)? {
        return Ok(Thing::Other(found));
    }
    if file.metadata()?.len() == 0 {
        return Ok(Thing::File);
    }
    let wanted = file_mark(&entry.id);
    let mut head = Vec::new();
    file.take(wanted.len() as u64).read_to_end(&mut head)?;
    Ok(if head != wanted.as_bytes() {
        Thing::Other("it does not begin with its id".into())
    } else if entry.identity.is_some() || entry.form < FORM {
        Thing::File
    } else {
        Thing::Other("the journal does not say which file it is".into())
    })
}

/// Returns how `found` differs from the identity that the journal noted; none where both agree, or
/// where none was noted.
fn stranger(entry: &Entry, found: FileIdentity, journal: &Journal) -> io::Result<Option<String>> {
    let Some(noted) = entry.identity else { return Ok(None) };
    let may_differ = || -> io::Result<bool> {
        Ok(boot_id()? != entry.owner.boot_id
            || is_on_a_stack(entry.made.path(), found.device, journal)?)
    };
    if noted.inode != found.inode {
        let (now, was) = (found.inode, noted.inode);
        return Ok(Some(format!(
            "another one was put in its place (inode {now}, and it was {was})"
        )));
    }
    if noted.device != found.device && !may_differ()? {
        let (now, was) = (found.device, noted.device);
        return Ok(Some(format!("it lies on another device now ({now:#x}, and it was {was:#x})")));
    }
    Ok(None)
}

/// Tells whether `path` lies on a stack of pgdyno's own that is mounted as `device`.
fn is_on_a_stack(path: &Path, device: u64, journal: &Journal) -> io::Result<bool> {
    for entry in journal.entries().map_err(io::Error::other)? {
        let OwnedResource::Stack { path: home, undo, .. } = &entry.made else { continue };
        if !path.starts_with(home) || path == home {
            continue;
        }
        let Thing::Directory(home) = open(&entry, journal)? else { continue };
        for step in undo {
            let Undo::Unmount { target, filesystem, source } = step else { continue };
            let Ok(relative) = target.strip_prefix(entry.made.path()) else { continue };
            if path.starts_with(target)
                && home.directory(relative)?.identity()?.device == device
                && mountinfo::mounted_at(target)?.is_some_and(|m| m.is(filesystem, source))
            {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
