//! The folder of the live files beside a store.
//!
//! The folder belongs to the account that runs, and nobody else may enter it. It is held by
//! descriptor, and no name in it is followed through a link. A watcher looks into a folder of its
//! own account, of root, or of the store's owner.

use std::fs::{DirBuilder, File};
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use pgdyno_exec::beneath::{Directory, FileIdentity};
use pgdyno_exec::process::{is_alive, is_of_this_host};
use pgdyno_model::facts::Owner;
use pgdyno_model::live::LiveRun;
use pgdyno_model::progress::Event;
use pgdyno_store::lock::{is_locked, try_lock};

use super::error::LiveError;

/// The longest line of a live file (bytes). The first record holds the plan.
pub(super) const LONGEST_LINE: u64 = 16 << 20;

/// How long the log of a detached run is kept.
const KEPT_LOG: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Endings of the files of a run.
pub(super) const RECORDS: &str = ".jsonl";
pub(super) const STOP: &str = ".stop";
pub(super) const LOG: &str = ".log";

/// Returns the live folder of the store at `store`: the store's path with `.live` behind it. A link
/// to a store leads to the store's own folder.
pub fn folder(store: &Path) -> PathBuf {
    let real = store.canonicalize().or_else(|_| std::path::absolute(store));
    let mut path = real.unwrap_or_else(|_| store.to_owned()).into_os_string();
    path.push(".live");
    path.into()
}

/// An open live folder.
#[derive(Debug)]
pub(super) struct LiveFolder {
    directory: Directory,
}

/// The beginning of a live file.
pub(super) struct Head {
    /// The run.
    pub(super) run: LiveRun,
    /// Whether this version can read what follows.
    pub(super) is_readable: bool,
}

impl LiveFolder {
    /// Opens the folder of the store at `store`, to write to it. Makes it if it is missing.
    pub(super) fn make(store: &Path) -> Result<Self, LiveError> {
        let path = folder(store);
        let failed = |what, source| LiveError::Io { what, path: path.clone(), source };
        match DirBuilder::new().mode(0o700).create(&path) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(failed("make", e)),
            _ => {}
        }
        let directory = Directory::open(&path).map_err(|e| failed("open", e))?;
        let stat = directory.stat(".").map_err(|e| failed("look at", e))?;
        if stat.st_uid != rustix::process::geteuid().as_raw() {
            return Err(LiveError::ForeignOwner { path, uid: stat.st_uid });
        }
        if stat.st_mode & 0o077 != 0 {
            directory.hand_over(None, 0o700).map_err(|e| failed("close to others", e))?;
        }
        Ok(Self { directory })
    }

    /// Opens the folder of the store at `store`, to read; none if there is no folder.
    pub(super) fn open(store: &Path) -> Result<Option<Self>, LiveError> {
        let path = folder(store);
        let failed = |what, source| LiveError::Io { what, path: path.clone(), source };
        let directory = match Directory::open(&path) {
            Ok(directory) => directory,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(failed("open", e)),
        };
        let uid = directory.stat(".").map_err(|e| failed("look at", e))?.st_uid;
        let owns_store = || std::fs::metadata(store).is_ok_and(|store| store.uid() == uid);
        if uid != 0 && uid != rustix::process::geteuid().as_raw() && !owns_store() {
            return Err(LiveError::ForeignOwner { path, uid });
        }
        Ok(Some(Self { directory }))
    }

    /// Returns the path of `name`, for messages.
    pub(super) fn path_of(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Returns the error of the attempt to do `what` with the file `name`.
    pub(super) fn failed(&self, what: &'static str, name: &str, source: io::Error) -> LiveError {
        LiveError::Io { what, path: self.path_of(name), source }
    }

    /// Opens the file `name` for reading.
    pub(super) fn file(&self, name: &str) -> io::Result<File> {
        self.directory.file(name)
    }

    /// Returns device, inode number and size (bytes) of the file `name`.
    pub(super) fn identity(&self, name: &str) -> io::Result<(FileIdentity, u64)> {
        let stat = self.directory.stat(name)?;
        let identity = FileIdentity { device: stat.st_dev, inode: stat.st_ino };
        Ok((identity, u64::try_from(stat.st_size).unwrap_or(0)))
    }

    /// Returns whether there is something called `name`.
    pub(super) fn has(&self, name: &str) -> bool {
        self.directory.stat(name).is_ok()
    }

    /// Makes the empty file `name`, unless it exists.
    pub(super) fn touch(&self, name: &str) -> io::Result<()> {
        match self.directory.create_file(name, 0o600) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made.map(drop),
        }
    }

    /// Puts a file with `contents` in place of whatever is called `name`: no reader sees the file
    /// without its contents. Returns the file, open for more, and locked as long as it is open.
    pub(super) fn replace(&self, name: &str, contents: &[u8]) -> io::Result<File> {
        use std::io::Write as _;
        let new = format!(".{name}.new");
        self.remove(&new)?;
        let mut file = self.directory.create_file(&new, 0o600)?;
        // Before others see it: a live file that nobody holds counts as left behind.
        let put = try_lock(&file, 0)
            .and_then(|_| file.write_all(contents))
            .and_then(|()| self.directory.rename(&new, name));
        if let Err(e) = put {
            let _ = self.remove(&new);
            return Err(e);
        }
        Ok(file)
    }

    /// Gives the file `from` the name `to`.
    pub(super) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.directory.rename(from, to)
    }

    /// Removes the file `name`, if it is there.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        match self.directory.remove_file(name) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// Returns the runs that have a file that ends in `ending`.
    pub(super) fn runs_with(&self, ending: &str) -> io::Result<Vec<String>> {
        let names = self.directory.entries()?.into_iter().filter_map(|e| e.name.into_string().ok());
        let runs = names.filter_map(|name| name.strip_suffix(ending).map(str::to_owned));
        Ok(runs.filter(|run| is_run_id(run)).collect())
    }

    /// Reads the beginning of the live file of run `run`; none if it is not that of the run.
    pub(super) fn head(&self, run: &str) -> io::Result<Option<Head>> {
        let mut line = Vec::new();
        let file = self.file(&format!("{run}{RECORDS}"))?;
        BufReader::new(file.take(LONGEST_LINE)).read_until(b'\n', &mut line)?;
        let head = match serde_json::from_slice(&line) {
            Ok(Event::Begun { run, .. }) => Some(Head { run, is_readable: true }),
            // Earlier versions wrote the run itself, and words after it.
            _ => serde_json::from_slice(&line).ok().map(|run| Head { run, is_readable: false }),
        };
        Ok(head.filter(|head| head.run.run == run))
    }

    /// Removes the live files that dead processes of this machine left, and logs that nobody wrote
    /// to for 30 days. Leaves all other files.
    pub(super) fn clear_leftovers(&self) -> io::Result<()> {
        for run in self.runs_with(RECORDS)? {
            let name = format!("{run}{RECORDS}");
            let is_left = |owner: &Owner| {
                let is_held = self.file(&name).map(|file| is_held(&file, owner));
                is_of_this_host(owner) && !is_held.unwrap_or(true)
            };
            if matches!(self.head(&run), Ok(Some(head)) if is_left(&head.run.owner)) {
                self.remove(&name)?;
            }
        }
        for run in self.runs_with(STOP)? {
            if !self.has(&format!("{run}{RECORDS}")) {
                self.remove(&format!("{run}{STOP}"))?;
            }
        }
        for run in self.runs_with(LOG)? {
            let name = format!("{run}{LOG}");
            let modified = self.file(&name).and_then(|log| log.metadata()?.modified())?;
            let age = SystemTime::now().duration_since(modified).unwrap_or_default();
            if age > KEPT_LOG && !self.has(&format!("{run}{RECORDS}")) {
                self.remove(&name)?;
            }
        }
        Ok(())
    }
}

/// Returns whether the process `owner` still writes to its live file, on whatever machine. Earlier
/// versions held no lock, and named no machine.
pub(super) fn is_held(file: &File, owner: &Owner) -> bool {
    match is_locked(file, 0) {
        Ok(false) => owner.host.is_none() && is_alive(owner),
        Ok(true) | Err(_) => true,
    }
}

/// Returns whether `run` can be the id of a run: pgdyno's own have letters, digits and `_-.`.
pub(super) fn is_run_id(run: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    !run.is_empty() && !run.starts_with('.') && run.len() < 200 && run.chars().all(fits)
}
