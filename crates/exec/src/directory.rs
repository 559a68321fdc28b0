//! Whether a directory can carry a cluster: it is there, the server's account reaches it, and it
//! has room.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::{fs, io};

use pgdyno_model::Advice;
use pgdyno_model::units::Bytes;

use crate::account::Account;
use crate::paths::default_storage_dir;
use crate::trust::{self, TrustError};

/// A directory that cannot carry a cluster.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum DirectoryError {
    /// The path does not exist.
    #[error("cannot use {} for data: it does not exist", path.display())]
    Missing { path: PathBuf },
    /// The path is no directory.
    #[error("cannot use {} for data: it is no directory", path.display())]
    NotADirectory { path: PathBuf },
    /// pgdyno may not write to it.
    #[error(
        "cannot use {} for data: this user may not write to it{}",
        path.display(), read_only_note(*read_only)
    )]
    NotWritable {
        path: PathBuf,
        /// Whether the filesystem that holds the path is mounted read-only.
        read_only: bool,
    },
    /// The server's account may not pass.
    #[error(
        "cannot use {} for data: the server runs as {account}, who may not pass {} (mode \
         {mode:04o}, of uid {uid})",
        path.display(), component.display()
    )]
    NotReachable {
        path: PathBuf,
        account: String,
        component: PathBuf,
        /// That component's permissions.
        mode: u32,
        /// That component's owner.
        uid: u32,
    },
    /// Another account can change where its path leads to.
    #[error("cannot use {} for data", path.display())]
    Untrusted {
        path: PathBuf,
        /// The account that can, and the component of the path.
        source: Box<TrustError>,
    },
    /// The filesystem has too little room.
    #[error(
        "cannot use {} for data: it has room for {available}, and {needed} is needed",
        path.display()
    )]
    NoRoom { path: PathBuf, available: Bytes, needed: Bytes },
    /// The directory could not be read or made.
    #[error("cannot {what} {}", path.display())]
    Io {
        /// The attempt, as a verb for the message.
        what: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

fn read_only_note(read_only: bool) -> &'static str {
    if read_only { " (its filesystem is mounted read-only)" } else { "" }
}

impl Advice for DirectoryError {
    fn help(&self) -> Option<String> {
        let another = "name another directory in `storage.<name>.directory`";
        match self {
            Self::Missing { path } => {
                Some(format!("make it (`mkdir -p {}`), or {another}", path.display()))
            }
            Self::NotADirectory { .. } | Self::NotWritable { .. } => {
                Some(format!("{another}, or change its owner"))
            }
            Self::NotReachable { component, .. } => Some(format!(
                "let others pass (`chmod o+x {}`), or {another}, one that everybody may pass",
                component.display()
            )),
            Self::Untrusted { source, .. } => source.help(),
            Self::NoRoom { .. } => Some(format!("free room there, lower the scale, or {another}")),
            Self::Io { .. } => None,
        }
    }
}

/// A directory that clusters are put in, checked. The default one is made when it is missing, and
/// removed again when this is dropped and it is empty.
#[derive(Debug)]
pub struct StorageDirectory {
    path: PathBuf,
    ours: bool,
}

impl StorageDirectory {
    /// Checks `named`, or makes pgdyno's own directory where none is named.
    ///
    /// # Errors
    /// [`DirectoryError`]: it is missing, no directory, not writable, or `account` cannot pass.
    pub fn open(named: Option<&Path>, account: &Account) -> Result<Self, DirectoryError> {
        let storage = match named {
            Some(path) => {
                let absolute = std::path::absolute(path);
                Self { path: absolute.map_err(|e| io_error("resolve", path, e))?, ours: false }
            }
            None => {
                let path = default_storage_dir();
                make_default(&path).map_err(|e| io_error("make", &path, e))?;
                Self { path, ours: true }
            }
        };
        check(&storage.path, account)?;
        Ok(storage)
    }

    /// Returns the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for StorageDirectory {
    fn drop(&mut self) {
        if self.ours {
            // Fails, as it should, while anything is in it.
            let _ = fs::remove_dir(&self.path);
        }
    }
}

fn make_default(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(path)?;
    // Whatever the umask: the server's account must pass.
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

/// Checks whether clusters can be made in `directory`, `account` can reach them, and nobody but
/// root and the caller can put something else in their place.
///
/// # Errors
/// [`DirectoryError`] with the first reason why not.
pub fn check(directory: &Path, account: &Account) -> Result<(), DirectoryError> {
    let io = |source| io_error("look at", directory, source);
    match fs::metadata(directory) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return Err(DirectoryError::Missing { path: directory.to_owned() });
        }
        Err(e) if e.kind() == io::ErrorKind::NotADirectory => {
            return Err(DirectoryError::NotADirectory { path: directory.to_owned() });
        }
        Err(e) => return Err(io(e)),
        Ok(m) if !m.is_dir() => {
            return Err(DirectoryError::NotADirectory { path: directory.to_owned() });
        }
        Ok(_) => {}
    }
    if let Err(e) =
        rustix::fs::access(directory, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK)
    {
        let read_only = e == rustix::io::Errno::ROFS;
        return Err(DirectoryError::NotWritable { path: directory.to_owned(), read_only });
    }
    let untrusted =
        |source| DirectoryError::Untrusted { path: directory.to_owned(), source: Box::new(source) };
    trust::check_parent(&std::path::absolute(directory).map_err(io)?).map_err(untrusted)?;
    let real = directory.canonicalize().map_err(io)?;
    match barrier(&real, account).map_err(io)? {
        None => Ok(()),
        Some(Barrier { component, mode, uid }) => Err(DirectoryError::NotReachable {
            path: directory.to_owned(),
            account: account.name.clone(),
            component,
            mode,
            uid,
        }),
    }
}

/// A path component that an account may not pass.
pub struct Barrier {
    /// Path of the component.
    pub component: PathBuf,
    /// Permissions of the component.
    pub mode: u32,
    /// User id of the component's owner.
    pub uid: u32,
}

/// Returns the first component of the absolute path `path`, itself included, that `account` may not
/// pass.
pub fn barrier(path: &Path, account: &Account) -> io::Result<Option<Barrier>> {
    let mut components: Vec<&Path> =
        path.ancestors().filter(|p| !p.as_os_str().is_empty()).collect();
    components.reverse();
    for component in components {
        let metadata = fs::metadata(component)?;
        let mode = metadata.permissions().mode();
        let may_pass = if account.is_ours() {
            rustix::fs::access(component, rustix::fs::Access::EXEC_OK).is_ok()
        } else if metadata.uid() == account.uid {
            mode & 0o100 != 0
        } else if metadata.gid() == account.gid {
            mode & 0o010 != 0
        } else {
            mode & 0o001 != 0
        };
        if !may_pass {
            let component = component.to_owned();
            return Ok(Some(Barrier { component, mode: mode & 0o7777, uid: metadata.uid() }));
        }
    }
    Ok(None)
}

/// Returns `directory`, or, before it is made, the nearest one above it that is there: it has the
/// room and the filesystem that `directory` will have.
pub fn nearest(directory: &Path) -> &Path {
    directory.ancestors().find(|above| above.exists()).unwrap_or(directory)
}

/// Returns the room that an unprivileged user may still fill below `directory`; none where the
/// filesystem does not count it, as ramfs does not.
///
/// # Errors
/// [`DirectoryError`]: the directory cannot be asked.
pub fn room(directory: &Path) -> Result<Option<Bytes>, DirectoryError> {
    let stat = statvfs("ask for the room in", directory)?;
    Ok((stat.f_blocks > 0).then(|| Bytes(stat.f_bavail.saturating_mul(stat.f_frsize))))
}

/// Whether programs may be run from the filesystem of `directory`: it is not mounted `noexec`.
///
/// # Errors
/// [`DirectoryError`]: the directory cannot be asked.
pub fn runs_programs(directory: &Path) -> Result<bool, DirectoryError> {
    let stat = statvfs("ask for the mount options of", directory)?;
    Ok(!stat.f_flag.contains(rustix::fs::StatVfsMountFlags::NOEXEC))
}

fn statvfs(what: &'static str, directory: &Path) -> Result<rustix::fs::StatVfs, DirectoryError> {
    rustix::fs::statvfs(directory).map_err(|e| io_error(what, directory, e.into()))
}

fn io_error(what: &'static str, path: &Path, source: io::Error) -> DirectoryError {
    DirectoryError::Io { what, path: path.to_owned(), source }
}

/// Returns the room below `directory` if it is known to be less than `needed`.
///
/// # Errors
/// As [`room`].
pub fn too_little_room(directory: &Path, needed: Bytes) -> Result<Option<Bytes>, DirectoryError> {
    Ok(room(directory)?.filter(|available| *available < needed))
}
