//! What pgdyno made on this machine, written down before it is made.
//!
//! One small JSON file for each made thing lies in `<state>/made/`. A thing also carries its id in itself: a
//! directory in a marker file, a file in its first bytes. Only where both agree is anything ever removed by a
//! later process.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use pgdyno_model::facts::Owner;
use pgdyno_model::units::Epoch;
use serde::{Deserialize, Serialize};

use crate::postgres::RecordedSettings;
use crate::process::current_owner;
use crate::storage::{Restore, Stack};

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
pub(crate) fn random_hex<const N: usize>() -> io::Result<String> {
    let mut bytes = [0_u8; N];
    getrandom::fill(&mut bytes).map_err(|e| io::Error::other(e.to_string()))?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

/// A thing that pgdyno makes and takes down again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
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
        /// The stack, which tells what else was to be made and how it is taken down.
        stack: Box<Stack>,
    },
    /// Something that was set on a device or on the kernel.
    Setting {
        /// What was set.
        path: PathBuf,
        /// How it is put back.
        restore: Restore,
    },
    /// Settings of a server that pgdyno does not own.
    ServerSettings {
        /// What messages call them; no path.
        path: PathBuf,
        /// How they are put back.
        recorded: Box<RecordedSettings>,
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
            | Self::ServerSettings { path, .. } => path,
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
}

/// The journal of made things.
#[derive(Clone, Debug)]
pub struct Journal {
    directory: PathBuf,
    owner: Owner,
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
            Self::Io { .. } => {
                Some("make that path writable, or set XDG_STATE_HOME to a directory that is".to_owned())
            }
            Self::Owner(_) | Self::Random(_) => None,
        }
    }
}

impl Journal {
    /// Opens the journal in `state_dir` (see [`crate::paths::state_dir`]), making it if it is missing.
    ///
    /// # Errors
    /// [`JournalError`]: the directory cannot be made, or `/proc` is not readable.
    pub fn open(state_dir: &Path) -> Result<Self, JournalError> {
        let directory = state_dir.join("made");
        fs::create_dir_all(&directory).map_err(|e| io_error("make", &directory, e))?;
        let owner = current_owner().map_err(JournalError::Owner)?;
        Ok(Self { directory, owner })
    }

    /// Writes down that `made` is about to be made. It is on disk when this returns.
    ///
    /// # Errors
    /// [`JournalError`]: it could not be written; `made` must then not be made.
    pub fn record(&self, made: &Made) -> Result<Entry, JournalError> {
        let id = MadeId::draw()?;
        let at = Epoch::of(SystemTime::now());
        let entry = Entry { id, made: made.clone(), owner: self.owner.clone(), at };
        let path = self.file(&entry.id);
        entry.to_json().and_then(|text| write_new(&path, &text)).map_err(|e| io_error("write", &path, e))?;
        Ok(entry)
    }

    /// Strikes out a made thing that is no more.
    ///
    /// # Errors
    /// [`JournalError`]: its file could not be removed.
    pub fn done(&self, id: &MadeId) -> Result<(), JournalError> {
        let path = self.file(id);
        match fs::remove_file(&path) {
            Ok(()) => sync_directory(&self.directory).map_err(|e| io_error("sync", &self.directory, e)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(e) => Err(io_error("remove", &path, e)),
        }
    }

    /// All entries that can be read, oldest first, whoever owns them.
    ///
    /// # Errors
    /// [`JournalError`]: the directory cannot be read.
    pub fn entries(&self) -> Result<Vec<Entry>, JournalError> {
        let list = fs::read_dir(&self.directory).map_err(|e| io_error("read", &self.directory, e))?;
        let mut entries: Vec<Entry> = list
            .filter_map(Result::ok)
            .filter(|f| f.path().extension().is_some_and(|e| e == "json"))
            // One that is cut short was never followed by the making of anything.
            .filter_map(|f| fs::read(f.path()).ok())
            .filter_map(|text| serde_json::from_slice(&text).ok())
            .collect();
        entries.sort_by_key(|e| e.at);
        Ok(entries)
    }

    /// Holds off other processes' sweeps until the file is dropped.
    pub(crate) fn lock(&self) -> Result<File, JournalError> {
        let path = self.directory.join(".lock");
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(|e| io_error("open", &path, e))?;
        rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive)
            .map_err(|e| io_error("lock", &path, e.into()))?;
        Ok(file)
    }

    fn file(&self, id: &MadeId) -> PathBuf {
        self.directory.join(format!("{id}.json"))
    }
}

impl Entry {
    /// The entry as its file and a marker hold it.
    ///
    /// # Errors
    /// The path is not UTF-8.
    pub(crate) fn to_json(&self) -> io::Result<Vec<u8>> {
        serde_json::to_vec(self).map_err(io::Error::other)
    }
}

fn io_error(what: &'static str, path: &Path, source: io::Error) -> JournalError {
    JournalError::Io { what, path: path.to_owned(), source }
}

/// Writes a file that must not exist yet, and makes it and its name durable.
pub(crate) fn write_new(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut file =
        File::options().write(true).create_new(true).mode(0o644).custom_flags(nofollow()).open(path)?;
    file.write_all(contents)?;
    file.sync_all()?;
    path.parent().map_or(Ok(()), sync_directory)
}

/// `O_NOFOLLOW`, as the standard library wants it.
pub(crate) fn nofollow() -> i32 {
    i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or_default()
}

/// Makes the names in `directory` durable.
pub(crate) fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}
