//! What watching costs the load: the same load with and without a live file that somebody reads, in
//! turn (A B, B A, …), on one server.
//!
//! `cargo bench -p pgdyno-lab --bench live_cost -- [PAIRS] [SECONDS] [CLIENTS]`

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pgdyno_engine::script::Script;
use pgdyno_engine::{LiveSecond, LoadObserver, LoadSpec, WeightedScript, run_load};
use pgdyno_exec::current_owner;
use pgdyno_lab::SessionEnd;
use pgdyno_lab::live::{Feed, Follower, load_second};
use pgdyno_lab::progress::{Event, Progress, Silent};
use pgdyno_model::PlannedTrial;
use pgdyno_model::experiment::{Length, Protocol};
use pgdyno_model::live::{LiveRun, LoadSecond};
use pgdyno_model::measurement::Measurement;
use pgdyno_model::units::{Epoch, Span};
use pgdyno_test_support::{Interval, Server};

static GO_ON: AtomicBool = AtomicBool::new(false);

/// Returns the record of a second, as a run writes it.
fn record(live: &LiveSecond) -> LoadSecond {
    let waits = vec![("IO:WalSync".into(), 1.0); LoadSecond::WAITS];
    load_second(live, waits, Duration::from_secs(1))
}

fn measure(
    server: &Server,
    on_second: &(dyn Fn(&LiveSecond) + Sync),
    spec: (u32, u32),
) -> Measurement {
    let (clients, seconds) = spec;
    let script = Arc::new(Script::parse("select", "SELECT 1;").unwrap());
    let spec = LoadSpec {
        clients: NonZeroU32::new(clients).unwrap(),
        protocol: Protocol::Prepared,
        warm_up: Duration::from_millis(500),
        length: Length::Duration(Span::from_secs(seconds.into())),
        ..LoadSpec::new(server.unix(), vec![WeightedScript { script, weight: 1 }])
    };
    let observer = LoadObserver { stop: &GO_ON, on_open: &|_| {}, on_second };
    run_load(&spec, &observer).unwrap()
}

/// Measures with a live file for `store`, read ten times a second.
fn watched(server: &Server, store: &Path, spec: (u32, u32)) -> Measurement {
    let planned = PlannedTrial { ordinal: 0, block: 1, treatment: 0, repeat: 1 };
    let run = LiveRun {
        schema: LiveRun::SCHEMA.into(),
        run: "bench".into(),
        recipe: "bench".into(),
        question: None,
        started_at: Epoch(0),
        owner: current_owner().unwrap(),
        treatments: vec!["all".into()],
        trials: vec![planned],
        done: Vec::new(),
        warm_up_s: 0.5,
        window_s: None,
        is_open_ended: false,
    };
    let feed = Feed::new(&Silent, store);
    feed.event(&Event::Begun { run: &run, trials: 1, store });
    let mut follower = Follower::open(store, "bench").unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut records = 0;
            while !is_over.load(Ordering::Relaxed) {
                records += follower.poll().unwrap().len();
                std::thread::sleep(Duration::from_millis(100));
            }
            records
        });
        let on_second = |live: &LiveSecond| feed.event(&Event::Load(&record(live)));
        let seen = measure(server, &on_second, spec);
        is_over.store(true, Ordering::Relaxed);
        assert!(watcher.join().unwrap() > 1, "the seconds were read");
        feed.end(SessionEnd::Completed, None);
        seen
    })
}

fn main() {
    let numbers: Vec<u32> = std::env::args().filter_map(|a| a.parse().ok()).collect();
    let number = |n: usize, default: u32| numbers.get(n).copied().unwrap_or(default);
    let (pairs, spec) = (number(0, 15), (number(2, 16), number(1, 3)));
    let home = tempfile::tempdir().unwrap();
    let store = home.path().join("store");
    std::fs::write(&store, "").unwrap();
    let server = Server::start();
    let (mut tps, mut cpu) = (Vec::new(), Vec::new());
    for pair in 0..pairs {
        let mut seen = [None, None];
        for turn in 0..2 {
            let with = (turn == 1) != (pair % 2 == 1);
            seen[usize::from(with)] = Some(match with {
                true => watched(&server, &store, spec),
                false => measure(&server, &|_| {}, spec),
            });
        }
        let [without, with] = seen.map(Option::unwrap);
        let cost = |m: &Measurement| m.generator_cpu_s / m.transactions as f64;
        tps.push(with.tps().unwrap() / without.tps().unwrap());
        cpu.push(cost(&with) / cost(&without));
        println!("pair {pair}: {:.0} tps without", without.tps().unwrap());
    }
    println!(
        "{pairs} ratios, watched to not: tps {}, generator's CPU a transaction {}",
        Interval::of(&tps),
        Interval::of(&cpu)
    );
}
