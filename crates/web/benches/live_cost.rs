//! Cost of watching a load: it runs unwatched, with its live file, and watched through `serve`, in
//! turn, on one server.
//!
//! `cargo bench -p pgdyno-web --bench live_cost -- [ROUNDS] [SECONDS] [CLIENTS]`
//!
//! *Live file*: a record of every second is written. *Served*: two watchers read it from `serve` as
//! pages do, and one asks for the list of runs every second.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

mod support;

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pgdyno_engine::{LiveSecond, LoadObserver, LoadSpec, run_load};
use pgdyno_exec::process::current_owner;
use pgdyno_lab::live::{Feed, load_second};
use pgdyno_model::experiment::{Length, Protocol};
use pgdyno_model::live::LoadSecond;
use pgdyno_model::measurement::Measurement;
use pgdyno_model::progress::{Event, Progress, Silent};
use pgdyno_model::record::SessionEnd;
use pgdyno_model::units::Span;
use pgdyno_store::Store;
use pgdyno_test_support::load::spec;
use pgdyno_test_support::{Interval, Server, live_run};
use support::{get, serving};

/// The run that is watched.
const RUN: &str = "bench";

/// Watchers of the served run (count).
const WATCHERS: usize = 2;

static GO_ON: AtomicBool = AtomicBool::new(false);

/// How a load is watched.
#[derive(Clone, Copy)]
enum Watch {
    Not,
    File,
    Served,
}

const WATCHES: [Watch; 3] = [Watch::Not, Watch::File, Watch::Served];

/// The server of PostgreSQL, the store beside which the live file lies, and the load.
struct Bench {
    server: Server,
    clients: u32,
    seconds: u32,
}

impl Bench {
    fn measure(&self, on_second: &(dyn Fn(&LiveSecond) + Sync)) -> Measurement {
        let spec = LoadSpec {
            clients: NonZeroU32::new(self.clients).unwrap(),
            protocol: Protocol::Prepared,
            warm_up: Duration::from_millis(500),
            length: Length::Duration(Span::from_secs(self.seconds.into())),
            ..spec(self.server.unix(), "SELECT 1;")
        };
        let observer = LoadObserver { stop: &GO_ON, on_open: &|_| {}, on_second };
        run_load(&spec, &observer).unwrap()
    }

    /// Measures with a live file beside `store`, and `meanwhile` going on once it is there. Returns
    /// what both returned.
    fn watched<T: Send>(
        &self,
        store: &Path,
        meanwhile: impl FnOnce() -> T + Send,
    ) -> (Measurement, T) {
        let feed = Feed::new(&Silent, store);
        let run = live_run(RUN, current_owner().unwrap());
        feed.event(&Event::Begun { run, trials: 1, store: store.to_owned() });
        std::thread::scope(|scope| {
            let meanwhile = scope.spawn(meanwhile);
            let on_second = |live: &LiveSecond| feed.event(&Event::Load(record(live)));
            let seen = self.measure(&on_second);
            feed.end(SessionEnd::Completed, None);
            (seen, meanwhile.join().unwrap())
        })
    }

    fn run(&self, watch: Watch) -> Measurement {
        let home = tempfile::tempdir().unwrap();
        let store = home.path().join("store.sqlite3");
        drop(Store::open(&store).unwrap());
        match watch {
            Watch::Not => self.measure(&|_| {}),
            Watch::File => self.watched(&store, || ()).0,
            Watch::Served => serving(&store, |address| {
                let (seen, records) = self.watched(&store, || watch_from(address));
                assert!(records.iter().all(|records| *records > 1), "the seconds were read");
                seen
            }),
        }
    }
}

/// Returns the record of a second, as a run writes it.
fn record(live: &LiveSecond) -> LoadSecond {
    let waits = vec![("IO:WalSync".into(), 1.0); LoadSecond::WAITS];
    load_second(live, waits, Duration::from_secs(1))
}

/// Watches the run until its end. Returns how many records each watcher was sent.
fn watch_from(address: SocketAddr) -> [usize; WATCHERS] {
    let is_over = AtomicBool::new(false);
    let watch = || {
        let lines = BufReader::new(get(address, &format!("/api/live/{RUN}"))).lines();
        let mut lines = lines.map(Result::unwrap).inspect(|line| assert!(!line.contains(" 404 ")));
        let is_last = |line: &String| line.contains("\"event\":\"ended\"");
        lines.by_ref().take_while(|line| !is_last(line)).filter(|l| l == "event: record").count()
    };
    std::thread::scope(|scope| {
        let lists = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                get(address, "/api/runs").read_to_end(&mut Vec::new()).unwrap();
                std::thread::sleep(Duration::from_secs(1));
            }
        });
        let watchers = [(); WATCHERS].map(|()| scope.spawn(watch));
        let counts = watchers.map(|watcher| watcher.join().unwrap());
        is_over.store(true, Ordering::Relaxed);
        lists.join().unwrap();
        counts
    })
}

fn main() {
    let numbers: Vec<u32> = std::env::args().filter_map(|a| a.parse().ok()).collect();
    let number = |n: usize, default: u32| numbers.get(n).copied().unwrap_or(default);
    let rounds = number(0, 15);
    let bench = Bench { server: Server::start(), clients: number(2, 16), seconds: number(1, 3) };
    let cost = |m: &Measurement| m.generator_cpu_s / m.transactions as f64;
    let (mut tps, mut cpu) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for round in 0..rounds as usize {
        let mut seen = [const { None }; 3];
        for turn in 0..3 {
            // Each comes first, second and last equally often.
            let place = (round + turn) % 3;
            seen[place] = Some(bench.run(WATCHES[place]));
        }
        let [without, watched @ ..] = seen.map(Option::unwrap);
        for (place, with) in watched.iter().enumerate() {
            tps[place].push(with.tps().unwrap() / without.tps().unwrap());
            cpu[place].push(cost(with) / cost(&without));
        }
        println!("round {round}: {:.0} tps without", without.tps().unwrap());
    }
    for (place, name) in ["live file", "served"].into_iter().enumerate() {
        println!(
            "{rounds} ratios, {name} to unwatched: tps {}, generator's CPU a transaction {}",
            Interval::bootstrap(&tps[place]),
            Interval::bootstrap(&cpu[place])
        );
    }
}
