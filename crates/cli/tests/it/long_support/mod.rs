//! Watchers of a long run, and what they and the run cost.
use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use serde_json::Value;

use crate::serve_support::{Events, Served};
use crate::support::{World, ask, elements};
use pgdyno_model::progress::Event;
use pgdyno_report::live::LiveRecord;

/// A second of load as a watcher receives it: place of its trial, whether it belongs to the
/// measured window, and its end since the phase's beginning (microseconds).
pub(crate) type Second = (u64, bool, u64);

/// Records that a watcher printed, added up.
#[derive(Default)]
pub(crate) struct Told {
    trial: u64,
    /// Every second, in the order in which they came.
    pub(crate) seconds: Vec<Second>,
    /// How the run ended.
    pub(crate) ended: Option<String>,
    /// Lines that are no records.
    pub(crate) messages: String,
}

impl Told {
    /// Adds a record up.
    pub(crate) fn add(&mut self, record: &Value) {
        match record["event"].as_str().unwrap() {
            "trial" => self.trial = record["ordinal"].as_u64().unwrap(),
            "second" => self.seconds.push(second(self.trial, record)),
            "ended" => self.ended = Some(record["state"].as_str().unwrap().to_owned()),
            _ => {}
        }
    }

    /// Adds what a state says of the trial in progress and was not told yet.
    fn catch_up(&mut self, state: &Value) {
        let current = &state["current"];
        let Some(trial) = current["ordinal"].as_u64() else { return };
        self.trial = trial;
        let known: HashSet<Second> = self.seconds.iter().copied().collect();
        let seconds = elements(&current["seconds"]).map(|s| second(trial, s));
        self.seconds.extend(seconds.filter(|second| !known.contains(second)));
    }
}

fn second(trial: u64, record: &Value) -> Second {
    let elapsed_us = (record["elapsed_s"].as_f64().unwrap() * 1e6).round() as u64;
    (trial, record["measuring"].as_bool().unwrap(), elapsed_us)
}

/// The seconds in a live file.
pub(crate) fn read_live_file(text: &str) -> Vec<Second> {
    let mut told = Told::default();
    for line in text.lines() {
        let event: Event = serde_json::from_str(line).unwrap();
        told.add(&serde_json::to_value(LiveRecord::new(&event)).unwrap());
    }
    told.seconds
}

/// A `pgdyno attach --progress json`.
pub(crate) struct Attach {
    child: Child,
    told: Arc<Mutex<Told>>,
    reader: JoinHandle<()>,
}

impl Attach {
    /// Attaches to `run`. The results go to the file `name` of the world.
    pub(crate) fn start(world: &World, run: &str, name: &str) -> Self {
        let mut command = world.command(&["attach", run, "--progress", "json"]);
        let results = File::create(world.path(name)).unwrap();
        let mut child = command.stdout(results).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let told = Arc::new(Mutex::new(Told::default()));
        let theirs = Arc::clone(&told);
        let reader = std::thread::spawn(move || {
            let mut line = String::new();
            // A watcher that is killed may leave half a line.
            while lines.read_line(&mut line).unwrap() > 0 && line.ends_with('\n') {
                let mut told = theirs.lock().unwrap();
                match line.starts_with('{') {
                    true => told.add(&serde_json::from_str(&line).unwrap()),
                    false => told.messages.push_str(&line),
                }
                drop(told);
                line.clear();
            }
        });
        Self { child, told, reader }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    /// How many seconds it told so far.
    pub(crate) fn seconds(&self) -> usize {
        self.told.lock().unwrap().seconds.len()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Kills it with SIGKILL, and returns the seconds that it told.
    pub(crate) fn kill(mut self) -> Vec<Second> {
        self.child.kill().unwrap();
        self.end().1.seconds
    }

    /// Waits for its end: its exit status, and what it told.
    pub(crate) fn end(mut self) -> (Option<i32>, Told) {
        let code = self.child.wait().unwrap().code();
        self.reader.join().unwrap();
        (code, std::mem::take(&mut self.told.lock().unwrap()))
    }
}

/// Watches `run` through a server until it ends: what it told, and how often it sent the state.
pub(crate) fn watch_through(served: &Served, run: &str) -> JoinHandle<(Told, u32)> {
    let mut events = Events::watch(served, run);
    std::thread::spawn(move || {
        let (mut told, mut states) = (Told::default(), 0);
        while told.ended.is_none() {
            match events.wait_for_event() {
                (name, state) if name == "state" => {
                    told.catch_up(&state);
                    states += 1;
                }
                (name, record) if name == "record" => told.add(&record),
                (name, _) => panic!("the run did not end: {name}"),
            }
        }
        (told, states)
    })
}

/// Figures of the run that were scraped.
#[derive(Default)]
pub(crate) struct Scrapes {
    /// Answers that were whole (count).
    pub(crate) answered: u64,
    /// Requests without an answer (count).
    pub(crate) missed: u64,
    /// Transactions of the last answer (count).
    pub(crate) transactions: f64,
}

impl Scrapes {
    /// Asks for the figures once, and checks that none goes back.
    pub(crate) fn scrape(&mut self, port: u16) {
        let Some(answer) = ask(port, "GET /metrics") else {
            self.missed += 1;
            return;
        };
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("# EOF\n"), "{answer}");
        // The last bucket of each treatment has all of its transactions.
        let last = |line: &&str| {
            line.starts_with("pgdyno_latency_seconds_bucket") && line.contains("le=\"+Inf\"")
        };
        let counts = answer.lines().filter(last).map(|line| line.rsplit(' ').next().unwrap());
        let transactions = counts.map(|count| count.parse::<f64>().unwrap());
        let transactions: f64 = transactions.sum();
        assert!(transactions >= self.transactions, "{transactions} < {}", self.transactions);
        (self.answered, self.transactions) = (self.answered + 1, transactions);
    }
}

/// Memory that a process has for itself (bytes): `RssAnon`. Pages of its program's file come and go
/// with what else the machine does.
pub(crate) struct Memory {
    pub(crate) name: &'static str,
    pid: i32,
    /// Once the first trial was stored.
    pub(crate) early: Option<u64>,
    /// When it was last seen.
    pub(crate) last: Option<u64>,
    /// At most so far.
    pub(crate) most: u64,
}

impl Memory {
    pub(crate) fn new(name: &'static str, pid: i32) -> Self {
        Self { name, pid, early: None, last: None, most: 0 }
    }

    /// Looks at the process. The first look at which `is_early_over` is the early one.
    pub(crate) fn look(&mut self, is_early_over: bool) {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid));
        let status = status.unwrap_or_default();
        // A process that has ended has no memory.
        let Some((_, rest)) = status.split_once("RssAnon:") else { return };
        let kib: u64 = rest.split_whitespace().next().unwrap().parse().unwrap();
        self.last = Some(kib * 1024);
        self.most = self.most.max(kib * 1024);
        if is_early_over && self.early.is_none() {
            self.early = self.last;
        }
    }

    /// Whether the process did not grow with time: from the first trial to the second, which is as
    /// long, by a quarter and by what buffers take. Within a trial it does:
    /// seconds and telemetry are in memory until the trial is stored.
    pub(crate) fn is_bounded(&self) -> bool {
        let (early, last) = (self.early.unwrap(), self.last.unwrap());
        last < early * 5 / 4 + 5_000_000
    }
}
