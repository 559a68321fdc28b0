//! Locks that the kernel releases when their process ends, also on files that machines share.
//!
//! A lock is on one byte of a file and belongs to the open file (an *open file description lock*,
//! `fcntl(2)`). POSIX's own locks would go when the process closes any descriptor of the file, and
//! `flock` cannot be asked for without being taken. So whoever looks is in nobody's way.

use std::fs::File;
use std::io;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

/// Takes the lock on `byte` of `file`, which is open for writing. It is held until [`unlock`], or
/// until the last descriptor of this open file is closed. Returns false if another has it.
///
/// # Errors
/// The filesystem has no locks.
pub fn try_lock(file: &File, byte: i64) -> io::Result<bool> {
    match fcntl(file, FcntlArg::F_OFD_SETLK(&lock(libc::F_WRLCK, byte))) {
        Ok(_) => Ok(true),
        Err(Errno::EAGAIN | Errno::EACCES) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// Releases the lock on `byte` of `file`.
///
/// # Errors
/// Those of `fcntl(2)`.
pub fn unlock(file: &File, byte: i64) -> io::Result<()> {
    fcntl(file, FcntlArg::F_OFD_SETLK(&lock(libc::F_UNLCK, byte)))?;
    Ok(())
}

/// Returns whether another open file holds the lock on `byte` of `file`. Takes nothing.
///
/// # Errors
/// The filesystem has no locks.
pub fn is_locked(file: &File, byte: i64) -> io::Result<bool> {
    let mut found = lock(libc::F_WRLCK, byte);
    fcntl(file, FcntlArg::F_OFD_GETLK(&mut found))?;
    Ok(i32::from(found.l_type) != libc::F_UNLCK)
}

fn lock(kind: i32, byte: i64) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: byte,
        l_len: 1,
        l_pid: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_seen_by_others_and_goes_with_its_file_alone() {
        let place = tempfile::NamedTempFile::new().unwrap();
        let open = || File::options().read(true).write(true).open(place.path()).unwrap();
        let (holder, other) = (open(), open());
        assert!(try_lock(&holder, 7).unwrap());
        assert!(is_locked(&other, 7).unwrap() && !is_locked(&other, 8).unwrap());
        assert!(!try_lock(&other, 7).unwrap());
        // Whoever looks may only read, and what it closes releases nothing.
        let reader = File::open(place.path()).unwrap();
        assert!(is_locked(&reader, 7).unwrap());
        drop((reader, open()));
        assert!(is_locked(&other, 7).unwrap());
        unlock(&holder, 7).unwrap();
        assert!(try_lock(&other, 7).unwrap());
        drop(other);
        // A program that another test starts has copies of open files until it is executed.
        pgdyno_test_support::wait_for("the lock to go with its file", || {
            (!is_locked(&holder, 7).unwrap()).then_some(())
        });
    }
}
