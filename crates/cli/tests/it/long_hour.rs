//! A run of an hour, from outside: without its terminal, watched by everything that watches, then
//! thinned, archived, imported and removed. `just long`; docs/long-runs.md keeps the last result.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::long_support::{Attach, Memory, Scrapes, Second, Told, read_live_file, watch_through};
use crate::serve_support::Served;
use crate::support::alike::assert_alike_but_for_thinning;
use crate::support::terminal::Terminal;
use crate::support::{World, docs, is_filled, read_json, signal};
use pgdyno_lab::live;
use pgdyno_model::units::Bytes;
use serde_json::Value;

/// Two treatments, each measured once. The rate leaves time to the machine: watching is what takes
/// an hour here, not the load. Telemetry is what an experiment gets that says nothing of it.
const EXPERIMENT: &str = r#"
[experiment]
question = "What latency does waiting for the disk at commit cost over a long time?"
repeats = 1

[factors]
synchronous_commit = ["on", "off"]
clients = [8]

[workload]
name = "tpcb-like"
scale = 10

[load]
warm_up = "5s"
protocol = "prepared"
rate = 300

[storage.disk]
"#;
/// Interval between two looks at the processes.
const LOOK_EVERY: Duration = Duration::from_secs(1);
const LOOKS_A_SCRAPE: u64 = 5;

/// A run without its terminal. A test that fails ends it.
struct Run {
    store: PathBuf,
    id: String,
    pid: i32,
    metrics: u16,
}

impl Run {
    fn is_alive(&self) -> bool {
        let runs = live::runs(&self.store).unwrap_or_default();
        runs.iter().any(|run| run.run == self.id && run.is_alive)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if self.is_alive() {
            signal(self.pid, "TERM");
        }
        let end = Instant::now() + Duration::from_secs(60);
        while self.is_alive() && Instant::now() < end {
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

/// Observations of a run while it worked.
struct Watch {
    /// Seconds of load that the store has (count).
    seconds: usize,
    /// Seconds of the live file that each watcher missed (count).
    missed: Vec<(&'static str, usize)>,
    states: u32,
    scrapes: Scrapes,
    live_bytes: u64,
    memory: Vec<Memory>,
}

/// A file before and after thinning (bytes).
type Sizes = [u64; 2];

#[test]
#[ignore = "long: an hour, `just long`"]
fn an_hour_is_watched_thinned_archived_and_removed() {
    let minutes = std::env::var("PGDYNO_LONG").map_or(60, |minutes| minutes.parse().unwrap());
    let window = Duration::from_secs(minutes * 60 / 2);
    let world = World::new();
    let run = begin(&world, window);
    let watch = watch(&world, &run, window);
    let sizes = keep(&world, &run.id);
    assert_nothing_left(&world);
    drop(run);
    let root = world.path("");
    drop(world);
    assert!(!root.exists());
    let text = tables(minutes, &watch, &sizes);
    println!("{text}");
    // A shorter run is for whoever changes this test.
    if minutes >= 60 {
        docs::write("long-runs.md", "hour", &text);
    }
    for memory in &watch.memory {
        assert!(memory.is_bounded(), "{} grew: {:?}, {:?}", memory.name, memory.early, memory.last);
    }
}

fn bytes(path: impl AsRef<Path>) -> u64 {
    fs::metadata(path).unwrap().len()
}

/// Starts the run in a shell on a terminal, and hangs the terminal up.
fn begin(world: &World, window: Duration) -> Run {
    let experiment = world.file("long.toml", EXPERIMENT).display().to_string();
    let (out, status) = (world.path("out"), world.path("status"));
    let disk = format!("storage.disk.directory={}", world.disk().display());
    let duration = format!("load.duration={}s", window.as_secs());
    let notify = format!("cat > '{}'", world.path("told.json").display());
    let args = ["run", &experiment, "--set", &disk, "--set", &duration, "--detach"];
    let args = [&args[..], &["--notify", &notify, "--metrics", "0"]].concat();
    // The shell stays, as a user's does, and a hangup ends it, also if this test ignores hangups.
    let script =
        format!("\"$@\" > '{0}' 2>&1; echo $? > '{1}'; read key", out.display(), status.display());
    let shell = ["setsid", "--ctty", "env", "--default-signal=HUP", "sh", "-c", &script, "sh"];
    let shell = world.wrapped(&shell, &args);
    let terminal = Terminal::start(shell, (80, 24), None);
    world.until("the run to be detached", || is_filled(&status));
    let out = fs::read_to_string(out).unwrap();
    assert_eq!(fs::read_to_string(status).unwrap(), "0\n", "{out}");
    let (id, rest) = out.strip_prefix("run ").unwrap().split_once(' ').unwrap();
    let (_, pid) = rest.split_once("as process ").unwrap();
    let pid = pid.lines().next().unwrap().parse().unwrap();
    let mut run = Run { store: world.store(), id: id.to_owned(), pid, metrics: 0 };
    assert_eq!(terminal.hang_up().signal(), Some(1), "it ends the shell");
    signal(pid, "HUP");
    let log = live::folder(&world.store()).join(format!("{id}.log"));
    let log = fs::read_to_string(log).unwrap();
    let (_, rest) = log.split_once("http://127.0.0.1:").unwrap();
    run.metrics = rest.split_once("/metrics").unwrap().0.parse().unwrap();
    run
}

/// Watches the run until it ends.
fn watch(world: &World, run: &Run, window: Duration) -> Watch {
    let served = Served::start(world, &world.store(), &[]);
    let through = watch_through(&served, &run.id);
    let mut attach = Attach::start(world, &run.id, "attach.txt");
    let mut memory = vec![
        Memory::new("run", run.pid),
        Memory::new("attach", attach.pid()),
        Memory::new("serve", served.pid()),
    ];
    // Two treatments: its end is the middle of the second.
    let middle = usize::try_from(window.as_secs() * 3 / 2).unwrap();
    // Each trial with its warm-up. The second has begun once its warm-up is told.
    let trial = usize::try_from(window.as_secs()).unwrap() + 5;
    let (early, load) = (trial + 5, 2 * trial);
    let mut first = Some(Attach::start(world, &run.id, "first.txt"));
    let (mut killed, mut second) = (Vec::new(), None);
    let mut scrapes = Scrapes::default();
    let end = Instant::now() + window * 2 + Duration::from_secs(15 * 60);
    for look in 0_u64.. {
        std::thread::sleep(LOOK_EVERY);
        assert!(Instant::now() < end, "the run does not end");
        // After the load `serve` reads the run for its headline.
        if attach.seconds() < load {
            memory.iter_mut().for_each(|memory| memory.look(attach.seconds() >= early));
        }
        if attach.has_ended() {
            break;
        }
        if look % LOOKS_A_SCRAPE == 0 {
            scrapes.scrape(run.metrics);
        }
        if let Some(watcher) = first.take_if(|watcher| watcher.seconds() >= middle) {
            killed = watcher.kill();
            second = Some(Attach::start(world, &run.id, "second.txt"));
        }
    }
    // In this order: one that ended early says why.
    let attached = [
        ("`attach`", ended(attach)),
        ("`attach` that began in the middle", ended(second.unwrap())),
    ];
    let (told, states) = through.join().unwrap();
    assert_eq!(served.end(), Some(0));
    world.until_gone(run.pid);
    let live = live::folder(&world.store()).join(format!("{}.jsonl", run.id));
    let text = fs::read_to_string(&live).unwrap();
    let all = read_live_file(&text);
    let told = attached.into_iter().chain([("`serve`", told)]);
    let mut missed: Vec<_> = told.map(|(name, told)| (name, missed(&all, &told))).collect();
    assert!(killed.len() >= middle, "{}", killed.len());
    let so_far = &all[..killed.len().min(all.len())];
    missed
        .push(("`attach` that was killed", so_far.iter().filter(|s| !killed.contains(s)).count()));
    assert_eq!(missed.iter().map(|(_, missed)| missed).sum::<usize>(), 0, "{missed:?}");
    // The last one may meet the end.
    assert!(scrapes.missed <= 1 && scrapes.transactions > 0.0, "{}", scrapes.missed);
    let seconds = assert_complete(world, run, &all, window);
    Watch { seconds, missed, states, scrapes, live_bytes: text.len() as u64, memory }
}

/// Ends a watcher that saw the run's end; returns the records that it printed.
fn ended(attach: Attach) -> Told {
    let (code, told) = attach.end();
    assert_eq!((code, told.ended.as_deref()), (Some(0), Some("completed")), "{}", told.messages);
    told
}

/// Returns how many of `all` seconds a watcher missed. Asserts that none came twice or out of
/// order.
fn missed(all: &[Second], told: &Told) -> usize {
    assert!(told.seconds.is_sorted_by(|a, b| a < b), "{:?}", told.seconds);
    all.iter().filter(|second| !told.seconds.contains(second)).count()
}

/// Asserts that the live file has every second of the store, and the notified command the outcome.
/// Returns how many seconds there are.
fn assert_complete(world: &World, run: &Run, all: &[Second], window: Duration) -> usize {
    let outcome = read_json(world.path("told.json"));
    assert_eq!(outcome["run"], run.id.as_str());
    assert_eq!((&outcome["state"], &outcome["exit_status"]), (&"completed".into(), &0.into()));
    let shown = world.show(&run.id);
    let trials = shown["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 2);
    for (ordinal, trial) in (0..).zip(trials) {
        let series = trial["series"].as_array().unwrap();
        assert_eq!(series.len() as u64, window.as_secs(), "{}", trial["failure"]);
        let live = all.iter().filter(|second| (second.0, second.1) == (ordinal, true));
        assert_eq!(live.count(), series.len(), "trial {ordinal}");
    }
    all.len()
}

/// Thins, archives, imports and removes the run: sizes of store, archive and report.
fn keep(world: &World, id: &str) -> Vec<(&'static str, Sizes)> {
    let before = world.show(id);
    let whole = keep_once(world, id, "whole");
    world.run(&["store", "thin", "--yes", id]).exits(0);
    let after = world.show(id);
    assert_eq!(before["headline"]["answer"], after["headline"]["answer"]);
    assert_eq!(before["treatments"], after["treatments"]);
    assert_alike_but_for_thinning(before, after);
    let thinned = keep_once(world, id, "thinned");
    assert!(thinned[0] < whole[0] && thinned[1] < whole[1], "{whole:?} {thinned:?}");
    world.run(&["rm", "--yes", id]).exits(0);
    assert_eq!(world.run(&["list", "--json"]).exits(0).json(), Value::Array(Vec::new()));
    world.run(&["verify"]).exits(0);
    ["store", "archive", "report"].into_iter().zip((0..3).map(|i| [whole[i], thinned[i]])).collect()
}

/// Archives the run, imports the archive into a store of its own, and makes a report. Returns sizes
/// of store, archive and report.
fn keep_once(world: &World, id: &str, name: &str) -> [u64; 3] {
    let path = |ending: &str| world.path(&format!("{name}.{ending}")).display().to_string();
    let (archive, other, report) = (path("pgdyno"), path("sqlite3"), path("html"));
    world.run(&["archive", id, &archive]).exits(0);
    world.run(&["import", &archive, "--store", &other]).exits(0);
    for store in [None, Some(&archive), Some(&other)] {
        let of = store.map_or(vec![], |store| vec!["--store", store]);
        world.run(&[&["verify"][..], &of].concat()).exits(0);
        assert_eq!(
            world.run(&[&["show", id, "--json"][..], &of].concat()).exits(0).json(),
            world.show(id)
        );
    }
    world.run(&["report", id, "-o", &report]).exits(0);
    let size = world.run(&["store", "size", "--json"]).exits(0).json();
    assert_eq!(size["bytes"].as_u64(), Some(bytes(world.store())));
    [bytes(world.store()), bytes(archive), bytes(report)]
}

/// Asserts that no process, mount, device or file of the run is left.
fn assert_nothing_left(world: &World) {
    world.assert_nothing_left();
    assert_eq!(world.traces(), Vec::<String>::new());
    let root: &str = &world.path("").display().to_string();
    for process in fs::read_dir("/proc").unwrap().flatten() {
        let environment = fs::read(process.path().join("environ")).unwrap_or_default();
        let is_ours = String::from_utf8_lossy(&environment).contains(root);
        assert!(!is_ours, "process {:?} is left", process.file_name());
    }
}

fn tables(minutes: u64, watch: &Watch, sizes: &[(&str, Sizes)]) -> String {
    let mut text = format!(
        "`just long {minutes}`, on {}: 2 treatments, {} seconds of load with warm-up.\n\n\
         | | |\n|---|---|\n",
        docs::date(),
        watch.seconds
    );
    for (name, missed) in &watch.missed {
        let _ = writeln!(text, "| seconds of load that {name} missed | {missed} |");
    }
    let Watch { states, scrapes, live_bytes, .. } = watch;
    let _ = writeln!(
        text,
        "| times that `serve` fell behind and sent the state again | {} |",
        states - 1
    );
    let _ = writeln!(text, "| scrapes of `--metrics` that were answered | {} |", scrapes.answered);
    let a_second = live_bytes / watch.seconds as u64;
    let _ =
        writeln!(text, "| live file | {}, {a_second} bytes a second of load |", Bytes(*live_bytes));
    text.push_str("\n| size | whole | thinned |\n|---|---|---|\n");
    for (name, [whole, thinned]) in sizes {
        let _ = writeln!(text, "| {name} | {} | {} |", Bytes(*whole), Bytes(*thinned));
    }
    text.push_str(
        "\n| memory of its own | after the first trial | at the end of the load | at most |\n\
         |---|---|---|---|\n",
    );
    for Memory { name, early, last, most, .. } in &watch.memory {
        let [early, end, most] = [early.unwrap(), last.unwrap(), *most].map(Bytes);
        let _ = writeln!(text, "| `{name}` | {early} | {end} | {most} |");
    }
    text
}
