//! Crash tests beside known truths, in long series: `just crash-honest`, `just crash-truths`. They
//! write the tables of docs/crash-tests.md.

use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::{self, World, lying_server};
use serde_json::Value;

/// Required outcome of a series of rounds.
#[derive(Clone, Copy, PartialEq)]
enum Must {
    /// Every round passes.
    Pass,
    /// Every round passes but those in which a write of WAL failed. PostgreSQL may lose a cluster
    /// to that: docs/crash-tests.md.
    PassButForWalWrites,
    /// Every round passes, or loses no more than its settings allow.
    KeepTheBound,
    /// Most rounds fail: at least nine of ten.
    Fail,
    /// Every round loses something, within the bound of its settings or beyond it.
    Lose,
    /// About every second round fails: the fault has two kinds, and one loses nothing.
    FailEverySecond,
}

impl Must {
    fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::PassButForWalWrites => "pass, but for failed writes of WAL",
            Self::KeepTheBound => "bounded",
            Self::Fail => "FAIL",
            Self::Lose => "FAIL or bounded",
            Self::FailEverySecond => "FAIL, every second",
        }
    }

    fn holds(self, rounds: &[Value]) -> bool {
        let count = |is: &dyn Fn(&str) -> bool| {
            rounds.iter().filter(|round| is(round["verdict"].as_str().unwrap())).count()
        };
        let failed = count(&|verdict| verdict.starts_with("FAIL"));
        match self {
            Self::Pass => count(&|verdict| verdict == "pass") == rounds.len(),
            Self::PassButForWalWrites => rounds.iter().all(|round| {
                let is_of_wal =
                    || round["notes"][0].as_str().unwrap().starts_with("a write of WAL failed");
                let verdict = &round["verdict"];
                verdict == "pass" || (verdict == "FAIL (will not start)" && is_of_wal())
            }),
            Self::KeepTheBound => {
                count(&|verdict| ["pass", "bounded-loss"].contains(&verdict)) == rounds.len()
            }
            Self::Fail => failed * 10 >= rounds.len() * 9,
            Self::Lose => failed + count(&|verdict| verdict == "bounded-loss") == rounds.len(),
            Self::FailEverySecond => failed * 10 >= rounds.len() * 4,
        }
    }
}

/// A series of rounds.
struct Series {
    must: Must,
    options: String,
    rounds: u32,
    /// A folder of PGDATA whose files the server does not flush.
    unflushed: Option<&'static str>,
}

impl Series {
    fn new(must: Must, rounds: u32, options: impl Into<String>) -> Self {
        Self { must, options: options.into(), rounds, unflushed: None }
    }

    /// Plays the rounds: the session's JSON.
    fn shown(&self) -> Value {
        let world = World::new();
        let mut options = format!("--no-controls --rounds {} {}", self.rounds, self.options);
        if let Some(folder) = self.unflushed {
            let programs = lying_server::unflushing(&world, folder, 1);
            options += &format!(" --set postgres.bindir={}", programs.display());
        }
        world.crash(&options).json()
    }

    /// Plays the rounds: of each fault its rows of the table, and what was not as it must be.
    fn play(&self) -> (String, String) {
        let shown = self.shown();
        let (mut rows, mut broken) = (String::new(), String::new());
        for fault in shown["faults"].as_array().unwrap() {
            let each = fault["each"].as_array().unwrap();
            let _ = writeln!(rows, "{}", self.row(fault, each));
            if !self.must.holds(each) {
                let _ =
                    writeln!(broken, "{}: {}: {}", self.options, fault["fault"], fault["reason"]);
                for round in each.iter().filter(|round| round["verdict"] != "pass") {
                    let _ = writeln!(
                        broken,
                        "  {}: {} {}",
                        round["seed"], round["verdict"], round["reason"]
                    );
                }
            }
        }
        println!("{rows}{broken}");
        (rows, broken)
    }

    fn row(&self, fault: &Value, each: &[Value]) -> String {
        let sum = |key: &str| each.iter().filter_map(|round| round[key].as_u64()).sum::<u64>();
        let power =
            |key: &'static str| each.iter().filter_map(move |round| round["power"][key].as_u64());
        let at_stake = power("last_window").filter(|commits| *commits > 0).count();
        let oldest =
            each.iter().filter_map(|round| round["oldest_lost_ms"].as_f64()).reduce(f64::max);
        let mut verdicts: Vec<&str> =
            each.iter().map(|round| round["verdict"].as_str().unwrap()).collect();
        verdicts.sort_unstable();
        let mut counted = String::new();
        for same in verdicts.chunk_by(|a, b| a == b) {
            let comma = if counted.is_empty() { "" } else { ", " };
            let _ = write!(counted, "{comma}{} {}", same.len(), same[0]);
        }
        let unflushed =
            self.unflushed.map(|folder| format!(", no flush of `{folder}`")).unwrap_or_default();
        let faults = self.options.split(' ').skip_while(|word| *word != "--fault").nth(1).unwrap();
        let options = self.options.replace(faults, fault["fault"].as_str().unwrap());
        format!(
            "| {} | `{options}`{unflushed} | {} | {} | {} | {}{} | {} | {} |",
            self.must.name(),
            each.len(),
            power("checkpoints").sum::<u64>(),
            at_stake,
            sum("lost"),
            oldest.map(|ms| format!(", oldest {ms:.0} ms")).unwrap_or_default(),
            sum("acknowledged"),
            counted
        )
    }
}

/// Plays all series, and puts their table into docs/crash-tests.md between the marks of `name`.
fn table(name: &str, all: &[Series]) {
    let mut table = String::from(
        "| must | `pgdyno crash` | rounds | checkpoints | rounds with commits at stake | lost | \
         acknowledged | verdicts |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    let mut broken = String::new();
    // A part of them, for whoever looks for the cause of one row; then the table is printed and not
    // written.
    let only = std::env::var("PGDYNO_ONLY").unwrap_or_default();
    let chosen: Vec<&Series> = all.iter().filter(|s| s.options.contains(&only)).collect();
    // Two at a time: most of the time each waits for its load and its disks.
    let next = AtomicUsize::new(0);
    let played = Mutex::new(vec![(String::new(), String::new()); chosen.len()]);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(series) = chosen.get(at) else { break };
                    let rows = series.play();
                    played.lock().unwrap()[at] = rows;
                }
            });
        }
    });
    for (rows, not_so) in played.into_inner().unwrap() {
        table.push_str(&rows);
        broken.push_str(&not_so);
    }
    println!("{table}");
    if only.is_empty() {
        support::docs::write("crash-tests.md", name, &table);
    }
    assert!(broken.is_empty(), "not as it must be:\n{broken}");
}

#[test]
#[ignore = "long: half an hour, `just crash-honest`"]
fn honest_filesystems_raise_no_alarm() {
    let rounds: u32 = std::env::var("PGDYNO_ROUNDS").map_or(100, |rounds| rounds.parse().unwrap());
    let half = rounds.div_ceil(2);
    let mut all = Vec::new();
    for filesystem in ["ext4", "xfs", "btrfs"] {
        let disks: &[&str] = if filesystem == "btrfs" { &[""] } else { &["", " --emulated"] };
        for disk in disks {
            let options = format!("--fault power --filesystem {filesystem}{disk} --load 1s");
            let share = u32::try_from(disks.len()).unwrap();
            all.push(Series::new(Must::Pass, rounds.div_ceil(share), options.clone()));
            let asynchronous = format!("{options} --setting synchronous_commit=off");
            all.push(Series::new(Must::KeepTheBound, half.div_ceil(share), asynchronous));
        }
    }
    table("honest", &all);
}

#[test]
#[ignore = "long: half an hour, `just crash-truths`"]
fn what_is_planted_is_seen() {
    let mut all = Vec::new();
    for filesystem in ["ext4", "xfs", "btrfs"] {
        let mut add = |must, rounds, options: &str| {
            all.push(Series::new(
                must,
                rounds,
                format!("--filesystem {filesystem} --load 1s {options}"),
            ));
        };
        add(Must::Pass, 3, "--fault process --setting fsync=off");
        add(Must::Fail, 3, "--fault power --setting fsync=off");
        // btrfs writes back so often by itself that what is lost may lie within the bound.
        let must = if filesystem == "btrfs" { Must::Lose } else { Must::Fail };
        add(must, 3, "--fault power --setting fsync=off --setting synchronous_commit=off");
        add(Must::Fail, 3, "--fault emulated-lie");
        add(Must::Fail, 3, "--fault emulated-lie --setting synchronous_commit=off");
        let slow = "--fault power --emulated --setting synchronous_commit=off \
            --setting wal_writer_delay=1ms --set storage.disk.backing.emulated.flush=5ms";
        add(Must::KeepTheBound, 4, slow);
        // Copy on write has no page that could tear.
        let in_place = if filesystem == "btrfs" { " --mount nodatacow" } else { "" };
        add(
            Must::Fail,
            20,
            &format!("--fault torn-write --setting full_page_writes=off{in_place}"),
        );
        // Writes and flushes of data pages take turns.
        add(
            Must::FailEverySecond,
            12,
            "--fault io-error --under data --setting data_sync_retry=on",
        );
        add(Must::PassButForWalWrites, 4, "--fault io-error");
        add(Must::Pass, 4, "--fault process,immediate,backend,torn-write,disk-full");
    }
    for options in [
        "--fault power --filesystem ext4 --load 1s --mount barrier=0",
        "--fault power --filesystem btrfs --load 1s --mount nobarrier",
        "--fault emulated-lie --filesystem ext4 --load 1s --under wal",
        "--fault emulated-lie --filesystem ext4 --load 1s --under data",
    ] {
        all.push(Series::new(Must::Fail, 4, options));
    }
    for under in ["data", "wal"] {
        let options = format!("--fault disk-full --filesystem xfs --load 1s --under {under}");
        all.push(Series::new(Must::Pass, 4, options));
    }
    for folder in ["/data/pg_wal", "/data/base/", "/data/pg_xact", "/data/global/"] {
        let series = Series::new(Must::Fail, 4, "--fault power --filesystem ext4 --load 1s");
        all.push(Series { unflushed: Some(folder), ..series });
    }
    table("planted", &all);
}

#[test]
#[ignore = "long: ten minutes, `just crash-power`"]
fn a_disk_that_skips_one_flush_in_k_is_seen_as_often_as_the_power_line_says() {
    let rounds: u32 = std::env::var("PGDYNO_ROUNDS").map_or(40, |rounds| rounds.parse().unwrap());
    let mut table = String::from(
        "| skips 1 flush in | rounds | with commits at stake | failed | of these expected | \
         standard error |\n\
         |---|---|---|---|---|---|\n",
    );
    let mut broken = String::new();
    for k in [1, 2, 4, 10] {
        let share = 1.0 / f64::from(k);
        let options =
            format!("--fault emulated-lie --filesystem ext4 --load 500ms --set crash.lie={share}");
        let shown = Series::new(Must::Fail, rounds, options).shown();
        let each = shown["faults"][0]["each"].as_array().unwrap();
        let is_at_stake =
            |round: &&Value| round["power"]["last_window"].as_u64().is_some_and(|n| n > 0);
        let at_stake: Vec<&Value> = each.iter().filter(is_at_stake).collect();
        let has_failed = |round: &&&Value| round["verdict"].as_str().unwrap().starts_with("FAIL");
        let failed = u32::try_from(at_stake.iter().filter(has_failed).count()).unwrap();
        let chances =
            || at_stake.iter().map(|round| round["power"]["cache_lost"].as_f64().unwrap() * share);
        let (expected, variance) =
            (chances().sum::<f64>(), chances().map(|p| p * (1.0 - p)).sum::<f64>());
        let (at_stake, seen, error) = (at_stake.len(), f64::from(failed), variance.sqrt());
        let _ = writeln!(
            table,
            "| {k} | {rounds} | {at_stake} | {failed} | {expected:.1} | {error:.1} |"
        );
        // The promise is a lower bound: what an earlier flush skipped may show too.
        if seen < expected - 3.0 * error.max(1.0) {
            let _ =
                writeln!(broken, "1 in {k}: {failed} of {at_stake} failed, {expected:.1} expected");
        }
    }
    println!("{table}");
    support::docs::write("crash-tests.md", "power", &table);
    assert!(broken.is_empty(), "not as it must be:\n{broken}");
}
