//! Leftovers of processes that are dead, and what attacks look at.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use pgdyno_exec::journal::{Entry, OwnedResource};
use pgdyno_exec::step::Step;
use pgdyno_exec::{ExecContext, Executor as _};
use pgdyno_postgres::sweep::{CleanupResult, Outcome, sweep};

use super::{Place, RUN};

/// `nobody`, which owns nothing.
pub(crate) const NOBODY: u32 = 65534;
pub(crate) const REMOVED: Outcome = Outcome::Removed { server_ended: None };

/// Whether this machine can run `test`: root alone can attack as another account.
pub(crate) fn can(test: &str) -> bool {
    pgdyno_test_support::is_root(test, "needs root to become another account")
}

pub(crate) fn make(place: &Place, made: OwnedResource) -> PathBuf {
    let path = made.path().to_owned();
    let mut performing = ExecContext { journal: &place.journal, stop: &RUN, made: Vec::new() };
    performing.execute(&Step::MakeMarked { made, mode: 0o755, owner: None }).unwrap();
    path
}

pub(crate) fn make_directory(place: &Place, path: PathBuf) -> PathBuf {
    make(place, OwnedResource::Directory { path })
}

/// Makes a cluster's directory with an empty `data` of `uid`'s.
pub(crate) fn make_cluster(place: &Place, name: &str, uid: u32) -> PathBuf {
    let path = make(place, OwnedResource::Cluster { path: place.path().join(name) });
    fs::create_dir(path.join("data")).unwrap();
    chown(path.join("data"), Some(uid), Some(uid)).unwrap();
    path
}

pub(crate) fn entry_files(place: &Place) -> Vec<PathBuf> {
    let files = fs::read_dir(place.path().join("state/made")).unwrap().map(|f| f.unwrap().path());
    files.filter(|f| f.extension().is_some_and(|e| e == "json")).collect()
}

/// Rewrites the owner of every entry of the journal as one that died in this very boot.
pub(crate) fn kill_owners(place: &Place) {
    for file in entry_files(place) {
        let mut entry: Entry = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        entry.owner.started_ticks = 1;
        fs::write(&file, serde_json::to_vec(&entry).unwrap()).unwrap();
    }
}

pub(crate) fn swept(place: &Place) -> Vec<CleanupResult> {
    sweep(&place.journal, &RUN).unwrap()
}

pub(crate) fn only(mut swept: Vec<CleanupResult>) -> Outcome {
    assert_eq!(swept.len(), 1, "{swept:?}");
    swept.remove(0).outcome
}

/// A directory of root's that nobody else may enter, with a file.
pub(crate) fn precious(place: &Place) -> PathBuf {
    let path = place.path().join("precious");
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(path.join("below")).unwrap();
    fs::write(path.join("file"), "kept").unwrap();
    fs::write(path.join("below/file"), "kept").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    path
}

pub(crate) fn is_whole(precious: &Path) -> bool {
    ["file", "below/file"]
        .iter()
        .all(|f| fs::read_to_string(precious.join(f)).is_ok_and(|t| t == "kept"))
}

/// Whether process `pid` runs; a zombie that its new parent has not noticed yet does not.
pub(crate) fn runs(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}
