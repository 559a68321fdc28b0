//! `pgdyno serve` while runs work: what watchers are sent, and who may stop a run.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use crate::serve_support::{self, Events, Served};
use crate::support::World;
use pgdyno_lab::live::{self, Feed};
use pgdyno_model::facts::Owner;
use pgdyno_model::progress::{Activity, Event, Notice, Progress as _, Silent};
use pgdyno_store::Store;
use pgdyno_test_support::live_run;
use serde_json::Value;

const RUN: &str = "live-run";

/// A run in progress whose process is this test's to end.
struct Working {
    store: PathBuf,
    process: Child,
    file: File,
}

impl Working {
    fn begin(world: &World) -> Self {
        let store = world.path("store.sqlite3");
        drop(Store::open(&store).unwrap());
        let process = Command::new("sleep").arg("600").spawn().unwrap();
        let run = live_run(RUN, owner(&process));
        Feed::new(&Silent, &store).event(&Event::Begun { run, trials: 1, store: store.clone() });
        let path = live::folder(&store).join(format!("{RUN}.jsonl"));
        let file = OpenOptions::new().append(true).open(path).unwrap();
        Self { store, process, file }
    }

    fn write(&mut self, event: &Event) {
        let line = serde_json::to_string(event).unwrap();
        self.file.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn note(&mut self, text: &str) {
        self.write(&Event::Note(Notice::Script(text.to_owned())));
    }

    /// Ends the process as the kernel does when memory runs out.
    fn die(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn owner(process: &Child) -> Owner {
    let pid = i32::try_from(process.id()).unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // The second field, a name in parentheses, may hold spaces.
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let started_ticks = fields.split(' ').nth(19).unwrap().parse().unwrap();
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    Owner { pid, started_ticks, boot_id: boot_id.trim().to_owned(), host: None }
}

fn stop(served: &Served, run: &str) -> serve_support::Answer {
    let host = format!("Host: {}\r\n", served.address);
    served.send(&format!("POST /api/live/{run}/stop"), &host, "")
}

/// Whether somebody asked the run to stop.
fn is_asked(store: &Path) -> bool {
    live::folder(store).join(format!("{RUN}.stop")).exists()
}

#[test]
fn watchers_of_two_servers_are_sent_the_state_and_every_record_until_the_process_dies() {
    let world = World::new();
    let mut run = Working::begin(&world);
    run.note("before anybody watches");
    let servers = [(); 2].map(|()| Served::start(&world, &run.store, &[]));
    let mut watchers = servers.each_ref().map(|served| Events::watch(served, RUN));
    for watcher in &mut watchers {
        let (name, state) = watcher.wait_for_event();
        assert_eq!(name, "state");
        assert_eq!(state["run"]["run"], RUN);
        assert_eq!(state["messages"][0], "before anybody watches");
        assert_eq!(state["has_died"], false);
    }
    let row = |served: &Served| served.document("/api/live")["runs"][0].clone();
    assert_eq!(row(&servers[0])["is_alive"], true);
    for number in 0..3 {
        run.note(&format!("note {number} </script><img src=x onerror=alert(1)>"));
    }
    for watcher in &mut watchers {
        for number in 0..3 {
            let (name, record) = watcher.wait_for_event();
            assert_eq!((name.as_str(), &record["event"]), ("record", &Value::from("note")));
            let text = record["text"].as_str().unwrap();
            assert!(text.starts_with(&format!("note {number} </script>")), "{text}");
        }
    }
    run.note("the last words");
    run.die();
    for watcher in &mut watchers {
        assert_eq!(watcher.wait_for_event().1["text"], "the last words");
        assert_eq!(watcher.wait_for_event().0, "died");
    }
    let mut late = Events::watch(&servers[0], RUN);
    let (name, state) = late.wait_for_event();
    assert_eq!((name.as_str(), &state["has_died"]), ("state", &Value::from(true)));
    assert_eq!(late.wait_for_event().0, "died");
    assert_eq!(row(&servers[1])["is_alive"], false);
    for served in servers {
        assert_eq!(served.end(), Some(0), "also while somebody watches");
    }
    assert!(watchers.iter_mut().all(Events::is_over));
}

#[test]
fn a_watcher_that_reads_nothing_holds_up_nobody_and_gets_the_state_again() {
    let world = World::new();
    let mut run = Working::begin(&world);
    let served = Served::start(&world, &run.store, &[]);
    let mut slow = Events::watch(&served, RUN);
    let mut quick = Events::watch(&served, RUN);
    assert_eq!(quick.wait_for_event().0, "state");
    // More than both ends of a connection keep.
    let detail = "x".repeat(4000);
    let last = 8000;
    for number in 0..=last {
        let activity = Activity::MakingStorage { storage: format!("{number}:{detail}") };
        run.write(&Event::Working { activity, share: None });
    }
    let is_last = |event: &Value| {
        let work = event["what"].as_str().or_else(|| event["working"][0].as_str());
        work.is_some_and(|work| work.split([' ', ':']).nth(2) == Some(&last.to_string()))
    };
    while !is_last(&quick.wait_for_event().1) {}
    assert_eq!(served.get("/api/live").status, 200);
    assert_eq!(slow.wait_for_event().0, "state");
    let mut states = 0;
    loop {
        let (name, event) = slow.wait_for_event();
        states += usize::from(name == "state");
        if is_last(&event) {
            break;
        }
    }
    assert!(states > 0, "it was sent every record: it was not slow enough");
    assert_eq!(served.end(), Some(0));
}

#[test]
fn a_run_is_asked_to_stop_only_where_that_is_allowed() {
    let world = World::new();
    let mut run = Working::begin(&world);
    let shows = Served::start(&world, &run.store, &[]);
    assert_eq!(shows.document("/api/info")["allows_control"], false);
    let answer = stop(&shows, RUN);
    assert_eq!(answer.status, 403);
    assert!(answer.error().1.unwrap().contains("--allow-control"));
    assert!(!is_asked(&run.store));
    let controls = Served::start(&world, &run.store, &["--allow-control"]);
    assert_eq!(stop(&controls, "no-run").status, 404);
    assert!(!is_asked(&run.store));
    let foreign = format!("Host: {}\r\nOrigin: http://evil.example\r\n", controls.address);
    let path = format!("POST /api/live/{RUN}/stop");
    assert_eq!(controls.send(&path, &foreign, "").status, 403);
    assert!(!is_asked(&run.store));
    let answer = stop(&controls, RUN);
    assert_eq!(answer.status, 202, "{}", answer.body);
    assert!(is_asked(&run.store));
    run.die();
    let answer = stop(&controls, RUN);
    assert_eq!(answer.status, 409, "{}", answer.body);
    assert!(answer.error().1.is_some());
    assert_eq!(controls.get("/api/live/no-run").status, 404);
}
