//! Costs of the coordinator with a thousand workers of a thousand clients each.
//!
//! Not run by default: `just thousand-generators` prints the figures of docs/generators.md.

use std::time::{Duration, Instant};

use crate::common::{Recorded, load, reports};
use pgdyno_engine::schedule::Moment;
use pgdyno_generators::coordinator::{Coordinator, CoordinatorAction};
use pgdyno_generators::protocol::{Hello, Order, Report, frame};
use pgdyno_generators::{Generators, Limits};

const WORKERS: u32 = 1_000;
const CLIENTS: u32 = 1_000;
const SECONDS: u64 = 5;
const SECOND: u64 = 1_000_000_000;

/// Ten transactions a second of each client, latencies from 1 to 90 ms.
fn stream() -> Vec<Recorded> {
    let mut all = Vec::new();
    for client in 0..CLIENTS {
        for n in 0..SECONDS * 10 {
            let drawn = (u64::from(client) * 7_919 + n * 104_729) % 1_000;
            let took = 1_000_000 + drawn * drawn * 89;
            let due = n * (SECOND / 10) + u64::from(client) * 1_000;
            let script = (n % 2) as usize;
            let (is_torn, is_failed) = (false, false);
            all.push(Recorded { client, script, due, lag: 0, took, is_torn, is_failed });
        }
    }
    all
}

#[test]
#[ignore = "long: a million simulated clients"]
fn a_thousand_workers_with_a_thousand_clients() {
    let spec = load(WORKERS * CLIENTS, WORKERS, Duration::ZERO, SECONDS);
    let generators: Generators = format!("local:{WORKERS}").parse().unwrap();
    let (_, shares) = generators.deal(spec.clients.get(), spec.threads.get()).unwrap();
    let named = shares.into_iter().enumerate().map(|(n, share)| (format!("gen{n}"), share));
    let mut coordinator = Coordinator::new(&spec, named.collect(), Limits::default(), 0);
    let mut now = 0;
    let mut go = None;
    // Hello, the exchanges, and ready, all without delay.
    let mut pending: Vec<(usize, Report)> =
        (0..WORKERS as usize).map(|worker| (worker, Report::Hello(Hello::ours()))).collect();
    while go.is_none() {
        for (worker, report) in std::mem::take(&mut pending) {
            coordinator.receive(worker, report, now);
        }
        while let Some(action) = coordinator.next_action() {
            let CoordinatorAction::Send(worker, order) = action else { continue };
            match order {
                Order::Time(sent) => {
                    let (received, replied) = (now, now);
                    pending.push((worker, Report::Time { sent, received, replied }));
                }
                Order::Prepare(_) => pending.push((worker, Report::Ready)),
                Order::Go { at } => go = Some(at),
                Order::Route(_) | Order::Stop => panic!("stopped"),
            }
        }
    }
    now = go.unwrap();
    for worker in 0..WORKERS as usize {
        coordinator.receive(worker, Report::Started { at: now }, now);
    }
    let (seconds, done) = reports(&spec, Moment(0), &stream(), None);
    let (mut bytes, mut spent, count) = (0, Duration::ZERO, seconds.len());
    for (number, counts) in (0..).zip(seconds) {
        let mut written = Vec::new();
        frame::write(&mut written, &Report::Second { number, counts: Box::new(counts) }).unwrap();
        let began = Instant::now();
        for worker in 0..WORKERS as usize {
            let report = frame::read(&mut &written[..]).unwrap().unwrap();
            coordinator.receive(worker, report, now);
        }
        while coordinator.next_action().is_some() {}
        spent += began.elapsed();
        bytes += written.len() * WORKERS as usize;
    }
    for worker in 0..WORKERS as usize {
        coordinator.receive(worker, Report::Done(Box::new(done.clone())), now);
    }
    assert!(coordinator.is_over());
    let m = coordinator.finish(&spec).unwrap();
    let all = m.transactions + m.counters.drained_transactions;
    assert_eq!(all, u64::from(WORKERS * CLIENTS) * SECONDS * 10);
    let per = |total: f64| total / count as f64;
    println!(
        "each second: {:.1} MB, {:.2} s of CPU, for {} transactions",
        per(bytes as f64 / 1e6),
        per(spent.as_secs_f64()),
        all / SECONDS
    );
}
