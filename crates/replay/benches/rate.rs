//! Rate of a replay, and the CPU time that it takes: a log of `SELECT 1` is read, then replayed
//! when due and as fast as possible, by each protocol, on one server.
//!
//! `cargo bench -p pgdyno-replay --bench rate -- [STATEMENTS] [SESSIONS] [STATEMENTS/S]`

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use pgdyno_model::target::Address;
use pgdyno_replay::{
    ConnectOptions, ReadOptions, Recording, ReplayOptions, ReplayReport, Speed, replay,
};
use pgdyno_test_support::{Scratch, Server};

/// A log in the making.
struct Log {
    statements: u64,
    sessions: u64,
    /// Statements a second.
    rate: u64,
}

impl Log {
    /// Renders records of csvlog that say `message` with `detail`.
    fn render(&self, message: &str, detail: &str) -> String {
        let mut text = String::new();
        for n in 0..self.statements {
            let us = n * 1_000_000 / self.rate;
            let (minute, second, ms) = (us / 60_000_000, us / 1_000_000 % 60, us / 1_000 % 1_000);
            let (session, number) = (n % self.sessions, n / self.sessions + 1);
            let _ = writeln!(
                text,
                "2026-11-30 22:{minute:02}:{second:02}.{ms:03} UTC,\"postgres\",\"postgres\",1,\
                 \"[local]\",6b0df4fd.{session:x},{number},\"idle\",2026-11-30 22:00:00 UTC,3/1,0,\
                 LOG,00000,\"{message}\",\"{detail}\",,,,,,,,\"bench\",\"client backend\",,0"
            );
        }
        text
    }
}

fn main() {
    let mut numbers = std::env::args().filter_map(|argument| argument.parse().ok());
    let mut next = |default| numbers.next().unwrap_or(default);
    let log = Log { statements: next(200_000), sessions: next(16), rate: next(20_000) };
    println!("{} statements, {} sessions, {}/s", log.statements, log.sessions, log.rate);
    let (server, folder) = (Server::start(), Scratch::in_memory());
    let target = server.unix();
    let Address::Unix { directory, port } = &target.address else { panic!("{target:?}") };
    let dsn = format!("host={} port={port} user={}", directory.display(), target.user);
    let connect = ConnectOptions { dsn_or_dbname: Some(dsn), ..ConnectOptions::default() };
    println!(
        "{:<44}{:>12}{:>12}{:>12}{:>12}",
        "", "statements/s", "CPU µs each", "lag p99 ms", "max"
    );
    for (protocol, message, detail) in [
        ("simple", "statement: SELECT 1", ""),
        ("extended", "execute <unnamed>: SELECT $1::int", "parameters: $1 = '1'"),
        ("prepared", "execute s: SELECT $1::int", "parameters: $1 = '1'"),
    ] {
        let path = folder.path().join(format!("{protocol}.csv"));
        let recording = read(&log, path, message, detail);
        for (way, speed) in [("when due", Speed::Factor(1.0)), ("as fast as possible", Speed::Max)]
        {
            let options = ReplayOptions { speed, ..ReplayOptions::default() };
            let stop = AtomicBool::new(false);
            let report = replay(&recording, &connect, &options, &stop, &mut |_| {}).unwrap();
            print(&format!("{protocol}, {way}"), &report);
        }
    }
}

fn read(log: &Log, path: PathBuf, message: &str, detail: &str) -> Recording {
    std::fs::write(&path, log.render(message, detail)).unwrap();
    let size = std::fs::metadata(&path).unwrap().len();
    let (begun, before) = (Instant::now(), resident_kb());
    let recording = Recording::read(&[path], &ReadOptions::default()).unwrap();
    let took = begun.elapsed().as_secs_f64();
    println!(
        "read {:.0} MB in {took:.2} s, {:.0} records/s; {:.0} bytes of memory a statement",
        size as f64 / 1e6,
        log.statements as f64 / took,
        (resident_kb() - before) * 1024.0 / log.statements as f64
    );
    recording
}

/// Returns the resident set of this process (kB).
fn resident_kb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

fn print(what: &str, report: &ReplayReport) {
    assert_eq!((report.unanswered, report.unsent, report.new_errors()), (0, 0, 0), "{report:?}");
    let lag = report.lag.unwrap();
    println!(
        "{what:<44}{:>12.0}{:>12.2}{:>12.2}{:>12.2}",
        report.statements as f64 / report.elapsed_s,
        report.client_cpu_s * 1e6 / report.statements as f64,
        lag.p99_ms,
        lag.max_ms
    );
}
