//! A store that several machines use, or that was copied from another one: only locks tell whether
//! a process works on a run, and readers write nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::support::{Ended, World, elements};
use pgdyno_model::facts::Owner;
use pgdyno_model::record::SessionRecord;
use pgdyno_store::{OpenSession, SessionId, Store};
use pgdyno_test_support::records::Random;
use pgdyno_test_support::{synthetic, wait_for};

const DONE: &str = "small-20261121-070000-aaaa";
const OPEN: &str = "small-20261121-070000-bbbb";
/// Names the store whose run a process of this test holds.
const HOLDS: &str = "PGDYNO_TEST_HOLDS";

/// This process as the owner of a session on the machine `host`; none is of an earlier version.
fn session(host: Option<&str>) -> SessionRecord {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let mut session = synthetic::session(&["here".to_owned()]);
    session.owner = Owner {
        pid: std::process::id().cast_signed(),
        started_ticks: fields[19].parse().unwrap(),
        boot_id: boot_id.trim().to_owned(),
        host: host.map(str::to_owned),
    };
    session.host.id = host.map(str::to_owned);
    session.host.name = host.map(str::to_owned);
    session
}

/// A session of a machine that is not this one.
fn foreign() -> SessionRecord {
    let mut session = session(Some("db7"));
    session.owner.boot_id = "of another machine".into();
    session
}

/// A store with a run that is done and one that is open in the returned store.
fn store(path: &Path, session: &SessionRecord) -> (Store, SessionId) {
    let mut store = Store::open(path).unwrap();
    let plan = synthetic::plan(&["a", "b"], 3, &mut Random(7));
    synthetic::add(&mut store, (DONE, 1), &plan, |planned| 1000.0 + f64::from(planned.ordinal));
    let first = synthetic::begin(&mut store, OPEN, "synthetic", 2, &plan);
    store.end_session(first, pgdyno_model::record::SessionEnd::Failed).unwrap();
    let id = store.begin_session(OPEN, session).unwrap();
    (store, id)
}

fn path(world: &World) -> PathBuf {
    world.path("shared.sqlite3")
}

fn state(world: &World, store: &str) -> String {
    let listed = world.run(&["list", "--json", "--store", store]).json();
    let open = elements(&listed).find(|run| run["id"] == OPEN).unwrap();
    open["state"].as_str().unwrap().to_owned()
}

fn remove(world: &World, run: &str, store: &str) -> Ended {
    world.run(&["rm", "--yes", run, "--store", store])
}

/// Returns the names in the store's folder, and the bytes of the store.
fn everything(world: &World) -> (Vec<String>, Vec<u8>) {
    let entries = fs::read_dir(path(world).parent().unwrap()).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    (names, fs::read(path(world)).unwrap())
}

fn open_sessions(path: &Path) -> usize {
    Store::open_for_reading(path).unwrap().open_sessions().unwrap().len()
}

/// The process that holds a run until it is killed: this test program, called by itself.
#[test]
fn a_holder() {
    let Some(path) = std::env::var_os(HOLDS) else { return };
    let _held = store(Path::new(&path), &session(Some("this")));
    loop {
        std::thread::park();
    }
}

fn holder(path: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "shared_store::a_holder"])
        .env(HOLDS, path)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn the_lock_of_a_killed_process_is_free_at_once() {
    let world = World::new();
    let mut holder = holder(&path(&world));
    wait_for("the run is open", || {
        let found = Store::open_for_reading(path(&world)).and_then(|store| store.open_sessions());
        let is_begun = |open: Vec<OpenSession>| open.iter().any(|open| open.host.is_some());
        found.is_ok_and(is_begun).then_some(())
    });
    assert_eq!(state(&world, "shared.sqlite3"), "running");
    remove(&world, OPEN, "shared.sqlite3").exits(1).says("worked on by");
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert_eq!(state(&world, "shared.sqlite3"), "interrupted");
    assert_eq!(remove(&world, OPEN, "shared.sqlite3").code, Some(0));
}

#[test]
fn a_copy_of_a_store_is_nobodys_while_the_run_goes_on() {
    let world = World::new();
    let (store, id) = store(&path(&world), &session(Some("this")));
    fs::copy(path(&world), world.path("copy")).unwrap();
    // The process that it names is alive, and works on the other store.
    assert_eq!(state(&world, "shared.sqlite3"), "running");
    assert_eq!(state(&world, "copy"), "interrupted");
    world.run(&["archive", OPEN, "archive", "--store", "copy"]).exits(0);
    world.run(&["store", "merge", "copy", "-o", "merged"]).exits(0);
    assert_eq!(state(&world, "merged"), "interrupted");
    // A writer leaves it as it came, so that it comes again.
    assert_eq!(remove(&world, DONE, "merged").code, Some(0));
    world.run(&["store", "merge", "copy", "-o", "merged"]).exits(0);
    world.run(&["store", "merge", "shared.sqlite3", "-o", "merged"]).exits(1).says("worked on by");
    assert_eq!(remove(&world, OPEN, "copy").code, Some(0));
    assert_eq!(remove(&world, OPEN, "shared.sqlite3").code, Some(1));
    assert_eq!(store.open_sessions().unwrap()[0].id, id);
}

#[test]
fn a_session_of_another_machine_is_left_alone_while_it_is_held_and_afterwards() {
    let world = World::new();
    let (held, _) = store(&path(&world), &foreign());
    assert_eq!(state(&world, "shared.sqlite3"), "running");
    remove(&world, OPEN, "shared.sqlite3").exits(1).says("on db7");
    // Another run is written meanwhile.
    assert_eq!(remove(&world, DONE, "shared.sqlite3").code, Some(0));
    assert_eq!(open_sessions(&path(&world)), 1);
    drop(held);
    // Its end is not for this machine to record.
    assert_eq!(state(&world, "shared.sqlite3"), "interrupted");
    world.file(
        "report.txt",
        "number of clients: 8\ntps = 545.5 (excluding connections establishing)\n",
    );
    let audited = world.run(&["audit", "report.txt", "--store", "shared.sqlite3"]);
    assert_ne!(audited.code, Some(1), "{}", audited.err);
    assert_eq!(open_sessions(&path(&world)), 1);
    assert_eq!(remove(&world, OPEN, "shared.sqlite3").code, Some(0));
}

#[test]
fn readers_write_nothing_and_a_writer_ends_what_this_machine_left() {
    let world = World::new();
    let mut dead = session(None);
    dead.owner.started_ticks += 1;
    drop(store(&path(&world), &dead));
    let before = everything(&world);
    for arguments in [
        &["list"][..],
        &["list", "--json"],
        &["show", OPEN],
        &["report", DONE, "-o", "-"],
        &["compare", DONE, DONE],
        &["export", DONE, "--format", "json", "-o", "-"],
        &["verify"],
        &["store", "size"],
    ] {
        let read = world.run(&[arguments, &["--store", "shared.sqlite3"]].concat());
        assert!(matches!(read.code, Some(0 | 1 | 5)), "{arguments:?}: {}", read.err);
        assert!(everything(&world) == before, "{arguments:?} wrote");
    }
    assert_eq!(
        (state(&world, "shared.sqlite3"), open_sessions(&path(&world))),
        ("interrupted".into(), 1)
    );
    assert_eq!(remove(&world, DONE, "shared.sqlite3").code, Some(0));
    assert_eq!(open_sessions(&path(&world)), 0);
}

#[test]
fn a_run_that_an_earlier_version_works_on_is_known_by_its_process() {
    let world = World::new();
    // It took no lock.
    drop(store(&path(&world), &session(None)));
    assert_eq!(state(&world, "shared.sqlite3"), "running");
    remove(&world, OPEN, "shared.sqlite3").exits(1).says("worked on by");
}
