//! Live files: what watchers read, and what they do not follow.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use pgdyno_exec::current_owner;
use pgdyno_lab::live::{self, Feed, Follower, LiveError};
use pgdyno_model::facts::Owner;
use pgdyno_model::live::{LiveRun, LoadSecond};
use pgdyno_model::progress::{Activity, Event, Progress, Silent, Warning};
use pgdyno_model::record::SessionEnd;
use pgdyno_test_support::{live_run, needs};
use tempfile::TempDir;

struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("store"), "").unwrap();
        Self { folder }
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    fn live(&self, name: &str) -> PathBuf {
        live::folder(&self.store()).join(name)
    }
}

/// Returns the first event of `run`.
fn begun(run: LiveRun) -> Event {
    Event::Begun { run, trials: 1, store: "store".into() }
}

fn begin(feed: &Feed<'_>, id: &str) {
    feed.event(&begun(live_run(id, current_owner().unwrap())));
}

fn second(tps: f64) -> LoadSecond {
    LoadSecond { tps, ..LoadSecond::default() }
}

/// Keeps the warnings of a run.
#[derive(Default)]
struct Warnings(Mutex<Vec<Warning>>);

impl Progress for Warnings {
    fn event(&self, event: &Event) {
        if let Event::Warning(warning) = event {
            self.0.lock().unwrap().push(warning.clone());
        }
    }
}

#[test]
fn records_come_once_each_in_order_and_those_from_before_the_run_had_an_id_too() {
    let place = Place::new();
    let feed = Feed::new(&Silent, &place.store());
    feed.event(&Event::Working {
        activity: Activity::MakingStorage { storage: "disk".into() },
        share: None,
    });
    assert!(live::runs(&place.store()).unwrap().is_empty(), "there is no file before the id");
    begin(&feed, "try-1");
    let mut follower = Follower::open(&place.store(), "try-1").unwrap();
    let first = follower.poll().unwrap();
    assert!(matches!(&first[..], [Event::Begun { .. }, Event::Working { .. }]), "{first:?}");
    assert_eq!(follower.poll().unwrap(), []);
    feed.event(&Event::Load(second(7.0)));
    assert_eq!(follower.poll().unwrap(), [Event::Load(second(7.0))]);
    assert!(follower.is_alive());
    feed.end(SessionEnd::Completed, None);
    feed.event(&Event::Load(second(8.0)));
    let ended = Event::Ended { end: SessionEnd::Completed, error: None };
    assert_eq!(follower.poll().unwrap(), [ended], "nothing comes after the end");
    let found = live::find(&place.store(), "try").unwrap();
    assert_eq!(found.ended, Some((SessionEnd::Completed, None)));
}

#[test]
fn half_a_line_waits_for_its_end_and_foreign_lines_are_counted() {
    let place = Place::new();
    let feed = Feed::new(&Silent, &place.store());
    begin(&feed, "try-1");
    let mut follower = Follower::open(&place.store(), "try-1").unwrap();
    follower.poll().unwrap();
    let mut file = File::append(&place.live("try-1.jsonl"));
    file.put("no record\n{\"event\":\"unheard_of\"}\n{\"event\":\"sto");
    assert_eq!((follower.poll().unwrap(), follower.skipped()), (vec![], 2));
    file.put("pping\"}\n");
    assert_eq!(follower.poll().unwrap(), [Event::Stopping]);
    // Longer than any record: skipped whole, also where it comes in pieces.
    file.put(&"x".repeat(9 << 20));
    assert_eq!(follower.poll().unwrap(), []);
    file.put(&"x".repeat(9 << 20));
    file.put("\n{\"event\":\"stopping\"}\n");
    assert_eq!((follower.poll().unwrap(), follower.skipped()), (vec![Event::Stopping], 3));
}

struct File(fs::File);

impl File {
    fn append(path: &Path) -> Self {
        Self(fs::File::options().append(true).open(path).unwrap())
    }

    fn put(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).unwrap();
    }
}

#[test]
fn a_run_that_goes_on_begins_its_file_again_and_its_watchers_with_it() {
    let place = Place::new();
    let earlier = Feed::new(&Silent, &place.store());
    begin(&earlier, "try-1");
    let mut follower = Follower::open(&place.store(), "try-1").unwrap();
    follower.poll().unwrap();
    earlier.event(&Event::Load(second(1.0)));
    let resumed = Feed::new(&Silent, &place.store());
    begin(&resumed, "try-1");
    resumed.event(&Event::Load(second(2.0)));
    let records = follower.poll().unwrap();
    assert!(matches!(&records[..], [Event::Begun { .. }, Event::Load(s)] if s.tps == 2.0));
    fs::remove_file(place.live("try-1.jsonl")).unwrap();
    resumed.event(&Event::Load(second(3.0)));
    assert_eq!(follower.poll().unwrap(), [Event::Load(second(3.0))], "it is read to its end");
}

#[test]
fn a_link_or_a_foreign_file_in_a_live_files_place_is_not_read() {
    let place = Place::new();
    let feed = Feed::new(&Silent, &place.store());
    begin(&feed, "try-1");
    let precious = place.folder.path().join("precious");
    fs::copy(place.live("try-1.jsonl"), &precious).unwrap();
    let mut follower = Follower::open(&place.store(), "try-1").unwrap();
    fs::remove_file(place.live("try-1.jsonl")).unwrap();
    symlink(&precious, place.live("try-1.jsonl")).unwrap();
    assert!(follower.poll().is_err());
    assert!(Follower::open(&place.store(), "try-1").is_err());
    assert!(live::runs(&place.store()).unwrap().is_empty());
    fs::write(place.live("try-2.jsonl"), "something else\n").unwrap();
    assert!(Follower::open(&place.store(), "try-2").is_err());
    for name in ["../precious", "", ".try", "try/1"] {
        assert!(Follower::open(&place.store(), name).is_err(), "{name}");
    }
    // The next session of the run takes the link's place, and what it leads to stays.
    let before = fs::read(&precious).unwrap();
    begin(&Feed::new(&Silent, &place.store()), "try-1");
    assert!(fs::symlink_metadata(place.live("try-1.jsonl")).unwrap().is_file());
    assert_eq!(fs::read(&precious).unwrap(), before);
}

#[test]
fn files_of_dead_processes_go_with_the_next_run_and_no_others() {
    let place = Place::new();
    let alive = Feed::new(&Silent, &place.store());
    begin(&alive, "alive");
    let owner = Owner { started_ticks: 1, ..current_owner().unwrap() };
    let elsewhere = Owner { host: Some("another".into()), boot_id: "b".into(), ..owner.clone() };
    let elsewhere = begun(live_run("elsewhere", elsewhere));
    let elsewhere = serde_json::to_string(&elsewhere).unwrap();
    fs::write(place.live("elsewhere.jsonl"), format!("{elsewhere}\n")).unwrap();
    let mut earlier = serde_json::to_value(live_run("earlier", owner.clone())).unwrap();
    earlier["event"] = "begun".into();
    fs::write(place.live("earlier.jsonl"), format!("{earlier}\n")).unwrap();
    let error = Follower::open(&place.store(), "earlier").unwrap_err();
    assert!(matches!(error.cause(), Some(LiveError::OtherVersion { .. })), "{error}");
    let dead = serde_json::to_string(&begun(live_run("dead", owner))).unwrap();
    fs::write(place.live("dead.jsonl"), format!("{dead}\n")).unwrap();
    for name in ["dead.stop", "dead.log", "foreign.jsonl", "notes.txt"] {
        fs::write(place.live(name), "x").unwrap();
    }
    let found = live::find(&place.store(), "dead").unwrap();
    assert_eq!((found.is_alive, found.ended), (false, None));
    assert!(live::ask_to_stop(&place.store(), "dead").is_err());
    begin(&Feed::new(&Silent, &place.store()), "next");
    let mut left: Vec<String> = fs::read_dir(live::folder(&place.store()))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    let kept =
        ["alive.jsonl", "dead.log", "elsewhere.jsonl", "foreign.jsonl", "next.jsonl", "notes.txt"];
    assert_eq!(left, kept);
}

#[test]
fn a_run_of_another_machine_is_alive_while_its_file_is_held() {
    let place = Place::new();
    let feed = Feed::new(&Silent, &place.store());
    // Its pid is one that is alive here.
    let owner =
        Owner { host: Some("another".into()), boot_id: "b".into(), ..current_owner().unwrap() };
    feed.event(&begun(live_run("try-1", owner)));
    let follower = Follower::open(&place.store(), "try-1").unwrap();
    assert!(follower.is_alive() && live::find(&place.store(), "try-1").unwrap().is_alive);
    let refused = live::interrupt(&place.store(), "try-1").unwrap_err();
    assert!(refused.to_string().contains("another machine"), "{refused}");
    live::ask_to_stop(&place.store(), "try-1").unwrap();
    assert!(feed.is_asked_to_stop());
    drop(feed);
    assert!(!follower.is_alive() && !live::find(&place.store(), "try-1").unwrap().is_alive);
}

#[test]
fn a_request_to_stop_is_told_once_and_removed_at_the_end() {
    let place = Place::new();
    let feed = Feed::new(&Silent, &place.store());
    begin(&feed, "try-1");
    assert!(!feed.is_asked_to_stop());
    live::ask_to_stop(&place.store(), "try-1").unwrap();
    live::ask_to_stop(&place.store(), "try-1").unwrap();
    feed.event(&Event::Load(second(1.0)));
    feed.event(&Event::Load(second(2.0)));
    assert!(feed.is_asked_to_stop());
    let records = Follower::open(&place.store(), "try-1").unwrap().poll().unwrap();
    assert_eq!(records.iter().filter(|record| **record == Event::Stopping).count(), 1);
    feed.end(SessionEnd::Interrupted, None);
    assert!(!place.live("try-1.stop").exists());
    assert!(live::ask_to_stop(&place.store(), "try-1").is_err(), "it is over");
}

#[test]
fn a_folder_that_cannot_be_used_costs_one_warning() {
    let place = Place::new();
    fs::write(live::folder(&place.store()), "a file").unwrap();
    let warnings = Warnings::default();
    let store = place.store();
    let feed = Feed::new(&warnings, &store);
    begin(&feed, "try-1");
    feed.event(&Event::Load(second(1.0)));
    feed.end(SessionEnd::Completed, None);
    let warnings = warnings.0.into_inner().unwrap();
    assert!(matches!(&warnings[..], [Warning::NotWatchable { .. }]), "{warnings:?}");
    assert_eq!(fs::read_to_string(live::folder(&place.store())).unwrap(), "a file");
}

#[test]
fn a_folder_of_another_account_is_neither_written_nor_read() {
    needs!(pgdyno_test_support::is_root, "only root makes one");
    let place = Place::new();
    let folder = live::folder(&place.store());
    fs::create_dir(&folder).unwrap();
    chown(&folder, Some(65534), None).unwrap();
    let (warnings, store) = (Warnings::default(), place.store());
    begin(&Feed::new(&warnings, &store), "try-1");
    assert_eq!(warnings.0.into_inner().unwrap().len(), 1);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    assert!(live::runs(&place.store()).is_err());
    // One that others may enter is closed to them.
    chown(&folder, Some(0), None).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    begin(&Feed::new(&Silent, &store), "try-1");
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
}
