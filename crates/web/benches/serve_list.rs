//! The list of a large store beside one plain query of its runs, in turn.
//!
//! `cargo bench -p pgdyno-web --bench serve_list -- [RUNS] [TURNS]`
//!
//! The store is made first, in memory where there is a file system for that. The ratios are of
//! `GET /api/runs` (query, notes, headlines, JSON and its way through a socket) to the query of the
//! table `run` alone: once for a list that the server has, once after something was written.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

mod support;

use std::io::Read as _;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use pgdyno_store::Store;
use pgdyno_test_support::records::Random;
use pgdyno_test_support::{Interval, synthetic};
use support::{get, serving};

/// Makes a store with `runs` completed runs of four trials.
fn make(path: &Path, runs: u64) {
    let mut store = Store::open(path).unwrap();
    let plan = synthetic::plan(&["a", "b"], 2, &mut Random(7));
    for number in 0..runs {
        synthetic::add(&mut store, (&format!("run-{number:05}"), number), &plan, |planned| {
            1000.0 + 500.0 * planned.treatment as f64 + f64::from(planned.block)
        });
    }
}

/// Returns the body of `GET /api/runs`.
fn list(address: SocketAddr) -> String {
    let mut answer = String::new();
    get(address, "/api/runs").read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    body.to_owned()
}

/// Reads every run by one plain query; returns how many there are.
fn plain_query(connection: &rusqlite::Connection) -> usize {
    let query = "SELECT id, recipe, question, started_at, trials_planned FROM run
                 ORDER BY started_at DESC";
    let mut statement = connection.prepare_cached(query).unwrap();
    let rows = statement.query_map([], |row| {
        Ok((
            row.get::<_, String>(0)?,
            row.get::<_, String>(1)?,
            row.get::<_, Option<String>>(2)?,
            row.get::<_, i64>(3)?,
            row.get::<_, i64>(4)?,
        ))
    });
    std::hint::black_box(rows.unwrap().collect::<Result<Vec<_>, _>>().unwrap()).len()
}

fn seconds<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let began = Instant::now();
    let result = work();
    (began.elapsed().as_secs_f64(), result)
}

fn measure(address: SocketAddr, store: &Path, runs: u64, turns: u32) {
    println!("first list, without headlines: {:.1} ms", 1e3 * seconds(|| list(address)).0);
    let (waited, ()) = seconds(|| {
        while !list(address).contains("\"pending\":0") {
            std::thread::sleep(Duration::from_secs(1));
        }
    });
    println!("headlines of all runs, in the background: {waited:.0} s");
    let connection = rusqlite::Connection::open(store).unwrap();
    let mut kept_store = Store::open(store).unwrap();
    let plan = synthetic::plan(&["a"], 1, &mut Random(1));
    let (mut known, mut changed, mut queries) = (Vec::new(), Vec::new(), Vec::new());
    for turn in 0..turns {
        let (plain, count) = seconds(|| plain_query(&connection));
        assert!(count as u64 >= runs);
        queries.push(plain);
        known.push(seconds(|| list(address)).0 / plain);
        let id = format!("new-{turn}");
        synthetic::add(&mut kept_store, (&id, runs + u64::from(turn)), &plan, |_| 1.0);
        let (time, body) = seconds(|| list(address));
        assert!(body.contains(&id), "the new run is listed");
        changed.push(time / plain);
    }
    queries.sort_by(f64::total_cmp);
    println!("plain query: {:.1} ms (median)", 1e3 * queries[queries.len() / 2]);
    println!("{turns} ratios, list to plain query: {}", Interval::bootstrap(&known));
    println!(
        "{turns} ratios, list after a new run to plain query: {}",
        Interval::bootstrap(&changed)
    );
}

fn main() {
    let numbers: Vec<u32> = std::env::args().filter_map(|a| a.parse().ok()).collect();
    let number = |n: usize, default: u32| numbers.get(n).copied().unwrap_or(default);
    let (runs, turns) = (u64::from(number(0, 10_000)), number(1, 21));
    let home = synthetic::folder();
    let store = home.path().join("store.sqlite3");
    println!("{runs} runs made in {:.0} s", seconds(|| make(&store, runs)).0);
    serving(&store, |address| measure(address, &store, runs, turns));
}
