//! The journal: a record of each thing that pgdyno makes on this machine, written beforehand.
//!
//! Each thing has a small JSON file in `<state>/made/`: kind, path, owner, and the undo steps that
//! take it down. Call [`Journal::record`], make the thing, then
//! [`Journal::identify`] with its device and inode number; [`Journal::done`] once it is gone. A
//! thing also carries its id in itself: a directory in a marker file, a file in its first bytes.
//! Only where journal, identity and marker agree is anything ever removed by a later process.
//!
//! Whoever can write to the journal decides what root removes. So each component of its path
//! belongs to root or to the caller and may be written by nobody else, entries likewise; else
//! nothing is read. Entries hold no commands.

mod earlier;
mod entry;
mod error;
mod recorded;

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use earlier::PlanReader;
pub use entry::{Entry, FORM, MARKER, MadeId, OwnedResource, file_mark};
pub use error::JournalError;
use error::io_error;
use pgdyno_model::facts::Owner;
use pgdyno_model::units::Epoch;
pub use recorded::{RecordedSchema, RecordedSetting, RecordedSettings};
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::beneath::{Directory, FileIdentity};
use crate::process::{current_owner, started_ticks};
use crate::trust;

/// The journal of made things.
#[derive(Clone, Debug)]
pub struct Journal {
    directory: Arc<Directory>,
    owner: Owner,
    /// Reader for the plans of stacks that earlier versions wrote.
    plans: Option<PlanReader>,
}

impl Journal {
    /// Opens the journal in `state_dir` (see [`crate::paths::state_dir`]), making it if it is
    /// missing.
    ///
    /// # Errors
    /// [`JournalError`]: another account can change it, it cannot be made, or `/proc` is not
    /// readable.
    pub fn open(state_dir: &Path) -> Result<Self, JournalError> {
        let path = state_dir.join("made");
        let failed = |what, e| io_error(what, &path, e);
        let untrusted = |e| JournalError::Untrusted(Box::new(e));
        let path = std::path::absolute(&path).map_err(|e| failed("resolve", e))?;
        trust::check(&path).map_err(untrusted)?;
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&path)
            .map_err(|e| failed("make", e))?;
        // Once more: below a directory such as /tmp somebody else could have been first.
        trust::check(&path).map_err(untrusted)?;
        let directory = path.canonicalize().and_then(|real| Directory::open(&real));
        let directory = Arc::new(directory.map_err(|e| failed("open", e))?);
        let owner = current_owner().map_err(JournalError::Owner)?;
        Ok(Self { directory, owner, plans: None })
    }

    /// Has `plans` turn the plans of stacks, which earlier versions wrote, into undo steps.
    #[must_use]
    pub fn with_plans(mut self, plans: PlanReader) -> Self {
        self.plans = Some(plans);
        self
    }

    /// Writes down that `made` is about to be made. It is on disk when this returns.
    ///
    /// # Errors
    /// [`JournalError`]: it could not be written; `made` must then not be made.
    pub fn record(&self, made: &OwnedResource) -> Result<Entry, JournalError> {
        let (id, at) = (MadeId::draw()?, Epoch::now());
        let entry = Entry {
            id,
            made: made.clone(),
            owner: self.owner.clone(),
            at,
            identity: None,
            form: FORM,
        };
        self.write(&entry)?;
        Ok(entry)
    }

    /// Notes which directory or file the entry became. It is on disk when this returns.
    ///
    /// # Errors
    /// [`JournalError`]: it could not be written; the entry then names no identity.
    pub fn identify(&self, entry: &mut Entry, identity: FileIdentity) -> Result<(), JournalError> {
        let identified = Entry { identity: Some(identity), ..entry.clone() };
        self.write(&identified)?;
        *entry = identified;
        Ok(())
    }

    /// Writes the entry's file under another name first, so that it is never there in part.
    fn write(&self, entry: &Entry) -> Result<(), JournalError> {
        let (name, new) = (file_name(&entry.id), new_file_name(&self.owner, &entry.id));
        let write = || {
            let mut file = self.directory.create_file(&new, 0o600)?;
            file.write_all(&entry.to_json()?)?;
            file.sync_all()?;
            self.directory.rename(&new, &name)?;
            self.directory.sync()
        };
        write().map_err(|e| io_error("write", &self.path(&name), e))
    }

    /// Removes files that processes were killed in the middle of writing. Nothing was made yet that
    /// they were to name.
    ///
    /// # Errors
    /// [`JournalError`]: the directory cannot be read, or a file cannot be removed.
    pub fn remove_unfinished(&self) -> Result<(), JournalError> {
        let list =
            self.directory.entries().map_err(|e| io_error("read", self.directory.path(), e))?;
        for name in list.into_iter().filter_map(|file| file.name.into_string().ok()) {
            if writer_of(&name).is_none_or(|(pid, started)| started_ticks(pid) == Some(started)) {
                continue;
            }
            match self.directory.remove_file(&name) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => {
                    return Err(io_error("remove", &self.path(&name), e));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Strikes out a made thing that is no more.
    ///
    /// # Errors
    /// [`JournalError`]: its file could not be removed.
    pub fn done(&self, id: &MadeId) -> Result<(), JournalError> {
        let name = file_name(id);
        match self.directory.remove_file(&name) {
            Ok(()) => self.directory.sync().map_err(|e| io_error("sync", self.directory.path(), e)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(e) => Err(io_error("remove", &self.path(&name), e)),
        }
    }

    /// Returns all entries that can be read, oldest first, whoever owns them.
    ///
    /// # Errors
    /// [`JournalError`]: the directory cannot be read, or holds an entry that another account can
    /// have written.
    pub fn entries(&self) -> Result<Vec<Entry>, JournalError> {
        let list =
            self.directory.entries().map_err(|e| io_error("read", self.directory.path(), e))?;
        let mut entries = Vec::new();
        for name in list.into_iter().filter_map(|f| f.name.into_string().ok()) {
            let Some(id) = name.strip_suffix(".json") else { continue };
            let Some(text) = self.read(&name)? else { continue };
            // One that an earlier version cut short was never followed by the making of anything.
            let Ok(mut entry) = serde_json::from_slice::<Entry>(&text) else { continue };
            if entry.id.as_str() != id {
                return Err(self.foreign(&name, format!("names the entry {}", entry.id)));
            }
            self.read_plan(&mut entry.made);
            entries.push(entry);
        }
        entries.sort_by_key(|e: &Entry| e.at);
        Ok(entries)
    }

    /// Turns the plan of a stack into undo steps. Without a reader the plan stays.
    fn read_plan(&self, made: &mut OwnedResource) {
        let OwnedResource::Stack { undo, plan, .. } = made else { return };
        if let Some(steps) = plan.as_ref().zip(self.plans).and_then(|(plan, read)| read(plan)) {
            *undo = steps;
            *plan = None;
        }
    }

    /// Returns the text of an entry; none if it was struck out meanwhile.
    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, JournalError> {
        /// More than any entry has (bytes).
        const MOST: u64 = 1 << 20;
        let file = match self.directory.file(name) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) if e.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
                return Err(self.foreign(name, "is a symbolic link"));
            }
            Err(e) if e.kind() == io::ErrorKind::InvalidInput => {
                return Err(self.foreign(name, "is no regular file"));
            }
            Err(e) => return Err(io_error("open", &self.path(name), e)),
        };
        let failed = |e| io_error("read", &self.path(name), e);
        let metadata = file.metadata().map_err(failed)?;
        if metadata.uid() != 0 && metadata.uid() != rustix::process::geteuid().as_raw() {
            return Err(self.foreign(name, format!("belongs to uid {}", metadata.uid())));
        }
        if metadata.mode() & 0o022 != 0 {
            let mode = metadata.mode() & 0o7777;
            return Err(self.foreign(name, format!("may be written by others (mode {mode:04o})")));
        }
        let mut text = Vec::new();
        file.take(MOST).read_to_end(&mut text).map_err(failed)?;
        Ok(Some(text))
    }

    fn foreign(&self, name: &str, found: impl Into<String>) -> JournalError {
        JournalError::Foreign { path: self.path(name), found: found.into() }
    }

    /// Holds off other processes' sweeps until the file is dropped.
    pub fn lock(&self) -> Result<File, JournalError> {
        const NAME: &str = ".lock";
        let open = || match self.directory.create_file(NAME, 0o600) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                self.directory.file_with(NAME, OFlags::WRONLY)
            }
            made => made,
        };
        let file = open().map_err(|e| io_error("open", &self.path(NAME), e))?;
        rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive)
            .map_err(|e| io_error("lock", &self.path(NAME), e.into()))?;
        Ok(file)
    }

    /// Returns the path of a file of the journal's, for messages.
    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

fn file_name(id: &MadeId) -> String {
    format!("{id}.json")
}

/// Returns the name of an entry's file while `owner` writes it.
fn new_file_name(owner: &Owner, id: &MadeId) -> String {
    format!(".{}-{}-{id}.new", owner.pid, owner.started_ticks)
}

/// Returns the pid and the start of the process that writes the file `name`; none for one that is
/// written.
fn writer_of(name: &str) -> Option<(i32, u64)> {
    let mut parts = name.strip_prefix('.')?.strip_suffix(".new")?.splitn(3, '-');
    let (pid, started) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    parts.next().map(|_| (pid, started))
}
