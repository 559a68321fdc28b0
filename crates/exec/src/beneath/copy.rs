//! Copying a directory tree by descriptors, while the owner of the original or of the copy may
//! interfere.
//!
//! [`TreeCopy::contents`] fills a directory that only the caller can enter. Each file and directory
//! of the copy is handed over when it is complete, from the innermost on; the caller hands over the
//! top ([`Directory::hand_over`]), and only then can its new owner reach any of it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{AtFlags, FileType, Gid, Stat, Uid};

use super::{Directory, DirectoryEntry, hand_over};
use crate::account::Account;
use crate::error::{StepError, io_error};

/// Directories below directories that are copied at most; PGDATA has four.
const DEEPEST: usize = 32;

/// A summary of copying.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopySummary {
    /// Files (count).
    pub files: u64,
    /// Those that share their blocks with the original (count): reflinks.
    pub reflinks: u64,
    /// Bytes in all of them.
    pub bytes: u64,
}

/// A copy in progress, by reflink where the filesystem has them.
#[derive(Debug)]
pub struct TreeCopy<'a> {
    /// The user whom all of the original must belong to. A file of another user is refused: it is
    /// in the original by a hard link that somebody made.
    pub source_owner: u32,
    /// The owner of the copies; none means this process's account.
    pub owner: Option<&'a Account>,
    /// Whether links are taken: symbolic ones copied as they are, files with several names. Else
    /// they are refused.
    pub keeps_links: bool,
    /// When true, nothing more is copied.
    pub stop: &'a AtomicBool,
    /// The summary so far.
    pub copied: CopySummary,
}

impl TreeCopy<'_> {
    /// Copies what is in `from` into `to`, but what `skip` names at its top. Only the caller may be
    /// able to enter `to`.
    ///
    /// # Errors
    /// [`StepError`] at the first thing that cannot be copied, or is not to be.
    pub fn contents(
        &mut self,
        from: &Directory,
        to: &Directory,
        skip: &[&str],
    ) -> Result<(), StepError> {
        self.contents_at(from, to, skip, 0)
    }

    fn contents_at(
        &mut self,
        from: &Directory,
        to: &Directory,
        skip: &[&str],
        depth: usize,
    ) -> Result<(), StepError> {
        let failed = |e| io_error("read the directory", from.path(), e);
        for DirectoryEntry { name, kind } in from.entries().map_err(failed)? {
            if skip.iter().any(|skipped| OsStr::new(skipped) == name) {
                continue;
            }
            match kind {
                FileType::Directory => self.directory_at(from, to, &name, depth + 1)?,
                FileType::RegularFile => self.file(from, to, &name)?,
                FileType::Symlink if self.keeps_links => self.link(from, to, &name)?,
                _ => {
                    let found = io::Error::other("it is neither file nor directory");
                    return Err(io_error("copy", &from.path().join(&name), found));
                }
            }
        }
        Ok(())
    }

    fn directory_at(
        &mut self,
        from: &Directory,
        to: &Directory,
        name: &OsStr,
        depth: usize,
    ) -> Result<(), StepError> {
        let failed = |e| io_error("copy the directory", &from.path().join(name), e);
        if depth > DEEPEST {
            return Err(failed(io::Error::other("it lies too deep")));
        }
        let below = from.directory(name).map_err(failed)?;
        let stat = rustix::fs::fstat(&below).map_err(|e| failed(e.into()))?;
        self.check_owner(&stat).map_err(failed)?;
        let made = self.make_directory(to, name)?;
        self.contents_at(&below, &made, &[], depth)?;
        self.give(&made, stat.st_mode & 0o777)
    }

    /// Makes the directory `name` in `to`, for the caller alone; [`TreeCopy::give`] hands it over.
    ///
    /// # Errors
    /// [`StepError::Io`].
    pub fn make_directory(
        &self,
        to: &Directory,
        name: impl AsRef<Path>,
    ) -> Result<Directory, StepError> {
        let name = name.as_ref();
        let made = to.create_directory(name, 0o700);
        made.map_err(|e| io_error("make the directory", &to.path().join(name), e))
    }

    /// Hands the complete directory `made` over to the copies' owner.
    ///
    /// # Errors
    /// [`StepError::Io`].
    pub fn give(&self, made: &Directory, mode: u32) -> Result<(), StepError> {
        made.hand_over(self.owner, mode).map_err(|e| io_error("hand over", made.path(), e))
    }

    /// Copies the file `name` of `from` into `to`.
    ///
    /// # Errors
    /// [`StepError`]: it is no regular file, not the source owner's, or has several names.
    pub fn file(
        &mut self,
        from: &Directory,
        to: &Directory,
        name: &OsStr,
    ) -> Result<(), StepError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(StepError::Interrupted);
        }
        self.try_file(from, to, name).map_err(|e| io_error("copy", &from.path().join(name), e))
    }

    fn try_file(&mut self, from: &Directory, to: &Directory, name: &OsStr) -> io::Result<()> {
        let source = from.file(name)?;
        let stat = rustix::fs::fstat(&source)?;
        self.check_owner(&stat)?;
        // What is kept as evidence of a crash may hold a segment that was caught between link(2)
        // and unlink(2).
        if stat.st_nlink != 1 && !self.keeps_links {
            return Err(io::Error::other(format!("it has {} names (hard links)", stat.st_nlink)));
        }
        let target = to.create_file(name, 0o600)?;
        let reflink = rustix::fs::ioctl_ficlone(&target, &source).is_ok();
        let length = u64::try_from(stat.st_size).unwrap_or_default();
        if !reflink {
            let blocks = u64::try_from(stat.st_blocks).unwrap_or_default();
            if blocks.saturating_mul(512) < length {
                copy_with_holes(source, &target, length)?;
            } else {
                // Its owner may let it grow meanwhile without end.
                io::copy(&mut source.take(length), &mut &target)?;
            }
        }
        hand_over(&target, self.owner, stat.st_mode & 0o777)?;
        self.copied.files += 1;
        self.copied.reflinks += u64::from(reflink);
        self.copied.bytes += length;
        Ok(())
    }

    fn link(&self, from: &Directory, to: &Directory, name: &OsStr) -> Result<(), StepError> {
        let copy = || -> io::Result<()> {
            let target = rustix::fs::readlinkat(from, name, Vec::new())?;
            to.symlink(Path::new(OsStr::from_bytes(target.to_bytes())), name)?;
            if let Some(account) = self.owner.filter(|account| !account.is_ours()) {
                let (uid, gid) = (Uid::from_raw(account.uid), Gid::from_raw(account.gid));
                rustix::fs::chownat(to, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
            }
            Ok(())
        };
        copy().map_err(|e| io_error("copy the link", &from.path().join(name), e))
    }

    fn check_owner(&self, stat: &Stat) -> io::Result<()> {
        if stat.st_uid == self.source_owner {
            return Ok(());
        }
        let found = format!(
            "it belongs to uid {}, and all there is uid {}'s",
            stat.st_uid, self.source_owner
        );
        Err(io::Error::other(found))
    }
}

/// Copies the first `length` bytes of a file with holes; the holes stay.
fn copy_with_holes(mut source: File, mut target: &File, length: u64) -> io::Result<()> {
    let mut at = 0;
    while at < length {
        let data = match rustix::fs::seek(&source, rustix::fs::SeekFrom::Data(at)) {
            Ok(data) => data,
            // No data from here on.
            Err(rustix::io::Errno::NXIO) => break,
            Err(e) => return Err(e.into()),
        };
        let hole = rustix::fs::seek(&source, rustix::fs::SeekFrom::Hole(data))?.min(length);
        if data >= hole {
            break;
        }
        source.seek(SeekFrom::Start(data))?;
        target.seek(SeekFrom::Start(data))?;
        io::copy(&mut (&source).take(hole - data), &mut target)?;
        at = hole;
    }
    target.set_len(length)
}
