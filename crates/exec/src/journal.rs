//! What pgdyno made on this machine, written down before it is made.
//!
//! One small JSON file for each made thing lies in `<state>/made/`: what it is, where, whose, and
//! by which undo steps it is taken down. Call [`Journal::record`], make the thing, then
//! [`Journal::identify`] with its device and inode number; [`Journal::done`] once it is gone. A
//! thing also carries its id in itself: a directory in a marker file, a file in its first bytes.
//! Only where journal, identity and marker agree is anything ever removed by a later process.
//!
//! Whoever can write to the journal decides what root removes. So each component of its path
//! belongs to root or to the caller and may be written by nobody else, entries likewise; else
//! nothing is read. Entries hold no commands.

mod earlier;
mod recorded;

pub use earlier::PlanReader;
pub use recorded::{RecordedSchema, RecordedSetting, RecordedSettings};

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use pgdyno_model::facts::Owner;
use pgdyno_model::units::Epoch;
use rustix::fs::OFlags;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::beneath::{Directory, FileIdentity};
use crate::process::current_owner;
use crate::trust::{self, TrustError};
use crate::undo::Undo;

/// The file inside a made directory that tells it is pgdyno's.
pub const MARKER: &str = ".pgdyno-made";

/// The name of one made thing: 128 random bits in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MadeId(String);

impl MadeId {
    fn draw() -> Result<Self, JournalError> {
        random_hex::<16>().map(Self).map_err(JournalError::Random)
    }
}

impl fmt::Display for MadeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `2 * N` hexadecimal digits drawn by the kernel.
pub fn random_hex<const N: usize>() -> io::Result<String> {
    let mut bytes = [0_u8; N];
    getrandom::fill(&mut bytes).map_err(|e| io::Error::other(e.to_string()))?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

/// A thing that pgdyno makes and takes down again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", from = "earlier::StoredMade")]
pub enum Made {
    /// A directory that holds a cluster in `data`, with a server that may run there.
    Cluster {
        /// The directory.
        path: PathBuf,
    },
    /// A directory.
    Directory {
        /// The directory.
        path: PathBuf,
    },
    /// A file that begins with [`file_mark`].
    File {
        /// The file.
        path: PathBuf,
    },
    /// A directory of a storage stack's: images, links to devices, the mount point.
    Stack {
        /// The directory.
        path: PathBuf,
        /// How everything of it but its directories is taken down, in this order.
        undo: Vec<Undo>,
        /// The whole plan, where an earlier version wrote that and no undo steps.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        plan: Option<serde_json::Value>,
    },
    /// Something that was set on a device or on the kernel.
    Setting {
        /// What was set.
        path: PathBuf,
        /// How it is put back.
        undo: Undo,
    },
    /// Settings of a server that pgdyno does not own.
    ServerSettings {
        /// What messages call them; no path.
        path: PathBuf,
        /// How they are put back.
        recorded: Box<RecordedSettings>,
    },
    /// What a run makes in a database of a server that pgdyno does not own. Each object bears the
    /// entry's id in its comment.
    ServerSchema {
        /// What messages call it; no path.
        path: PathBuf,
        /// Where it is.
        recorded: Box<RecordedSchema>,
    },
}

impl Made {
    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Cluster { path }
            | Self::Directory { path }
            | Self::File { path }
            | Self::Stack { path, .. }
            | Self::Setting { path, .. }
            | Self::ServerSettings { path, .. }
            | Self::ServerSchema { path, .. } => path,
        }
    }
}

/// How a made file begins.
#[must_use]
pub fn file_mark(id: &MadeId) -> String {
    format!("pgdyno-made {id}\n")
}

/// One line of the journal; also what a marker file holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its name.
    pub id: MadeId,
    /// What was to be made.
    pub made: Made,
    /// Which process makes it.
    pub owner: Owner,
    /// When it was written down.
    pub at: Epoch,
    /// Which directory or file it became; none before it is made, and for settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<FileIdentity>,
    /// The version of the entry's form: 0 of versions that noted no identity, now [`FORM`].
    #[serde(default)]
    pub form: u8,
}

/// The version of the form that entries are written in.
pub const FORM: u8 = 1;

/// The journal of made things.
#[derive(Clone, Debug)]
pub struct Journal {
    directory: Arc<Directory>,
    owner: Owner,
    /// What reads the plans of stacks that earlier versions wrote.
    plans: Option<PlanReader>,
}

/// The journal could not be kept; nothing is made without it.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Its directory or one of its files.
    #[error("cannot keep the journal of made things: cannot {what} {}", path.display())]
    Io {
        /// What was attempted.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Another account can change what it holds.
    #[error("cannot trust the journal of made things")]
    Untrusted(#[source] Box<TrustError>),
    /// One of its entries is none that pgdyno wrote.
    #[error("cannot trust the journal of made things: {} {found}", path.display())]
    Foreign {
        /// The entry.
        path: PathBuf,
        /// What is wrong with it.
        found: String,
    },
    /// The process's own identity.
    #[error("cannot tell this process's identity")]
    Owner(#[source] io::Error),
    /// The kernel's random numbers.
    #[error("cannot draw random numbers")]
    Random(#[source] io::Error),
}

impl JournalError {
    /// What to do.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Io { .. } => Some(
                "make that path writable, or set XDG_STATE_HOME to a directory that is".to_owned(),
            ),
            Self::Untrusted(e) => Some(format!(
                "{}; for the journal, set XDG_STATE_HOME to one that nobody else may write to",
                e.help().unwrap_or_else(|| "see that it can be looked at".to_owned())
            )),
            Self::Foreign { path, .. } => Some(format!(
                "find out who put it there; once you have removed it (`rm {}`), pgdyno goes on",
                path.display()
            )),
            Self::Owner(_) | Self::Random(_) => None,
        }
    }
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
    pub fn record(&self, made: &Made) -> Result<Entry, JournalError> {
        let (id, at) = (MadeId::draw()?, Epoch::of(SystemTime::now()));
        let entry = Entry {
            id,
            made: made.clone(),
            owner: self.owner.clone(),
            at,
            identity: None,
            form: FORM,
        };
        let name = file_name(&entry.id);
        let written = entry.to_json().and_then(|text| self.write(&name, &text));
        written
            .and_then(|()| self.directory.sync())
            .map_err(|e| io_error("write", &self.path(&name), e))?;
        Ok(entry)
    }

    /// Notes which directory or file the entry became. It is on disk when this returns.
    ///
    /// # Errors
    /// [`JournalError`]: it could not be written; the entry then names no identity.
    pub fn identify(&self, entry: &mut Entry, identity: FileIdentity) -> Result<(), JournalError> {
        let (name, new) = (file_name(&entry.id), format!(".{}.new", entry.id));
        let identified = Entry { identity: Some(identity), ..entry.clone() };
        let replace = || {
            self.write(&new, &identified.to_json()?)?;
            self.directory.rename(&new, &name)?;
            self.directory.sync()
        };
        replace().map_err(|e| io_error("write", &self.path(&name), e))?;
        *entry = identified;
        Ok(())
    }

    fn write(&self, name: &str, text: &[u8]) -> io::Result<()> {
        let mut file = self.directory.create_file(name, 0o600)?;
        file.write_all(text)?;
        file.sync_all()
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

    /// All entries that can be read, oldest first, whoever owns them.
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
            // One that is cut short was never followed by the making of anything.
            let Ok(mut entry) = serde_json::from_slice::<Entry>(&text) else { continue };
            if entry.id.0 != id {
                return Err(self.foreign(&name, format!("names the entry {}", entry.id)));
            }
            entry.made.read_plan(self.plans);
            entries.push(entry);
        }
        entries.sort_by_key(|e: &Entry| e.at);
        Ok(entries)
    }

    /// The text of an entry; none if it was struck out meanwhile.
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

    /// What messages call a file of the journal's.
    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

impl Entry {
    /// The entry as its file and a marker hold it.
    ///
    /// # Errors
    /// The path is not UTF-8.
    pub fn to_json(&self) -> io::Result<Vec<u8>> {
        serde_json::to_vec(self).map_err(io::Error::other)
    }
}

fn file_name(id: &MadeId) -> String {
    format!("{id}.json")
}

fn io_error(what: &'static str, path: &Path, source: io::Error) -> JournalError {
    JournalError::Io { what, path: path.to_owned(), source }
}

/// Writes a file that must not exist yet, and makes it and its name durable.
pub fn write_new(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut file = File::options()
        .write(true)
        .create_new(true)
        .mode(0o644)
        .custom_flags(nofollow())
        .open(path)?;
    file.write_all(contents)?;
    file.sync_all()?;
    path.parent().map_or(Ok(()), sync_directory)
}

/// `O_NOFOLLOW`, as the standard library wants it.
pub fn nofollow() -> i32 {
    i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or_default()
}

/// Makes the names in `directory` durable.
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}
