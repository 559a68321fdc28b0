//! Storage stacks on loop devices of the tests' own: made, used, taken down, also by the process
//! after a killed one.
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::stacks::{assert_nothing_left, can, loop_file, make, on, plan, striped};
use crate::common::{self, Place, RUN, traces};
use pgdyno_emulated_disk as emulated;
use pgdyno_exec::account::server_account;
use pgdyno_exec::journal::Journal;
use pgdyno_exec::undo::Undo;
use pgdyno_exec::{ExecContext, Executor as _, Step, StepError};
use pgdyno_model::Advice;
use pgdyno_model::storage::{Backing, DeviceSettings, EmulatedDisk, Hook, Limit, Storage};
use pgdyno_model::units::Bytes;
use pgdyno_postgres::cluster::cluster_directory;
use pgdyno_postgres::sweep::{Outcome, leftovers, sweep};
use pgdyno_postgres::{Cluster, ClusterSpec};
use pgdyno_storage::{StorageError, Wipe};
use pgdyno_test_support::{needs, skip, test_name};

/// Set for the process that is to be killed: where it is to work, on which storage, and after how
/// many steps it stops.
const VICTIM: &str = "PGDYNO_TEST_STACK_VICTIM";

/// Runs only in the process that serves an emulated disk.
#[test]
fn emulated_disk_server() {
    if emulated::is_asked_to_serve() {
        emulated::serve().unwrap();
    }
}

#[test]
fn postgresql_runs_on_each_filesystem_and_nothing_is_left() {
    let all = [("ext2", 1), ("ext3", 1), ("ext4", 1), ("xfs", 1), ("btrfs", 1), ("btrfs", 2)];
    assert_runs_on(test_name!(), &all);
}

/// Has a server start and stop on each of the filesystems, with as many members.
pub(crate) fn assert_runs_on(test: &str, filesystems: &[(&str, usize)]) {
    for &(filesystem, members) in filesystems {
        let place = Place::new();
        let device = DeviceSettings { read_ahead_kb: Some(64), ..DeviceSettings::default() };
        let storage = if members == 1 {
            on(loop_file(place.path()), filesystem)
        } else {
            striped(place.path(), filesystem)
        };
        let storage = Storage { device, ..storage };
        if !can(test, &storage, place.path()) {
            continue;
        }
        let made = make(&storage, &place).unwrap();
        let facts = made.facts(false).unwrap();
        assert!([filesystem, "fuse.zfs"].contains(&facts.filesystem.unwrap().kind.as_str()));
        assert_eq!(
            facts.settings,
            vec![("queue/read_ahead_kb".to_owned(), "64".to_owned()); members]
        );
        let queue = Path::new("/sys/block").join(&facts.devices[0].name).join("queue");
        let directory = cluster_directory(&made.path()).unwrap();
        start_server(directory, place.path(), &place.journal).remove().unwrap();
        assert_eq!(made.take_down(), [""; 0], "{filesystem}");
        let now = fs::read_to_string(queue.join("read_ahead_kb")).unwrap_or_default();
        assert_ne!(now.trim(), "64", "the loop device's next user finds it as it was");
        assert_nothing_left(&place);
    }
}

/// Starts a server in `directory`, whose sockets lie below `base`.
pub(crate) fn start_server(directory: PathBuf, base: &Path, journal: &Journal) -> Cluster {
    let spec = ClusterSpec::new(common::install(), directory).unwrap();
    let spec = ClusterSpec { socket_base: base.to_owned(), ..spec };
    let mut cluster = Cluster::create(spec, journal, &RUN).unwrap();
    cluster.start(&RUN).unwrap();
    cluster
}

#[test]
fn an_overlay_over_a_directory_carries_postgresql_and_nothing_is_left() {
    let test = test_name!();
    let place = Place::new();
    // A directory on a filesystem of the test's own: where tests run may be an overlay, which
    // carries no other.
    let below = on(loop_file(place.path()), "ext4");
    if !can(test, &below, place.path()) {
        return;
    }
    let below = make(&below, &place).unwrap();
    let listed =
        || fs::read_dir(below.path()).unwrap().map(|f| f.unwrap().file_name()).collect::<Vec<_>>();
    let before = listed();

    let mut overlay = on(Backing::Directory(Some(below.path())), "overlay");
    overlay.filesystem.as_mut().unwrap().mount = vec!["metacopy=on".into()];
    overlay.device.read_ahead_kb = Some(64);
    if can(test, &overlay, place.path()) {
        let made = make(&overlay, &place).unwrap();
        let facts = made.facts(false).unwrap();
        let filesystem = facts.filesystem.unwrap();
        assert_eq!(filesystem.kind, "overlay");
        for option in ["noatime", "metacopy=on"] {
            assert!(filesystem.options.iter().any(|o| o == option), "{filesystem:?}");
        }
        assert_eq!(facts.settings, [("queue/read_ahead_kb".to_owned(), "64".to_owned())]);
        // Telemetry follows it down to the disk.
        let mounted = pgdyno_exec::mountinfo::mounted_at(&made.path()).unwrap().unwrap();
        assert!(mounted.device().unwrap().starts_with("loop"), "{mounted:?}");
        let directory = cluster_directory(&made.path()).unwrap();
        let cluster = start_server(directory.clone(), place.path(), &place.journal);
        let upper = made.path().parent().unwrap().join("upperdir");
        assert!(upper.join(directory.file_name().unwrap()).join("data/PG_VERSION").is_file());
        cluster.remove().unwrap();
        assert_eq!(made.take_down(), [""; 0]);
        assert_eq!(listed(), before);

        // What the kernel refuses is told in its words, and taken down.
        overlay.filesystem.as_mut().unwrap().mount = vec!["metacopy=perhaps".into()];
        let error = make(&overlay, &place).unwrap_err();
        assert!(
            matches!(error, StorageError::Make { ref left, .. } if left.is_empty()),
            "{error:?}"
        );
        assert_eq!(listed(), before);
    }
    // `none` is a directory as it is.
    let plain = on(Backing::Directory(Some(below.path())), "none");
    let stack = plan(&plain, place.path(), &Wipe::default()).unwrap();
    assert_eq!((stack.path(), stack.is_made()), (below.path(), false));
    assert_eq!(below.take_down(), [""; 0]);
    assert_nothing_left(&place);
}

/// Scheduler, requests, read-ahead of a queue in sysfs.
fn queue_of(queue: &Path) -> [String; 3] {
    ["scheduler", "nr_requests", "read_ahead_kb"]
        .map(|file| fs::read_to_string(queue.join(file)).unwrap())
}

#[test]
fn the_device_under_a_plain_directory_is_set_and_put_back_unless_somebody_else_set_it() {
    let place = Place::new();
    let below = on(loop_file(place.path()), "ext4");
    needs!(can, &below, place.path());
    let below = make(&below, &place).unwrap();
    let queue =
        Path::new("/sys/block").join(&below.facts(false).unwrap().devices[0].name).join("queue");
    let offered = fs::read_to_string(queue.join("scheduler")).unwrap();
    let other = offered.split_whitespace().find(|s| !s.starts_with('[')).map(str::to_owned);
    let before = queue_of(&queue);
    let settings = DeviceSettings {
        scheduler: other.clone(),
        nr_requests: Some(48),
        read_ahead_kb: Some(64),
        ..DeviceSettings::default()
    };
    let directory = Storage { device: settings, ..Storage::directory(Some(below.path())) };
    let made = make(&directory, &place).unwrap();
    assert_eq!(made.path(), below.path());
    let now = queue_of(&queue);
    assert!(
        now.iter()
            .zip(&before)
            .all(|(now, before)| now != before || (other.is_none() && now == &before[..])),
        "{now:?}"
    );
    assert_eq!(made.take_down(), [""; 0]);
    assert_eq!(queue_of(&queue), before);

    let made = make(&directory, &place).unwrap();
    fs::write(queue.join("read_ahead_kb"), "32").unwrap();
    let told = made.take_down();
    assert!(told.len() == 1 && told[0].contains("neither as it was"), "{told:?}");
    let [scheduler, requests, read_ahead] = queue_of(&queue);
    assert_eq!((&scheduler, &requests, read_ahead.trim()), (&before[0], &before[1], "32"));
    fs::write(queue.join("read_ahead_kb"), before[2].trim()).unwrap();
    drop(below);
    assert_nothing_left(&place);
}

#[test]
fn a_striped_volume_and_main_memory_are_made_and_dropped() {
    for (filesystem, members) in [("btrfs", 2), ("ext2", 1)] {
        let place = Place::new();
        let storage = match members {
            2 => striped(place.path(), filesystem),
            _ => on(Backing::Ram(Bytes(64 << 20)), filesystem),
        };
        let device = DeviceSettings { trim: true, ..DeviceSettings::default() };
        let storage = Storage { device, ..storage };
        needs!(can, &storage, place.path());
        let made = make(&storage, &place).unwrap();
        let facts = made.facts(false).unwrap();
        assert_eq!(
            (facts.devices.len(), facts.filesystem.unwrap().kind),
            (members, filesystem.to_owned())
        );
        fs::write(made.path().join("file"), "data").unwrap();
        made.trim().unwrap();
        drop(made);
        assert_nothing_left(&place);
    }
}

#[test]
fn what_the_device_does_not_take_is_an_error_and_nothing_stays() {
    let place = Place::new();
    let with = |device| Storage { device, ..on(loop_file(place.path()), "ext4") };
    let unknown =
        with(DeviceSettings { scheduler: Some("elevator".into()), ..DeviceSettings::default() });
    let words = |w: &[&str]| w.iter().map(|w| (*w).to_owned()).collect();
    let hook = Hook {
        set: words(&["true"]),
        read_back: words(&["echo", "WriteBack"]),
        expect: Some("WriteThrough".into()),
        restore: words(&["touch", place.path().join("restored").to_str().unwrap()]),
    };
    let hooked = with(DeviceSettings { hook: Some(hook), ..DeviceSettings::default() });
    needs!(can, &unknown, place.path());
    for (storage, told) in
        [(unknown, "queue/scheduler to elevator"), (hooked, "WriteThrough, and it shows WriteBack")]
    {
        let error = make(&storage, &place).unwrap_err();
        let StorageError::Make { source, left, .. } = &error else { panic!("{error:?}") };
        assert!(source.to_string().contains(told), "{source}");
        assert!(left.is_empty() && error.help().is_some(), "{error:?}");
        assert_eq!(traces(place.path()), [""; 0]);
    }
    fs::remove_file(place.path().join("restored")).unwrap();
    assert_nothing_left(&place);
}

#[test]
fn a_limit_holds_writes_down_and_is_lifted() {
    let place = Place::new();
    let limit = Limit { write_bps: Some(1 << 20), ..Limit::default() };
    let storage = Storage { limit: Some(limit), ..on(loop_file(place.path()), "ext4") };
    needs!(can, &storage, place.path());
    let made = match make(&storage, &place) {
        Ok(made) => made,
        Err(StorageError::Make { source, .. }) if matches!(*source, StepError::Setting(_)) => {
            return skip(test_name!(), &source.to_string());
        }
        Err(e) => panic!("{e:?}"),
    };
    let facts = made.facts(false).unwrap();
    let (name, value) = &facts.settings[0];
    assert!(name == "limit" && value.contains(&(1 << 20).to_string()), "{value}");
    let file = PathBuf::from(value.split(' ').next().unwrap());
    let number =
        fs::read_to_string(Path::new("/sys/block").join(&facts.devices[0].name).join("dev"))
            .unwrap();
    assert!(fs::read_to_string(&file).unwrap().contains(number.trim()));
    assert_eq!(made.take_down(), [""; 0]);
    assert!(
        !fs::read_to_string(&file)
            .unwrap()
            .lines()
            .any(|l| l.starts_with(&format!("{} ", number.trim())))
    );
    assert_nothing_left(&place);
}

#[test]
fn a_file_that_is_there_is_never_taken_for_an_image() {
    let place = Place::new();
    let path = place.path().join("image-0");
    fs::write(&path, "precious").unwrap();
    let file = pgdyno_exec::image::ImageFile { path: path.clone(), size: Bytes(4096) };
    let mut performing = ExecContext { journal: &place.journal, stop: &RUN, made: Vec::new() };
    let error = performing.execute(&Step::AllocateFile(file)).unwrap_err();
    assert!(error.to_string().contains("image-0"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
}

/// Runs only in the victim: performs the first steps of a stack, and waits to be killed.
#[test]
fn stack_victim() {
    let Ok(order) = std::env::var(VICTIM) else { return };
    let words: Vec<&str> = order.split('|').collect();
    let [root, storage, count] = words[..] else { panic!("{order}") };
    let root = Path::new(root);
    let journal = Journal::open(&root.join("state")).unwrap();
    let storage: Storage = serde_json::from_str(storage).unwrap();
    let stack = plan(&storage, root, &Wipe::default()).unwrap();
    let mut performing = ExecContext { journal: &journal, stop: &RUN, made: Vec::new() };
    let (steps, count) = (stack.steps(), count.parse().unwrap());
    for step in steps.iter().take(count) {
        performing.execute(step).unwrap();
    }
    let _cluster = (count > steps.len())
        .then(|| start_server(cluster_directory(&stack.path()).unwrap(), root, &journal));
    fs::write(root.join("state/ready"), "").unwrap();
    loop {
        std::thread::park();
    }
}

fn start_victim(place: &Place, storage: &Storage, steps: usize) -> Child {
    let storage = serde_json::to_string(storage).unwrap();
    let ready = place.path().join("state/ready");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "storage::stack_victim", "--nocapture"])
        .env(VICTIM, format!("{}|{storage}|{steps}", place.path().display()))
        .spawn()
        .unwrap();
    let until = Instant::now() + Duration::from_secs(120);
    while !ready.exists() {
        assert!(child.try_wait().unwrap().is_none(), "the victim ended before it was killed");
        assert!(Instant::now() < until, "the victim makes no progress");
        std::thread::sleep(Duration::from_millis(10));
    }
    fs::remove_file(ready).unwrap();
    child
}

#[test]
fn a_process_killed_after_any_step_leaves_nothing_that_the_next_does_not_remove() {
    let device = DeviceSettings { read_ahead_kb: Some(64), ..DeviceSettings::default() };
    let place = Place::new();
    let test = test_name!();
    let disk = EmulatedDisk { size: Bytes(400 << 20), ..EmulatedDisk::default() };
    for storage in [
        Storage { device: device.clone(), ..on(loop_file(place.path()), "ext4") },
        Storage { device, ..on(Backing::Emulated(disk), "ext4") },
        striped(place.path(), "btrfs"),
    ] {
        assert_removed_after(test, &place, &storage, |_| true);
    }
    let mounts = pgdyno_exec::mountinfo::mounts().unwrap();
    if pgdyno_exec::mountinfo::holding(&mounts, place.path()).unwrap().filesystem == "overlay" {
        return skip(test, "an overlay carries no other, and tests run on one");
    }
    let overlay = on(Backing::Directory(Some(place.path().to_owned())), "overlay");
    assert_removed_after(test, &place, &overlay, |_| true);
}

/// Kills a process that makes `storage` after its first step, the second and so on, as far as
/// `is_asked` says so of how many are left; the next start removes what it left.
pub(crate) fn assert_removed_after(
    test: &str,
    place: &Place,
    storage: &Storage,
    is_asked: impl Fn(usize) -> bool,
) {
    if !can(test, storage, place.path()) {
        return;
    }
    let steps = plan(storage, place.path(), &Wipe::default()).unwrap().steps();
    assert!(steps.len() > 5, "{}", steps.len());
    for count in (1..=steps.len()).filter(|count| is_asked(steps.len() - count)) {
        let mut victim = start_victim(place, storage, count);
        victim.kill().unwrap();
        victim.wait().unwrap();
        if matches!(steps[count - 1], Step::AttachLoop(_)) {
            // As if it had been killed between the attaching and the link.
            let home = place.journal.entries().unwrap()[0].made.path().to_owned();
            fs::remove_file(home.join("device-0")).unwrap();
        }
        assert!(!leftovers(&place.journal, &[place.path()]).unwrap().is_empty());
        let swept = sweep(&place.journal, &RUN).unwrap();
        let after = format!("after {}: {swept:?}", steps[count - 1]);
        let done =
            |o: &Outcome| matches!(o, Outcome::Removed { server_ended: None } | Outcome::PutBack);
        assert!(!swept.is_empty() && swept.iter().all(|s| done(&s.outcome)), "{after}");
        assert_eq!(traces(place.path()), [""; 0], "{after}");
        assert!(leftovers(&place.journal, &[place.path()]).unwrap().is_empty());
    }
    assert_nothing_left(place);
}

#[test]
fn a_server_on_a_stack_is_ended_before_the_stack_is_taken_down() {
    let place = Place::new();
    let storage = on(loop_file(place.path()), "xfs");
    needs!(can, &storage, place.path());
    let steps = plan(&storage, place.path(), &Wipe::default()).unwrap().steps();
    let mut victim = start_victim(&place, &storage, steps.len() + 1);
    assert_eq!(sweep(&place.journal, &RUN).unwrap(), [], "its owner lives");
    victim.kill().unwrap();
    victim.wait().unwrap();
    let swept = sweep(&place.journal, &RUN).unwrap();
    assert!(matches!(swept[0].outcome, Outcome::Removed { server_ended: Some(_) }), "{swept:?}");
    assert!(
        swept[1..].iter().all(|s| s.outcome == Outcome::Removed { server_ended: None }),
        "{swept:?}"
    );
    assert_nothing_left(&place);
}

#[test]
fn a_taking_down_that_was_cut_short_is_taken_up_again() {
    let place = Place::new();
    let storage = striped(place.path(), "btrfs");
    needs!(can, &storage, place.path());
    let undone =
        |step: &Step| matches!(step, Step::Undo(Undo::Unmount { .. } | Undo::DetachLoop { .. }));
    let all = plan(&storage, place.path(), &Wipe::default()).unwrap().take_down_steps();
    let count = all.iter().filter(|s| undone(s)).count();
    assert_eq!(count, 3);
    for done in 1..=count {
        let made = make(&storage, &place).unwrap();
        let mut performing = ExecContext { journal: &place.journal, stop: &RUN, made: Vec::new() };
        for step in made.stack().take_down_steps().iter().filter(|s| undone(s)).take(done) {
            performing.execute(step).unwrap();
        }
        assert_eq!(made.take_down(), [""; 0], "after {done}");
        assert_nothing_left(&place);
    }
}

#[test]
fn an_interrupted_making_leaves_nothing() {
    let place = Place::new();
    let storage = on(loop_file(place.path()), "ext4");
    needs!(can, &storage, place.path());
    let stop = AtomicBool::new(false);
    let stack = plan(&storage, place.path(), &Wipe::default()).unwrap();
    let image = stack.steps().into_iter().find_map(|s| match s {
        Step::AllocateFile(file) => Some(file.path),
        _ => None,
    });
    let image = image.unwrap();
    std::thread::scope(|scope| {
        let making = scope.spawn(|| stack.make(&server_account().unwrap(), &place.journal, &stop));
        while !image.exists() && !making.is_finished() {
            std::thread::yield_now();
        }
        stop.store(true, Ordering::Relaxed);
        // Either it was stopped, or it had come to its end already.
        if let Err(error) = making.join().unwrap() {
            let StorageError::Make { source, left, .. } = error else { panic!("{error:?}") };
            assert!(
                matches!(*source, StepError::Interrupted) && left.is_empty(),
                "{source} {left:?}"
            );
        }
    });
    assert_nothing_left(&place);
}
