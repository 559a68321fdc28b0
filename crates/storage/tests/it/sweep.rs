//! Leftovers of a killed pgdyno, and their removal.
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::AtomicBool;

use crate::common::leftovers::{kill_owners, make_directory, runs};
use crate::common::{self, Place, RUN};
use pgdyno_exec::beneath::FileIdentity;
use pgdyno_exec::journal::{Journal, MARKER, OwnedResource, file_mark};
use pgdyno_model::Advice;
use pgdyno_postgres::sweep::{Outcome, sweep};
use pgdyno_postgres::{Cluster, ClusterSpec};
use pgdyno_test_support::wait_for;

/// Set for the process that is to be killed: where it is to work.
const VICTIM: &str = "PGDYNO_TEST_VICTIM";
/// Says what the victim has made.
const READY: &str = "ready";

/// Runs only in the victim: makes a cluster, starts it, and waits to be killed.
#[test]
fn victim() {
    let Some(root) = std::env::var_os(VICTIM).map(PathBuf::from) else { return };
    let journal = Journal::open(&root.join("state")).unwrap();
    let spec = ClusterSpec::new(common::install(), root.join("storage/pgdyno-victim")).unwrap();
    let mut cluster =
        Cluster::create(ClusterSpec { socket_base: root.clone(), ..spec }, &journal, &RUN).unwrap();
    cluster.start(&RUN).unwrap();
    let file = root.join("storage/.pgdyno-fsync-victim");
    let mut entry = journal.record(&OwnedResource::File { path: file.clone() }).unwrap();
    fs::write(&file, format!("{}rest", file_mark(&entry.id))).unwrap();
    let identity = FileIdentity::from_file(fs::File::open(&file).unwrap()).unwrap();
    journal.identify(&mut entry, identity).unwrap();
    fs::write(root.join("storage/ready.new"), cluster.pid().unwrap().to_string()).unwrap();
    fs::rename(root.join("storage/ready.new"), root.join(READY)).unwrap();
    loop {
        std::thread::park();
    }
}

/// A process that made a cluster below `root`; its postmaster's pid.
fn start_victim(root: &Path) -> (Child, u32) {
    fs::create_dir(root.join("storage")).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "sweep::victim", "--nocapture"])
        .env(VICTIM, root)
        .spawn()
        .unwrap();
    let pid = wait_for("a started server", || {
        assert!(child.try_wait().unwrap().is_none(), "the victim ended before it was killed");
        fs::read_to_string(root.join(READY)).ok()
    });
    (child, pid.parse().unwrap())
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|f| f.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn what_a_killed_pgdyno_left_is_taken_down_and_nothing_else() {
    let place = Place::new();
    let (mut victim, postmaster) = start_victim(place.path());
    let foreign = place.path().join("storage/pgdyno-foreign");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("precious"), "data").unwrap();

    // While its owner lives, everything stays.
    assert_eq!(sweep(&place.journal, &RUN).unwrap(), []);
    assert!(runs(postmaster));

    victim.kill().unwrap();
    victim.wait().unwrap();
    assert!(runs(postmaster), "a killed owner leaves its server running");
    let swept = sweep(&place.journal, &RUN).unwrap();
    assert_eq!(swept.len(), 3);
    let server_ended = Some(postmaster.cast_signed());
    assert_eq!(swept[0].outcome, Outcome::Removed { server_ended }, "{swept:?}");
    assert!(
        swept.iter().skip(1).all(|s| s.outcome == Outcome::Removed { server_ended: None }),
        "{swept:?}"
    );
    assert!(!runs(postmaster));
    assert_eq!(names(&place.path().join("storage")), ["pgdyno-foreign"]);
    assert_eq!(fs::read_to_string(foreign.join("precious")).unwrap(), "data");
    assert_eq!(names(place.path()), ["ready", "state", "storage"]);
    assert_eq!(sweep(&place.journal, &RUN).unwrap(), []);
}

#[test]
fn only_what_bears_the_journals_own_mark_is_removed() {
    let place = Place::new();
    let ours = make_directory(&place, place.path().join("ours"));
    fs::create_dir_all(ours.join("deep/er")).unwrap();
    let outside = place.path().join("outside");
    fs::write(&outside, "kept").unwrap();
    std::os::unix::fs::symlink(&outside, ours.join("deep/link")).unwrap();
    let unmarked = make_directory(&place, place.path().join("unmarked"));
    fs::remove_file(unmarked.join(MARKER)).unwrap();
    fs::write(unmarked.join("precious"), "data").unwrap();
    let other = make_directory(&place, place.path().join("other"));
    fs::copy(ours.join(MARKER), other.join(MARKER)).unwrap();
    let gone = make_directory(&place, place.path().join("gone"));
    fs::remove_dir_all(&gone).unwrap();
    // Its maker died between making the directory and writing the marker.
    let empty = make_directory(&place, place.path().join("empty"));
    fs::remove_file(empty.join(MARKER)).unwrap();
    let link = make_directory(&place, place.path().join("link"));
    fs::remove_dir_all(&link).unwrap();
    std::os::unix::fs::symlink(&unmarked, &link).unwrap();
    let file = place.path().join("file");
    place.journal.record(&OwnedResource::File { path: file.clone() }).unwrap();
    fs::write(&file, "somebody else's").unwrap();
    kill_owners(&place);

    let swept = sweep(&place.journal, &RUN).unwrap();
    let outcome = |path: &Path| &swept.iter().find(|s| s.path == path).unwrap().outcome;
    let removed = Outcome::Removed { server_ended: None };
    assert_eq!((outcome(&ours), outcome(&empty)), (&removed, &removed));
    assert_eq!(outcome(&gone), &Outcome::WasGone);
    for path in [&unmarked, &other, &link, &file] {
        assert!(matches!(outcome(path), Outcome::NotOurs { .. }), "{path:?}: {swept:?}");
    }
    assert_eq!(names(place.path()), ["file", "link", "other", "outside", "state", "unmarked"]);
    assert_eq!(fs::read_to_string(&outside).unwrap(), "kept");
    let told = swept.iter().find(|s| s.path == unmarked).unwrap().to_string();
    assert!(told.contains("it holds files and no .pgdyno-made"), "{told}");
    assert!(place.journal.entries().unwrap().is_empty());
}

#[test]
fn an_interrupted_sweep_goes_on_at_the_next_start() {
    let place = Place::new();
    let ours = make_directory(&place, place.path().join("ours"));
    kill_owners(&place);
    assert_eq!(sweep(&place.journal, &AtomicBool::new(true)).unwrap(), []);
    assert!(ours.exists());
    assert_eq!(sweep(&place.journal, &RUN).unwrap().len(), 1);
    assert!(!ours.exists());
}

#[test]
fn a_directory_that_the_server_cannot_reach_is_refused_with_the_component_that_stops_it() {
    let place = Place::new();
    let account = pgdyno_exec::account::server_account().unwrap();
    let closed = place.path().join("closed");
    fs::create_dir_all(closed.join("storage")).unwrap();
    let directory = closed.join("storage/pgdyno-x");
    let spec = ClusterSpec::new(common::install(), directory).unwrap();
    fs::set_permissions(
        &closed,
        fs::Permissions::from_mode(if account.is_ours() { 0o000 } else { 0o700 }),
    )
    .unwrap();
    let error = Cluster::create(spec, &place.journal, &RUN).unwrap_err();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    if !account.is_ours() {
        let told = error.to_string();
        assert!(told.contains(&format!("may not pass {} (mode 0700", closed.display())), "{told}");
        assert!(error.help().unwrap().contains("chmod o+x"));
    }
    let missing =
        ClusterSpec::new(common::install(), place.path().join("missing/pgdyno-x")).unwrap();
    let error = Cluster::create(missing, &place.journal, &RUN).unwrap_err();
    assert!(error.to_string().contains("does not exist"), "{error}");
    fs::write(place.path().join("file"), "").unwrap();
    let file = ClusterSpec::new(common::install(), place.path().join("file/pgdyno-x")).unwrap();
    let error = Cluster::create(file, &place.journal, &RUN).unwrap_err();
    assert!(error.to_string().contains("is no directory"), "{error}");
    assert!(place.journal.entries().unwrap().is_empty());
}

#[test]
fn what_a_killed_process_was_writing_to_the_journal_is_removed_and_a_living_ones_stays() {
    let root = tempfile::tempdir().unwrap();
    let state = root.path().join("state");
    let journal = Journal::open(&state).unwrap();
    let mut child = Command::new("sleep").arg("600").spawn().unwrap();
    let started = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit_once(") ").unwrap().1.split(' ').nth(19).unwrap().to_owned()
    };
    let unfinished = |pid: u32| format!(".{pid}-{}-0a1b.new", started(pid));
    let (theirs, ours) = (unfinished(child.id()), unfinished(std::process::id()));
    for name in [&theirs, &ours] {
        fs::write(state.join("made").join(name), "{\"id\":").unwrap();
    }
    let swept = || {
        assert_eq!(sweep(&journal, &RUN).unwrap(), []);
        names(&state.join("made"))
    };
    let all = swept();
    child.kill().unwrap();
    child.wait().unwrap();
    let left = swept();
    assert!(all.contains(&theirs) && all.contains(&ours), "{all:?}");
    assert!(!left.contains(&theirs) && left.contains(&ours), "{left:?}");
}
