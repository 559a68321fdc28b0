//! The manifest of an unpacked build. A build runs only if it matches its manifest.
//!
//! The manifest is a file in the build. It reveals damage and changes by hand. Who may write to the
//! cache is checked by path ([`pgdyno_exec::trust`]).

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use pgdyno_exec::beneath::Directory;
use rustix::fs::FileType;
use serde::{Deserialize, Serialize};

use super::names::digest;

/// The name of the manifest's file.
pub(super) const NAME: &str = "pgdyno-manifest.json";

/// The most bytes of a manifest.
const LARGEST: u64 = 16 << 20;

/// Builds that this process has checked, so that each is read once.
static CHECKED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// A file, link or directory of a build.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
enum Held {
    /// A directory.
    Directory,
    /// A regular file.
    File {
        /// The SHA-256 in hexadecimal.
        sha256: String,
        /// Whether the owner may execute the file.
        executable: bool,
    },
    /// A symbolic link.
    Link {
        /// The link's target.
        target: String,
    },
}

/// All entries below a build's folder, by path, and the archive that they came from.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Manifest {
    /// The archive's SHA-256 in hexadecimal.
    archive: String,
    /// All entries but the manifest itself.
    entries: BTreeMap<String, Held>,
}

/// The result of a check.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Checked {
    /// The build is unchanged.
    Whole,
    /// There is no manifest, since an earlier version unpacked the build or there is no build.
    NoManifest,
    /// The first difference, in words.
    Changed(String),
}

/// Writes the manifest of `build`, which was unpacked from the archive with that SHA-256.
pub(super) fn write(build: &Path, archive: &str) -> io::Result<()> {
    let directory = Directory::open(build)?;
    let manifest = Manifest { archive: archive.to_owned(), entries: entries_of(&directory)? };
    let text = serde_json::to_vec(&manifest).map_err(io::Error::other)?;
    directory.replace_file(OsStr::new(NAME), &text, None, 0o644)
}

/// Compares `build` with its manifest, once in a process.
pub(super) fn check(build: &Path, archive: &str) -> io::Result<Checked> {
    let mut checked = CHECKED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if checked.contains(build) {
        return Ok(Checked::Whole);
    }
    let found = compare(build, archive)?;
    if found == Checked::Whole {
        checked.insert(build.to_owned());
    }
    Ok(found)
}

fn compare(build: &Path, archive: &str) -> io::Result<Checked> {
    let absent = |e: &io::Error| e.kind() == io::ErrorKind::NotFound;
    let directory = match Directory::open(build) {
        Err(e) if absent(&e) => return Ok(Checked::NoManifest),
        other => other?,
    };
    let text = match directory.read(NAME, LARGEST) {
        Err(e) if absent(&e) => return Ok(Checked::NoManifest),
        other => other?,
    };
    let Ok(manifest) = serde_json::from_slice::<Manifest>(&text) else {
        return Ok(Checked::Changed(format!("`{NAME}` is damaged")));
    };
    if manifest.archive != archive {
        return Ok(Checked::Changed("it was unpacked from another archive".into()));
    }
    let found = entries_of(&directory)?;
    for (path, held) in &manifest.entries {
        match found.get(path) {
            None => return Ok(Checked::Changed(format!("`{path}` is missing"))),
            Some(now) if now != held => {
                return Ok(Checked::Changed(format!("`{path}` was changed")));
            }
            Some(_) => {}
        }
    }
    let added = found.keys().find(|path| !manifest.entries.contains_key(*path));
    Ok(added.map_or(Checked::Whole, |path| Checked::Changed(format!("`{path}` was added"))))
}

fn entries_of(build: &Directory) -> io::Result<BTreeMap<String, Held>> {
    let mut entries = BTreeMap::new();
    collect(build, Path::new(""), &mut entries)?;
    entries.remove(NAME);
    Ok(entries)
}

fn collect(
    directory: &Directory,
    at: &Path,
    entries: &mut BTreeMap<String, Held>,
) -> io::Result<()> {
    for entry in directory.entries()? {
        let path = at.join(&entry.name);
        let held = match entry.kind {
            FileType::Directory => {
                collect(&directory.directory(&entry.name)?, &path, entries)?;
                Held::Directory
            }
            FileType::RegularFile => {
                let mut file: File = directory.file(&entry.name)?;
                let executable = rustix::fs::fstat(&file)?.st_mode & 0o100 != 0;
                Held::File { sha256: digest(&mut file)?, executable }
            }
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(directory, &entry.name, Vec::new())?;
                Held::Link { target: target.to_string_lossy().into_owned() }
            }
            kind => {
                let found = format!("{} is a {kind:?}", path.display());
                return Err(io::Error::other(found));
            }
        };
        entries.insert(path.to_string_lossy().into_owned(), held);
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn what_was_changed_added_or_removed_is_named() {
        let place = tempfile::tempdir().unwrap();
        let build = place.path().join("build");
        fs::create_dir_all(build.join("bin")).unwrap();
        assert_eq!(compare(&build, "a").unwrap(), Checked::NoManifest);
        fs::write(build.join("bin/postgres"), "program").unwrap();
        symlink("postgres", build.join("bin/postmaster")).unwrap();
        write(&build, "a").unwrap();
        assert_eq!(compare(&build, "a").unwrap(), Checked::Whole);
        let changed = |what: &str| Checked::Changed(what.to_owned());
        assert_eq!(compare(&build, "b").unwrap(), changed("it was unpacked from another archive"));

        fs::write(build.join("bin/postgres"), "poisons").unwrap();
        assert_eq!(compare(&build, "a").unwrap(), changed("`bin/postgres` was changed"));
        fs::write(build.join("bin/postgres"), "program").unwrap();
        fs::set_permissions(build.join("bin/postgres"), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(compare(&build, "a").unwrap(), changed("`bin/postgres` was changed"));
        fs::set_permissions(build.join("bin/postgres"), fs::Permissions::from_mode(0o644)).unwrap();

        fs::write(build.join("bin/libevil.so"), "").unwrap();
        assert_eq!(compare(&build, "a").unwrap(), changed("`bin/libevil.so` was added"));
        fs::remove_file(build.join("bin/libevil.so")).unwrap();
        fs::remove_file(build.join("bin/postmaster")).unwrap();
        assert_eq!(compare(&build, "a").unwrap(), changed("`bin/postmaster` is missing"));
        symlink("/bin/sh", build.join("bin/postmaster")).unwrap();
        assert_eq!(compare(&build, "a").unwrap(), changed("`bin/postmaster` was changed"));
        fs::write(build.join(NAME), "{").unwrap();
        assert_eq!(compare(&build, "a").unwrap(), changed("`pgdyno-manifest.json` is damaged"));
    }
}
