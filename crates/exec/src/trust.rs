//! Whether only root and the caller can change what a path leads to.
//!
//! Whoever may write to one directory of a path can put something else in place of what lies below
//! it. pgdyno keeps its journal, its cache and everything that it makes and removes below trusted
//! paths only.

use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use pgdyno_model::Advice;

use crate::account::entries;

/// A path that another account can change.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum TrustError {
    /// A component belongs to another account.
    #[error(
        "{} belongs to {owner}, who could put something else in place of {}",
        component.display(), path.display()
    )]
    ForeignOwner {
        /// The path that was to be used.
        path: PathBuf,
        component: PathBuf,
        /// Owner of the component: the account's name, or `uid N`.
        owner: String,
    },
    /// A component may be written by others than its owner.
    #[error(
        "{} may be written by others (mode {mode:04o}), who could put something else in place of \
         {}",
        component.display(), path.display()
    )]
    WritableByOthers {
        /// The path that was to be used.
        path: PathBuf,
        component: PathBuf,
        mode: u32,
    },
    /// A component cannot be looked at.
    #[error("cannot look at {}", component.display())]
    Io { component: PathBuf, source: io::Error },
}

impl Advice for TrustError {
    fn help(&self) -> Option<String> {
        let us = rustix::process::geteuid();
        match self {
            Self::ForeignOwner { component, .. } => Some(format!(
                "`chown {} {}` if its owner does not need it, or name another directory",
                if us.is_root() { "root".to_owned() } else { us.as_raw().to_string() },
                component.display()
            )),
            Self::WritableByOthers { component, .. } => {
                Some(format!("`chmod go-w {}`, or name another directory", component.display()))
            }
            Self::Io { .. } => None,
        }
    }
}

/// Checks that every component of the absolute `path` that exists belongs to root or to the caller,
/// and that nobody else may write to it. Symbolic links are followed, and the way that they lead is
/// checked too.
///
/// A directory with the sticky bit, such as `/tmp`, may be written by others as long as the next
/// component belongs to root or to the caller: nobody else can rename that one.
///
/// # Errors
/// [`TrustError`] with the first component that stands against it.
pub fn check(path: &Path) -> Result<(), TrustError> {
    walk(path, path, false, 0)
}

/// As [`check`], and the last component may be a directory with the sticky bit: what root or the
/// caller makes in it under a name that is not there yet cannot be renamed by others.
///
/// # Errors
/// As [`check`].
pub fn check_parent(path: &Path) -> Result<(), TrustError> {
    walk(path, path, true, 0)
}

fn walk(path: &Path, whole: &Path, may_end_sticky: bool, links: u8) -> Result<(), TrustError> {
    /// As many as the kernel follows in one path.
    const MOST_LINKS: u8 = 40;
    let mut so_far = PathBuf::new();
    let mut sticky: Option<(PathBuf, u32)> = None;
    let components: Vec<Component<'_>> = path.components().collect();
    for (at, component) in components.iter().enumerate() {
        so_far.push(component);
        let failed = |source| TrustError::Io { component: so_far.clone(), source };
        let metadata = match std::fs::symlink_metadata(&so_far) {
            Ok(metadata) => metadata,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                // What is not there yet is made by us; in a sticky directory somebody could be
                // first.
                return Ok(());
            }
            Err(e) => return Err(failed(e)),
        };
        let uid = metadata.uid();
        if uid != 0 && uid != rustix::process::geteuid().as_raw() {
            return Err(match sticky {
                Some((component, mode)) => {
                    TrustError::WritableByOthers { path: whole.to_owned(), component, mode }
                }
                None => {
                    let (path, component) = (whole.to_owned(), so_far.clone());
                    TrustError::ForeignOwner { path, component, owner: owner_name(uid) }
                }
            });
        }
        sticky = None;
        if metadata.is_symlink() {
            if links >= MOST_LINKS {
                return Err(failed(io::Error::other("too many symbolic links")));
            }
            let target = std::fs::read_link(&so_far).map_err(failed)?;
            let rest: PathBuf = components[at + 1..].iter().collect();
            let onward = so_far.parent().unwrap_or(Path::new("/")).join(target).join(rest);
            return walk(&onward, whole, may_end_sticky, links + 1);
        }
        let mode = metadata.permissions().mode() & 0o7777;
        if mode & 0o002 == 0 && (mode & 0o020 == 0 || is_own_group(metadata.gid())) {
            continue;
        }
        let is_last = at + 1 == components.len();
        if !metadata.is_dir() || mode & 0o1000 == 0 || (is_last && !may_end_sticky) {
            let (path, component) = (whole.to_owned(), so_far.clone());
            return Err(TrustError::WritableByOthers { path, component, mode });
        }
        sticky = Some((so_far.clone(), mode));
    }
    Ok(())
}

/// Tells whether a group is root's, or a user's own of the same number, as `useradd` makes them.
fn is_own_group(gid: u32) -> bool {
    let (uid, own) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    gid == 0 || (uid != 0 && gid == uid && gid == own)
}

fn owner_name(uid: u32) -> String {
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let named = entries(&passwd).find(|account| account.uid == uid);
    named.map_or_else(|| format!("uid {uid}"), |account| format!("`{account}` (uid {uid})"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::fs;
    use std::io::Write as _;

    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_directory_that_others_may_write_is_refused_wherever_it_stands_in_the_path() {
        let place = tempfile::tempdir().unwrap();
        let (upper, lower) = (place.path().join("upper"), place.path().join("upper/lower"));
        fs::create_dir_all(&lower).unwrap();
        check(&lower).unwrap();
        check(&lower.join("not/there/yet")).unwrap();
        for mode in [0o757, 0o777] {
            set_mode(&upper, mode);
            let refused = check(&lower).unwrap_err();
            assert!(matches!(
                &refused,
                TrustError::WritableByOthers { component, .. } if *component == upper
            ));
            assert!(refused.help().unwrap().contains("chmod go-w"));
        }
        // Sticky: others cannot rename what is ours, but could be first to make what is not there.
        set_mode(&upper, 0o1777);
        check(&lower).unwrap();
        check_parent(&upper).unwrap();
        assert!(check(&upper).is_err());
        set_mode(&upper, 0o755);
        let link = place.path().join("link");
        std::os::unix::fs::symlink(&upper, &link).unwrap();
        check(&link.join("lower")).unwrap();
        set_mode(&upper, 0o777);
        assert!(check(&link.join("lower")).is_err(), "the way that a link leads is looked at too");
    }

    #[test]
    fn a_directory_of_another_account_is_refused() {
        if !rustix::process::geteuid().is_root() {
            let test = "a_directory_of_another_account_is_refused";
            let _ = writeln!(io::stderr(), "\nskipped: {test}: needs root to make one");
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let theirs = place.path().join("theirs");
        fs::create_dir_all(theirs.join("below")).unwrap();
        std::os::unix::fs::chown(&theirs, Some(65534), None).unwrap();
        let refused = check(&theirs.join("below")).unwrap_err();
        assert!(matches!(refused, TrustError::ForeignOwner { .. }), "{refused}");
    }
}
