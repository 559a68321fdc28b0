//! The files of a recorded stretch whose states are not all judged.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use pgdyno_exec::beneath::Directory;
use pgdyno_exec::paths::data_dir;
use pgdyno_exec::trust;

/// Name of a stretch's folder, within the folder of its session.
pub const FOLDER: &str = "stretch";
/// Image of the disk before the load, by the emulated disk's name for it.
pub const IMAGE: &str = "image";
/// Log of the disk, by the emulated disk's name for it.
pub const LOG: &str = "writes";
/// Ledger of the load's transactions.
pub const LEDGER: &str = "ledger";
/// Record of the stretch: options, settings, server and storage, for judging its states elsewhere.
/// It is written once all other files are there.
pub const RECORD: &str = "record.json";
/// The record while it is written.
pub const NEW_RECORD: &str = "record.new";
/// Verdicts on the states judged so far. A process that judges holds the file's lock.
pub const VERDICTS: &str = "verdicts";
/// Names of all files in the folder of a stretch.
pub const FILES: [&str; 6] = [IMAGE, LOG, LEDGER, NEW_RECORD, RECORD, VERDICTS];

/// Returns the folder of the stretch of `session`.
pub fn folder_of(session: &str) -> PathBuf {
    data_dir().join("crashes").join(session).join(FOLDER)
}

/// Removes the files in the folder of a stretch, and the folder with those around it that are empty
/// then.
pub fn remove(folder: &Path) {
    for name in FILES {
        let _ = fs::remove_file(folder.join(name));
    }
    for emptied in folder.ancestors().take(3) {
        // Fails, as it should, while anything is in it.
        let _ = fs::remove_dir(emptied);
    }
}

/// Removes stretches that are incomplete because their process was killed. Returns their folders.
pub fn remove_unfinished() -> Vec<PathBuf> {
    let sessions = fs::read_dir(data_dir().join("crashes")).into_iter().flatten().flatten();
    let folders = sessions.map(|session| session.path().join(FOLDER));
    let is_unfinished = |folder: &PathBuf| {
        let verdicts = || File::open(folder.join(VERDICTS));
        let is_held = || verdicts().is_ok_and(|verdicts| verdicts.try_lock().is_err());
        let is_whole = folder.join(RECORD).exists();
        folder.is_dir() && !is_whole && trust::check(folder).is_ok() && !is_held()
    };
    folders.filter(is_unfinished).inspect(|folder| remove(folder)).collect()
}

/// Takes the lock of the stretch in the folder of a session; none if the session has no stretch.
pub(super) fn lock(folder: &Directory) -> Result<Option<File>, TryLockError> {
    let Ok(verdicts) = folder.file(Path::new(FOLDER).join(VERDICTS)) else { return Ok(None) };
    verdicts.try_lock().map(|()| Some(verdicts))
}
