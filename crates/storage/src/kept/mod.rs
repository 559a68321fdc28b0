//! Kept evidence of failed crash tests, and stretches of load whose states are not all judged:
//! images of filesystems, copies of PGDATA, disk logs, ledgers.
//!
//! Evidence lies in `$XDG_DATA_HOME/pgdyno/crashes/SESSION/FAULT-ROUND/`; a plug's session has no
//! folder of the round. A stretch lies in `SESSION/stretch/`.
//!
//! Folders bear no marker, so that pgdyno's are known by their names, owner and contents. Anything
//! else in them is named and left. The way there must be one that only root and the caller can
//! change; from there on everything is opened and removed below descriptors, through no symbolic
//! link.

pub mod stretch;

use std::path::{Path, PathBuf};
use std::{fs, io};

use pgdyno_exec::beneath::Directory;
use pgdyno_exec::mountinfo::mounted_beneath;
use pgdyno_exec::paths::data_dir;
use pgdyno_exec::trust;
use pgdyno_model::{Advice, Fault};
use rustix::fs::{FileType, Stat};

/// A file that is left as it is, and the reason.
#[derive(Debug)]
pub struct LeftAlone {
    /// The file.
    pub path: PathBuf,
    /// The cause.
    pub why: KeptError,
}

/// Why something among the kept files is not pgdyno's, or cannot be removed.
#[derive(Debug, thiserror::Error)]
pub enum KeptError {
    /// A system call failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Something else was found in place of pgdyno's own file.
    #[error("{0}")]
    NotOurs(String),
}

impl KeptError {
    fn found(found: impl Into<String>) -> Self {
        Self::NotOurs(found.into())
    }

    fn link() -> Self {
        Self::found("it is a symbolic link")
    }

    fn unseen(error: impl Into<io::Error>) -> Self {
        Self::found(format!("it cannot be looked at: {}", error.into()))
    }
}

/// The kept files of one session of crash tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptCrash {
    /// The session's name.
    pub id: String,
    /// Folder of the session.
    pub path: PathBuf,
    /// Room that the kept files take on the disk (bytes), without holes of images.
    pub bytes: u64,
    /// Whether a stretch is among them that another process can go on with.
    pub has_stretch: bool,
    /// Files and copies of PGDATA that pgdyno put there, from [`KeptCrash::path`] on.
    kept: Vec<PathBuf>,
    /// Folders of rounds.
    rounds: Vec<PathBuf>,
}

/// The kept files of all sessions.
#[derive(Debug, Default)]
pub struct KeptCrashes {
    /// Kept files by session, the oldest first.
    pub all: Vec<KeptCrash>,
    /// Files in the sessions' folders that are not pgdyno's, or cannot be looked at.
    pub left: Vec<LeftAlone>,
}

impl KeptCrashes {
    /// Finds the kept files. Follows no symbolic link.
    pub fn find() -> Self {
        Self::find_in(&data_dir().join("crashes"))
    }

    fn find_in(path: &Path) -> Self {
        let mut found = Self::default();
        match open_crashes(path) {
            Ok(directory) => found.look_into(&directory),
            Err(KeptError::Io(e)) if e.kind() == io::ErrorKind::NotFound => {}
            Err(why) => found.leave(path.to_owned(), why),
        }
        found
    }

    fn look_into(&mut self, directory: &Directory) {
        for name in self.names(directory) {
            let path = directory.path().join(&name);
            if !is_session(&name) {
                self.leave(path, KeptError::found("its name is none of a session of crash tests"));
            } else if let Some(folder) = self.own_folder(directory, &name) {
                let session = self.session(name, &folder);
                self.all.push(session);
            }
        }
    }

    fn session(&mut self, id: String, folder: &Directory) -> KeptCrash {
        let (mut kept, mut rounds) = (Vec::new(), Vec::new());
        for name in self.names(folder) {
            if is_round(&name) || name == stretch::FOLDER {
                if let Some(round) = self.own_folder(folder, &name) {
                    let files = self.names(&round);
                    let is_kept = |file: &String| self.is_kept(&round, file);
                    kept.extend(
                        files.into_iter().filter(is_kept).map(|file| Path::new(&name).join(file)),
                    );
                    rounds.push(name.into());
                }
            } else if self.is_kept(folder, &name) {
                kept.push(name.into());
            }
        }
        let bytes = kept.iter().map(|path| room(folder, path)).sum();
        let has_stretch = kept.contains(&Path::new(stretch::FOLDER).join(stretch::RECORD));
        KeptCrash { id, path: folder.path().to_owned(), bytes, has_stretch, kept, rounds }
    }

    /// Returns the names in `directory`, in order.
    fn names(&mut self, directory: &Directory) -> Vec<String> {
        match directory.entries() {
            Ok(entries) => {
                entries.into_iter().map(|e| e.name.to_string_lossy().into_owned()).collect()
            }
            Err(e) => {
                let why = KeptError::found(format!("it cannot be read: {e}"));
                self.leave(directory.path().to_owned(), why);
                Vec::new()
            }
        }
    }

    fn own_folder(&mut self, parent: &Directory, name: &str) -> Option<Directory> {
        own_folder(parent, name).map_err(|why| self.leave(parent.path().join(name), why)).ok()
    }

    /// Tells whether pgdyno put it there, as far as name and kind tell.
    fn is_kept(&mut self, folder: &Directory, name: &str) -> bool {
        let is_file_name = match folder.path().ends_with(stretch::FOLDER) {
            true => stretch::FILES.contains(&name),
            false => {
                ["image", "disk-log", stretch::RECORD].contains(&name)
                    || name.starts_with("image-")
                    || name.starts_with("ledger-")
            }
        };
        let is_data = || name == "data" && folder.file("data/PG_VERSION").is_ok();
        let why = match folder.stat(name).map(|stat| kind(&stat)) {
            Err(e) => KeptError::unseen(e),
            Ok(FileType::Symlink) => KeptError::link(),
            Ok(FileType::RegularFile) if is_file_name => return true,
            Ok(FileType::Directory) if is_data() => return true,
            Ok(_) => KeptError::found("pgdyno did not put it there"),
        };
        self.leave(folder.path().join(name), why);
        false
    }

    fn leave(&mut self, path: PathBuf, why: KeptError) {
        self.left.push(LeftAlone { path, why });
    }
}

impl KeptCrash {
    /// Removes the kept files and the folders that are empty then. Returns the freed room (bytes)
    /// and the files that are left.
    pub fn remove(&self) -> (u64, Vec<LeftAlone>) {
        let mut left = Vec::new();
        let freed = self.remove_below(&mut left).unwrap_or_else(|why| {
            left.push(LeftAlone { path: self.path.clone(), why });
            0
        });
        (freed, left)
    }

    fn remove_below(&self, left: &mut Vec<LeftAlone>) -> Result<u64, KeptError> {
        let crashes_path = self.path.parent().unwrap_or(Path::new("/"));
        let crashes = open_crashes(crashes_path)?;
        let folder = own_folder(&crashes, &self.id)?;
        // Held until all is removed, so that nobody goes on with a part of it.
        let _lock = stretch::lock(&folder).map_err(|e| match e {
            fs::TryLockError::WouldBlock => {
                KeptError::found("another pgdyno judges its states now")
            }
            fs::TryLockError::Error(e) => e.into(),
        })?;
        let mut freed = 0;
        for path in &self.kept {
            let bytes = room(&folder, path);
            match remove(&folder, path) {
                Ok(()) => freed += bytes,
                Err(why) => left.push(LeftAlone { path: self.path.join(path), why }),
            }
        }
        // Fails, as it should, while anything is in them.
        for round in &self.rounds {
            let _ = folder.remove_directory(round);
        }
        let _ = crashes.remove_directory(&self.id);
        let _ = fs::remove_dir(crashes_path);
        Ok(freed)
    }
}

/// Opens the folder of all sessions, if nobody but root and the caller can change where its path
/// leads to.
fn open_crashes(path: &Path) -> Result<Directory, KeptError> {
    trust::check(path).map_err(|e| {
        let help = e.help().map_or_else(String::new, |help| format!("; {help}"));
        KeptError::found(format!("{e}{help}"))
    })?;
    if fs::symlink_metadata(path)?.is_symlink() {
        return Err(KeptError::link());
    }
    Ok(Directory::open(path)?)
}

/// Opens the folder `name`, if it is the caller's.
fn own_folder(parent: &Directory, name: &str) -> Result<Directory, KeptError> {
    let stat = parent.stat(name).map_err(KeptError::unseen)?;
    match kind(&stat) {
        FileType::Symlink => return Err(KeptError::link()),
        FileType::Directory => {}
        _ => return Err(KeptError::found("it is no folder")),
    }
    let folder = parent.directory(name).map_err(KeptError::unseen)?;
    let uid = rustix::fs::fstat(&folder).map_err(KeptError::unseen)?.st_uid;
    if uid == rustix::process::geteuid().as_raw() {
        Ok(folder)
    } else {
        Err(KeptError::found(format!("it belongs to uid {uid}")))
    }
}

fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// Removes a file or a tree, unless it is in use as a disk or a mount.
fn remove(folder: &Directory, relative: &Path) -> Result<(), KeptError> {
    let path = folder.path().join(relative);
    if let Some(mounted) = mounted_beneath(&path)?.first() {
        let point = mounted.point.display();
        return Err(KeptError::found(format!("something is mounted at {point}")));
    }
    if let Some(device) = loop_device(&path) {
        return Err(KeptError::found(format!("it is attached as {device}")));
    }
    let (round, name) = match (relative.parent(), relative.file_name()) {
        (Some(round), Some(name)) if !round.as_os_str().is_empty() => {
            (Some(folder.directory(round)?), name)
        }
        _ => (None, relative.as_os_str()),
    };
    let holder = round.as_ref().unwrap_or(folder);
    if kind(&holder.stat(name)?) != FileType::Directory {
        return Ok(holder.remove_file(name)?);
    }
    holder.directory(name)?.empty(&[])?;
    Ok(holder.remove_directory(name)?)
}

/// Returns the loop device that lies over the file at `path`.
fn loop_device(path: &Path) -> Option<String> {
    let path = path.canonicalize().ok()?;
    let devices = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let over = |device: &fs::DirEntry| {
        let backing =
            fs::read_to_string(device.path().join("loop/backing_file")).unwrap_or_default();
        Path::new(backing.trim_end_matches('\n')) == path
    };
    devices.into_iter().find(over).map(|device| format!("/dev/{}", device.file_name().display()))
}

/// Returns the room that a file or tree takes on the disk (bytes), as far as it can be read.
fn room(folder: &Directory, relative: &Path) -> u64 {
    /// The unit of `st_blocks`, whatever the filesystem's blocks are.
    const BLOCK: u64 = 512;
    let of = |stat: &Stat| u64::try_from(stat.st_blocks).unwrap_or(0) * BLOCK;
    if let Ok(tree) = folder.directory(relative) {
        let own = rustix::fs::fstat(&tree).map_or(0, |stat| of(&stat));
        let below = tree.entries().unwrap_or_default();
        return own + below.iter().map(|e| room(&tree, Path::new(&e.name))).sum::<u64>();
    }
    folder
        .file(relative)
        .ok()
        .and_then(|file| rustix::fs::fstat(file).ok())
        .map_or(0, |stat| of(&stat))
}

/// Tells whether a session is called so: `crash-20261122-223127-ulgf`, `plug-…`.
fn is_session(name: &str) -> bool {
    let parts: Vec<&str> = name.split('-').collect();
    let digits =
        |text: &str, count| text.len() == count && text.bytes().all(|b| b.is_ascii_digit());
    matches!(parts.as_slice(), [stem, date, time, letters]
        if ["crash", "plug"].contains(stem)
            && digits(date, 8)
            && digits(time, 6)
            && letters.len() == 4
            && letters.bytes().all(|b| b.is_ascii_lowercase()))
}

/// Tells whether a round's folder is called so: `power-2`. Faults keep the names that they had.
fn is_round(name: &str) -> bool {
    name.rsplit_once('-').is_some_and(|(fault, number)| {
        Fault::parse(fault).is_some()
            && !number.is_empty()
            && number.bytes().all(|b| b.is_ascii_digit())
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

    fn name_of(path: &Path) -> String {
        path.file_name().unwrap_or_default().to_string_lossy().into_owned()
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
        assert!(found.left.is_empty(), "{found:?}");
        let ids: Vec<&str> = found.all.iter().map(|kept| kept.id.as_str()).collect();
        assert_eq!(ids, [ID, "plug-20261122-223127-abcd"]);
        assert!(found.all[0].bytes >= 3 * 8192 && found.all[1].bytes >= 2 * 8192);
        for kept in &found.all {
            let (freed, left) = kept.remove();
            assert!(freed == kept.bytes && left.is_empty(), "{left:?}");
        }
        assert!(!crashes.exists());
        let found = KeptCrashes::find_in(&crashes);
        assert!(found.all.is_empty() && found.left.is_empty(), "{found:?}");
    }

    #[test]
    fn a_stretch_is_removed_unless_somebody_judges_its_states() {
        let place = tempfile::tempdir().unwrap();
        let crashes = place.path().join("crashes");
        let folder = crashes.join(ID).join(stretch::FOLDER);
        stretch::FILES.iter().for_each(|name| file(&folder.join(name)));
        file(&folder.join("disk-log"));
        let found = KeptCrashes::find_in(&crashes);
        assert_eq!(left(&found.left), ["disk-log"]);
        let [kept] = &found.all[..] else { panic!("{found:?}") };
        assert!(kept.has_stretch && kept.bytes >= 6 * 8192, "{kept:?}");
        let judging = fs::File::open(folder.join(stretch::VERDICTS)).unwrap();
        judging.lock().unwrap();
        let (freed, stays) = kept.remove();
        assert_eq!((freed, left(&stays)), (0, vec![ID.to_owned()]));
        drop(judging);
        fs::remove_file(folder.join("disk-log")).unwrap();
        let (freed, stays) = kept.remove();
        assert!(freed == kept.bytes && stays.is_empty() && !crashes.exists(), "{stays:?}");
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
        let expected = [
            "crash-20261122-223127-link",
            "data",
            "findings.txt",
            "image-1",
            "notes",
            "photos",
            "power-2",
        ];
        assert_eq!(names, expected);
        let (freed, left) = kept.remove();
        assert!(freed > 0 && left.is_empty(), "{left:?}");
        assert!(!crashes.join(ID).join("power-1/image-0").exists());
        for stays in [
            "notes/image-0",
            &format!("{ID}/power-1/findings.txt"),
            &format!("{ID}/photos/image-1"),
        ] {
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
        for other in [
            "crash",
            "crash-1",
            "crash-20261122-223127-ULGF",
            "quickstart-20261122-223127-ulgf",
            "..",
        ] {
            assert!(!is_session(other), "{other}");
        }
        assert!(
            is_round("torn-write-12") && is_round("emulated-lie-1") && is_round("lying-disk-1")
        );
        assert!(!is_round("power-") && !is_round("power") && !is_round("photos-1"));
    }
}
