//! Directories held by descriptor: work below a directory that another account may write to.
//!
//! A path is looked up anew at each call, and whoever may write to a directory on it can put a
//! symbolic link in its place between two calls. [`Directory`] looks up once, holds what it found,
//! and goes on from there: every name is resolved below the descriptor, through no symbolic link
//! and no mount point's `..` (openat2(2), `RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS`). Programs that
//! root runs are handed [`Directory::proc_path`].

mod copy;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

pub use copy::{CopySummary, TreeCopy};
use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, ResolveFlags, Stat, Uid};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::account::Account;

/// Which file or directory something is, whatever its name: device and inode number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileIdentity {
    /// Device number of the filesystem that holds the file (`st_dev`). It may change when the
    /// filesystem is mounted anew.
    pub device: u64,
    /// Inode number (`st_ino`).
    pub inode: u64,
}

impl FileIdentity {
    fn from_stat(stat: &Stat) -> Self {
        Self { device: stat.st_dev, inode: stat.st_ino }
    }

    /// Returns the identity of an open file.
    ///
    /// # Errors
    /// fstat(2)'s.
    pub fn from_file(file: impl AsFd) -> io::Result<Self> {
        Ok(Self::from_stat(&rustix::fs::fstat(file)?))
    }
}

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// File name, without a path.
    pub name: OsString,
    /// File type; a symbolic link is not followed.
    pub kind: FileType,
}

/// An open directory.
#[derive(Debug)]
pub struct Directory {
    fd: OwnedFd,
    /// Path that the directory was opened by, for messages.
    path: PathBuf,
}

impl Directory {
    /// Opens the directory at `path`, whose last component must be no symbolic link.
    ///
    /// The components before it are followed: call this with a path that only root or the caller
    /// can change ([`crate::trust::check`]).
    ///
    /// # Errors
    /// openat(2)'s: `ELOOP` or `ENOTDIR` for a symbolic link.
    pub fn open(path: &Path) -> io::Result<Self> {
        let fd = rustix::fs::openat(rustix::fs::CWD, path, OPEN | OFlags::NOFOLLOW, Mode::empty())?;
        Ok(Self { fd, path: path.to_owned() })
    }

    /// Returns the path that the directory was opened by, for messages. Look nothing up by it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the directory's device and inode number.
    ///
    /// # Errors
    /// fstat(2)'s.
    pub fn identity(&self) -> io::Result<FileIdentity> {
        FileIdentity::from_file(&self.fd)
    }

    /// Returns `/proc/self/fd/N`, for calls and programs that take a path only. The path means this
    /// directory as long as `self` lives, and for a child as long as the descriptor is passed on to
    /// it.
    pub fn proc_path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.fd.as_raw_fd()))
    }

    /// Opens the directory `relative`, of one or more components.
    ///
    /// # Errors
    /// openat2(2)'s: `ELOOP` for a symbolic link on the way, `EXDEV` for a way out.
    pub fn directory(&self, relative: impl AsRef<Path>) -> io::Result<Self> {
        let relative = relative.as_ref();
        Ok(Self {
            fd: self.openat2(relative, OPEN, Mode::empty())?,
            path: self.path.join(relative),
        })
    }

    /// Opens the regular file `relative` for reading. A pipe or device in its place is refused, and
    /// not waited for.
    ///
    /// # Errors
    /// openat2(2)'s; `InvalidInput` for what is no regular file.
    pub fn file(&self, relative: impl AsRef<Path>) -> io::Result<File> {
        self.file_with(relative, OFlags::RDONLY)
    }

    /// Opens the regular file `relative`, which exists, with `flags`.
    ///
    /// # Errors
    /// As [`Directory::file`].
    pub fn file_with(&self, relative: impl AsRef<Path>, flags: OFlags) -> io::Result<File> {
        // Truncated only once it is known to be a regular file.
        let truncates = flags.contains(OFlags::TRUNC);
        let flags = (flags - OFlags::TRUNC) | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = File::from(self.openat2(relative.as_ref(), flags, Mode::empty())?);
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
        }
        if truncates {
            file.set_len(0)?;
        }
        Ok(file)
    }

    /// Makes the file `name`, which must not exist, and opens it for writing.
    ///
    /// # Errors
    /// openat2(2)'s: `EEXIST`, also for a symbolic link of that name.
    pub fn create_file(&self, name: impl AsRef<Path>, mode: u32) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        Ok(self.openat2(name.as_ref(), flags, Mode::from_raw_mode(mode))?.into())
    }

    /// Reads the file `relative`, which may have `limit` bytes at most.
    ///
    /// # Errors
    /// As [`Directory::file`]; `FileTooLarge`.
    pub fn read(&self, relative: impl AsRef<Path>, limit: u64) -> io::Result<Vec<u8>> {
        read_at_most(&self.file(relative)?, limit)
    }

    /// Puts the file `name`, directly in this directory, in place of one that may be there: readers
    /// see the old content or the new, also after a power loss.
    ///
    /// # Errors
    /// openat2(2)'s, write(2)'s and renameat(2)'s.
    pub fn replace_file(
        &self,
        name: &OsStr,
        contents: &[u8],
        owner: Option<&Account>,
        mode: u32,
    ) -> io::Result<()> {
        let mut new = OsString::from(".");
        new.push(name);
        new.push(".new");
        match self.remove_file(&new) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let mut file = self.create_file(&new, 0o600)?;
        let written = (|| {
            file.write_all(contents)?;
            hand_over(&file, owner, mode)?;
            file.sync_all()?;
            self.rename(&new, name)?;
            self.sync()
        })();
        if written.is_err() {
            let _ = self.remove_file(&new);
        }
        written
    }

    /// Appends `text` to the file `name`, directly in this directory, by putting a longer one in
    /// its place. It must belong to the directory's owner and have no other name: a hard link may
    /// lead to anybody's file.
    ///
    /// # Errors
    /// As [`Directory::read`] and [`Directory::replace_file`]; `InvalidInput` for a file of
    /// somebody else's.
    pub fn append_to_file(&self, name: &OsStr, text: &[u8]) -> io::Result<()> {
        let file = self.file(name)?;
        let stat = rustix::fs::fstat(&file)?;
        if stat.st_uid != rustix::fs::fstat(&self.fd)?.st_uid || stat.st_nlink != 1 {
            let found =
                format!("it belongs to uid {} and has {} name(s)", stat.st_uid, stat.st_nlink);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, found));
        }
        let contents = [&read_at_most(&file, LARGEST_TEXT)?, text].concat();
        let owner =
            Account { name: format!("uid {}", stat.st_uid), uid: stat.st_uid, gid: stat.st_gid };
        self.replace_file(name, &contents, Some(&owner), stat.st_mode & 0o777)
    }

    /// Takes it from its owner: from here on only the caller can enter it, whatever descriptors
    /// others hold. Returns the permissions that it had.
    ///
    /// # Errors
    /// fchown(2)'s and fchmod(2)'s.
    pub fn take_over(&self) -> io::Result<u32> {
        let stat = rustix::fs::fstat(&self.fd)?;
        let (us, group) = (rustix::process::geteuid(), rustix::process::getegid());
        if stat.st_uid != us.as_raw() {
            rustix::fs::fchown(&self.fd, Some(us), Some(group))?;
        }
        rustix::fs::fchmod(&self.fd, Mode::from_raw_mode(0o700))?;
        Ok(stat.st_mode & 0o777)
    }

    /// Makes the directory `name`, which must not exist, and opens it. Whoever may write to `self`
    /// could have put another in its place: it is checked to be empty and ours.
    ///
    /// # Errors
    /// mkdirat(2)'s and openat2(2)'s; `Other` if it was swapped.
    pub fn create_directory(&self, name: impl AsRef<Path>, mode: u32) -> io::Result<Self> {
        let name = name.as_ref();
        rustix::fs::mkdirat(&self.fd, name, Mode::from_raw_mode(mode))?;
        let made = self.directory(name)?;
        let stat = rustix::fs::fstat(&made.fd)?;
        if stat.st_uid != rustix::process::geteuid().as_raw() || !made.entries()?.is_empty() {
            return Err(io::Error::other("another directory was put in its place"));
        }
        Ok(made)
    }

    /// Makes the symbolic link `name` that leads to `target`.
    ///
    /// # Errors
    /// symlinkat(2)'s.
    pub fn symlink(&self, target: &Path, name: impl AsRef<Path>) -> io::Result<()> {
        Ok(rustix::fs::symlinkat(target, &self.fd, name.as_ref())?)
    }

    /// Gives `from` the name `to`, both directly in this directory.
    ///
    /// # Errors
    /// renameat(2)'s.
    pub fn rename(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.fd, from.as_ref(), &self.fd, to.as_ref())?)
    }

    /// Returns its entries, by name.
    ///
    /// # Errors
    /// getdents(2)'s.
    pub fn entries(&self) -> io::Result<Vec<DirectoryEntry>> {
        let mut entries = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.fd)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes()).to_owned();
            if name == "." || name == ".." {
                continue;
            }
            let kind = match entry.file_type() {
                // Some filesystems do not tell.
                FileType::Unknown => match self.stat(&name) {
                    Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                    Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                    Err(e) => return Err(e),
                },
                kind => kind,
            };
            entries.push(DirectoryEntry { name, kind });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    /// Returns the metadata of `name`, directly in this directory; a symbolic link is not followed.
    ///
    /// # Errors
    /// fstatat(2)'s.
    pub fn stat(&self, name: impl AsRef<Path>) -> io::Result<Stat> {
        Ok(rustix::fs::statat(&self.fd, name.as_ref(), AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Removes the file or link `name`, directly in this directory.
    ///
    /// # Errors
    /// unlinkat(2)'s.
    pub fn remove_file(&self, name: impl AsRef<Path>) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.fd, name.as_ref(), AtFlags::empty())?)
    }

    /// Removes the empty directory `name`, directly in this directory.
    ///
    /// # Errors
    /// unlinkat(2)'s.
    pub fn remove_directory(&self, name: impl AsRef<Path>) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.fd, name.as_ref(), AtFlags::REMOVEDIR)?)
    }

    /// Removes all that this directory holds, but what `keep` names at its top. Symbolic links are
    /// removed, not followed. A mount point below ends it with an error.
    ///
    /// # Errors
    /// The first thing that cannot be removed.
    pub fn empty(&self, keep: &[&OsStr]) -> io::Result<()> {
        let device = self.identity()?.device;
        for DirectoryEntry { name, kind } in self.entries()? {
            if keep.contains(&name.as_os_str()) {
                continue;
            }
            if kind != FileType::Directory {
                self.remove_file(&name)?;
                continue;
            }
            let below = self.directory(&name)?;
            if below.identity()?.device != device {
                return Err(io::Error::other(format!("{} is a mount point", below.path.display())));
            }
            below.empty(&[])?;
            self.remove_directory(&name)?;
        }
        Ok(())
    }

    /// Gives it to `owner`, where that is another account, and sets its permissions. Call it last:
    /// from here on that account can change what is in it.
    ///
    /// # Errors
    /// fchown(2)'s and fchmod(2)'s.
    pub fn hand_over(&self, owner: Option<&Account>, mode: u32) -> io::Result<()> {
        hand_over(&self.fd, owner, mode)
    }

    /// Makes its names durable.
    ///
    /// # Errors
    /// fsync(2)'s.
    pub fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.fd)?)
    }

    fn openat2(&self, relative: &Path, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        loop {
            match rustix::fs::openat2(&self.fd, relative, flags, mode, resolve) {
                // A rename went on meanwhile somewhere on the machine: the kernel asks to try
                // again.
                Err(Errno::AGAIN) => {}
                result => return Ok(result?),
            }
        }
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Gives the open file or directory `fd` to `owner`, where that is another account, and sets its
/// permissions.
///
/// # Errors
/// fchown(2)'s and fchmod(2)'s.
pub fn hand_over(fd: impl AsFd, owner: Option<&Account>, mode: u32) -> io::Result<()> {
    if let Some(account) = owner.filter(|account| !account.is_ours()) {
        rustix::fs::fchown(
            &fd,
            Some(Uid::from_raw(account.uid)),
            Some(Gid::from_raw(account.gid)),
        )?;
    }
    Ok(rustix::fs::fchmod(fd, Mode::from_raw_mode(mode))?)
}

/// Reads the file to its end, which must come after `limit` bytes at most.
fn read_at_most(file: &File, limit: u64) -> io::Result<Vec<u8>> {
    let mut contents = Vec::new();
    file.take(limit + 1).read_to_end(&mut contents)?;
    if contents.len() as u64 > limit {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has more than {limit} bytes"),
        ));
    }
    Ok(contents)
}

/// No configuration file has more (bytes).
pub const LARGEST_TEXT: u64 = 4 << 20;

const OPEN: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_symbolic_link_is_never_followed() {
        let place = tempfile::tempdir().unwrap();
        let (mine, foreign) = (place.path().join("mine"), place.path().join("foreign"));
        fs::create_dir_all(mine.join("real")).unwrap();
        fs::create_dir(&foreign).unwrap();
        fs::write(foreign.join("precious"), "kept").unwrap();
        symlink(&foreign, mine.join("link")).unwrap();
        symlink(foreign.join("precious"), mine.join("file")).unwrap();
        symlink("real", mine.join("within")).unwrap();
        let directory = Directory::open(&mine).unwrap();
        assert!(directory.directory("link").is_err());
        assert!(directory.directory("within").is_err());
        assert!(directory.file("file").is_err());
        assert!(directory.file("link/precious").is_err());
        assert!(directory.file("../foreign/precious").is_err());
        assert!(directory.create_file("file", 0o600).is_err());
        assert!(Directory::open(&mine.join("link")).is_err());
        directory.empty(&[OsStr::new("real")]).unwrap();
        assert_eq!(directory.entries().unwrap().len(), 1);
        assert_eq!(fs::read_to_string(foreign.join("precious")).unwrap(), "kept");
    }

    #[test]
    fn a_pipe_in_a_files_place_is_refused_and_not_waited_for() {
        let place = tempfile::tempdir().unwrap();
        rustix::fs::mkfifoat(
            rustix::fs::CWD,
            place.path().join("pipe"),
            Mode::from_raw_mode(0o600),
        )
        .unwrap();
        let directory = Directory::open(place.path()).unwrap();
        assert_eq!(directory.file("pipe").unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
