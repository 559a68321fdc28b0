//! What failed crash tests left and pgdyno kept: images of filesystems, copies of PGDATA, ledgers.
//!
//! It lies in `$XDG_DATA_HOME/pgdyno/crashes/SESSION/FAULT-ROUND/`; a plug's session has no folder of the round.
//! Folders bear no marker, so that pgdyno's are known by their names, owner and contents. Anything else in them
//! is named and left.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use pgdyno_model::Fault;

use crate::mountinfo::mounted_beneath;
use crate::paths::data_dir;

/// Something that is left as it is, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftAlone {
    /// What.
    pub path: PathBuf,
    /// Why.
    pub why: String,
}

/// What one session of crash tests kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptCrash {
    /// The session's name.
    pub id: String,
    /// Its folder.
    pub path: PathBuf,
    /// What takes room on the disk (bytes): holes of images do not.
    pub bytes: u64,
    /// Files and copies of PGDATA that pgdyno put there.
    kept: Vec<PathBuf>,
    /// Folders of rounds.
    rounds: Vec<PathBuf>,
}

/// All that is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptCrashes {
    /// By session, the oldest first.
    pub all: Vec<KeptCrash>,
    /// What else lies there.
    pub left: Vec<LeftAlone>,
}

impl KeptCrashes {
    /// Looks for what is kept. Follows no symbolic link.
    #[must_use]
    pub fn find() -> Self {
        Self::find_in(&data_dir().join("crashes"))
    }

    fn find_in(directory: &Path) -> Self {
        let mut found = Self::default();
        for path in found.entries(directory) {
            let name = name_of(&path);
            if !is_session(&name) {
                found.leave(path, "its name is none of a session of crash tests");
            } else if found.is_own_folder(&path) {
                let session = found.session(name, path);
                found.all.push(session);
            }
        }
        found
    }

    fn session(&mut self, id: String, path: PathBuf) -> KeptCrash {
        let (mut kept, mut rounds) = (Vec::new(), Vec::new());
        for child in self.entries(&path) {
            if is_round(&name_of(&child)) {
                if self.is_own_folder(&child) {
                    let files = self.entries(&child);
                    kept.extend(files.into_iter().filter(|file| self.is_kept(file)));
                    rounds.push(child);
                }
            } else if self.is_kept(&child) {
                kept.push(child);
            }
        }
        let bytes = kept.iter().map(|path| room(path)).sum();
        KeptCrash { id, path, bytes, kept, rounds }
    }

    /// The entries of `directory` by name; none of one that is not there.
    fn entries(&mut self, directory: &Path) -> Vec<PathBuf> {
        match fs::symlink_metadata(directory) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Vec::new(),
            Ok(metadata) if metadata.is_symlink() => {
                self.leave(directory.to_owned(), "it is a symbolic link");
                return Vec::new();
            }
            _ => {}
        }
        let entries = fs::read_dir(directory).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        match entries {
            Ok(entries) => {
                let mut paths: Vec<PathBuf> = entries.iter().map(fs::DirEntry::path).collect();
                paths.sort();
                paths
            }
            Err(e) => {
                self.leave(directory.to_owned(), &format!("it cannot be read: {e}"));
                Vec::new()
            }
        }
    }

    fn is_own_folder(&mut self, path: &Path) -> bool {
        let why = match fs::symlink_metadata(path) {
            Err(e) => format!("it cannot be looked at: {e}"),
            Ok(metadata) if metadata.is_symlink() => "it is a symbolic link".to_owned(),
            Ok(metadata) if !metadata.is_dir() => "it is no folder".to_owned(),
            Ok(metadata) if metadata.uid() != rustix::process::geteuid().as_raw() => {
                format!("it belongs to uid {}", metadata.uid())
            }
            Ok(_) => return true,
        };
        self.leave(path.to_owned(), &why);
        false
    }

    /// Whether pgdyno put it there, as far as name and kind tell.
    fn is_kept(&mut self, path: &Path) -> bool {
        let name = name_of(path);
        let is_file_name = name == "image" || name.starts_with("image-") || name.starts_with("ledger-");
        let why = match fs::symlink_metadata(path) {
            Err(e) => format!("it cannot be looked at: {e}"),
            Ok(metadata) if metadata.is_symlink() => "it is a symbolic link".to_owned(),
            Ok(metadata) if metadata.is_file() && is_file_name => return true,
            Ok(metadata) if metadata.is_dir() && name == "data" && path.join("PG_VERSION").is_file() => {
                return true;
            }
            Ok(_) => "pgdyno did not put it there".to_owned(),
        };
        self.leave(path.to_owned(), &why);
        false
    }

    fn leave(&mut self, path: PathBuf, why: &str) {
        self.left.push(LeftAlone { path, why: why.to_owned() });
    }
}

impl KeptCrash {
    /// Removes what is kept, and the folders that are empty then: the bytes that were freed, and what is left.
    #[must_use]
    pub fn remove(&self) -> (u64, Vec<LeftAlone>) {
        let (mut freed, mut left) = (0, Vec::new());
        for path in &self.kept {
            let bytes = room(path);
            match remove(path) {
                Ok(()) => freed += bytes,
                Err(why) => left.push(LeftAlone { path: path.clone(), why: why.to_string() }),
            }
        }
        // Fails, as it should, while anything is in them.
        for folder in self.rounds.iter().chain([&self.path]) {
            let _ = fs::remove_dir(folder);
        }
        let _ = self.path.parent().map(fs::remove_dir);
        (freed, left)
    }
}

/// Removes a file or a tree, unless it is in use as a disk or a mount.
fn remove(path: &Path) -> io::Result<()> {
    if let Some(mounted) = mounted_beneath(path)?.first() {
        let what = format!("something is mounted at {}", mounted.point.display());
        return Err(io::Error::other(what));
    }
    if let Some(device) = loop_device(path) {
        return Err(io::Error::other(format!("it is attached as {device}")));
    }
    if fs::symlink_metadata(path)?.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

/// The loop device that lies over the file at `path`.
fn loop_device(path: &Path) -> Option<String> {
    let path = path.canonicalize().ok()?;
    let devices = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let over = |device: &fs::DirEntry| {
        let backing = fs::read_to_string(device.path().join("loop/backing_file")).unwrap_or_default();
        Path::new(backing.trim_end_matches('\n')) == path
    };
    devices.into_iter().find(over).map(|device| format!("/dev/{}", device.file_name().display()))
}

/// What a file or tree takes on the disk (bytes); what cannot be seen is not counted.
fn room(path: &Path) -> u64 {
    /// The unit of `st_blocks`, whatever the filesystem's blocks are.
    const BLOCK: u64 = 512;
    let Ok(metadata) = fs::symlink_metadata(path) else { return 0 };
    let below = || fs::read_dir(path).into_iter().flatten().flatten().map(|entry| room(&entry.path())).sum();
    metadata.blocks() * BLOCK + if metadata.is_dir() { below() } else { 0 }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Whether a session is called so: `crash-20261122-223127-ulgf`, `plug-…`.
fn is_session(name: &str) -> bool {
    let parts: Vec<&str> = name.split('-').collect();
    let digits = |text: &str, count| text.len() == count && text.bytes().all(|b| b.is_ascii_digit());
    matches!(parts.as_slice(), [stem, date, time, letters]
        if ["crash", "plug"].contains(stem)
            && digits(date, 8)
            && digits(time, 6)
            && letters.len() == 4
            && letters.bytes().all(|b| b.is_ascii_lowercase()))
}

/// Whether a round's folder is called so: `power-2`. Faults keep the names that they had.
fn is_round(name: &str) -> bool {
    name.rsplit_once('-').is_some_and(|(fault, number)| {
        Fault::parse(fault).is_some() && !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    const ID: &str = "crash-20261122-223127-ulgf";

    fn file(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, vec![1; 8192]).unwrap();
    }

    fn left(found: &[LeftAlone]) -> Vec<String> {
        found.iter().map(|l| name_of(&l.path)).collect()
    }

    #[test]
    fn images_ledgers_and_data_directories_of_any_version_are_found_and_removed() {
        let place = tempfile::tempdir().unwrap();
        let crashes = place.path().join("crashes");
        file(&crashes.join(ID).join("lying-disk-1/image"));
        file(&crashes.join(ID).join("lying-disk-1/ledger-40000001"));
        file(&crashes.join(ID).join("power-2/image-0"));
        file(&crashes.join("plug-20261122-223127-abcd/data/PG_VERSION"));
        file(&crashes.join("plug-20261122-223127-abcd/data/base/1/1259"));
        let found = KeptCrashes::find_in(&crashes);
        assert_eq!(found.left, []);
        let ids: Vec<&str> = found.all.iter().map(|kept| kept.id.as_str()).collect();
        assert_eq!(ids, [ID, "plug-20261122-223127-abcd"]);
        assert!(found.all[0].bytes >= 3 * 8192 && found.all[1].bytes >= 2 * 8192);
        for kept in &found.all {
            let (freed, left) = kept.remove();
            assert_eq!((freed, left), (kept.bytes, Vec::new()));
        }
        assert!(!crashes.exists());
        assert_eq!(KeptCrashes::find_in(&crashes), KeptCrashes::default());
    }

    #[test]
    fn what_pgdyno_did_not_put_there_is_named_and_stays() {
        let place = tempfile::tempdir().unwrap();
        let (crashes, outside) = (place.path().join("crashes"), place.path().join("outside"));
        file(&outside.join("image-0"));
        file(&crashes.join("notes/image-0"));
        file(&crashes.join(ID).join("power-1/image-0"));
        file(&crashes.join(ID).join("power-1/findings.txt"));
        file(&crashes.join(ID).join("power-1/data/thesis.tex"));
        file(&crashes.join(ID).join("photos/image-1"));
        symlink(outside.join("image-0"), crashes.join(ID).join("power-1/image-1")).unwrap();
        symlink(&outside, crashes.join(ID).join("power-2")).unwrap();
        symlink(&outside, crashes.join("crash-20261122-223127-link")).unwrap();
        let found = KeptCrashes::find_in(&crashes);
        let [kept] = &found.all[..] else { panic!("{found:?}") };
        let mut names = left(&found.left);
        names.sort();
        let expected =
            ["crash-20261122-223127-link", "data", "findings.txt", "image-1", "notes", "photos", "power-2"];
        assert_eq!(names, expected);
        let (freed, left) = kept.remove();
        assert_eq!((freed > 0, left), (true, Vec::new()));
        assert!(!crashes.join(ID).join("power-1/image-0").exists());
        for stays in ["notes/image-0", &format!("{ID}/power-1/findings.txt"), &format!("{ID}/photos/image-1")]
        {
            assert!(crashes.join(stays).exists(), "{stays}");
        }
        assert!(outside.join("image-0").exists());
    }

    #[test]
    fn a_folder_behind_a_symbolic_link_is_not_looked_into() {
        let place = tempfile::tempdir().unwrap();
        file(&place.path().join("real").join(ID).join("power-1/image-0"));
        symlink(place.path().join("real"), place.path().join("crashes")).unwrap();
        let found = KeptCrashes::find_in(&place.path().join("crashes"));
        assert_eq!((found.all.len(), left(&found.left)), (0, vec!["crashes".to_owned()]));
    }

    #[test]
    fn names_of_sessions_and_rounds_are_known() {
        for id in [ID, "plug-20261122-223127-abcd"] {
            assert!(is_session(id), "{id}");
        }
        for other in
            ["crash", "crash-1", "crash-20261122-223127-ULGF", "quickstart-20261122-223127-ulgf", ".."]
        {
            assert!(!is_session(other), "{other}");
        }
        assert!(is_round("torn-write-12") && is_round("emulated-lie-1") && is_round("lying-disk-1"));
        assert!(!is_round("power-") && !is_round("power") && !is_round("photos-1"));
    }
}
