//! Checks that a panic in the middle of a run takes everything down, as an error does.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;

use crate::quickstart::quickstart;
use pgdyno_lab::run;
use pgdyno_model::PlannedTrial;
use pgdyno_model::progress::{Event, Progress};

/// Panics when the second trial begins: a server is running then, with data in it.
struct Trap;

impl Progress for Trap {
    fn event(&self, event: &Event) {
        if let Event::Trial { planned: PlannedTrial { ordinal: 1, .. }, .. } = event {
            panic!("planted");
        }
    }
}

#[test]
fn a_panic_leaves_no_server_and_no_directory() {
    let home = tempfile::tempdir().unwrap();
    std::fs::set_permissions(home.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    let disk = home.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    std::fs::set_permissions(&disk, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let directory = format!("storage.disk.directory={}", disk.display());
    let resolved = quickstart(Vec::new(), &[&directory, "telemetry.fsync=0s"]);
    let stop = AtomicBool::new(false);
    let store = home.path().join("store.sqlite3");
    let ended = catch_unwind(AssertUnwindSafe(|| run::run(&resolved, &store, &Trap, &stop)));
    assert!(ended.is_err(), "the planted panic must come through");
    let left: Vec<_> = std::fs::read_dir(&disk).unwrap().flatten().map(|e| e.path()).collect();
    assert!(left.is_empty(), "{left:?}");
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        let cwd = std::fs::read_link(process.path().join("cwd")).unwrap_or_default();
        assert!(!cwd.starts_with(&disk), "{} still runs there", process.path().display());
    }
}
