//! Measures what a ledger costs the load: the same script with and without one, in turn (A B, B A,
//! …), on one server.
//!
//! `cargo bench -p pgdyno-lab --bench ledger_cost -- [ROUNDS] [SECONDS] [CLIENTS]`

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pgdyno_engine::ledger::{Ledger, MappedLedger};
use pgdyno_engine::script::{Script, Value};
use pgdyno_engine::{LoadObserver, LoadSpec, WeightedScript, run_load};
use pgdyno_exec::journal::Journal;
use pgdyno_model::experiment::Length;
use pgdyno_model::measurement::Measurement;
use pgdyno_model::units::Span;
use pgdyno_postgres::cluster::cluster_directory;
use pgdyno_postgres::{Cluster, ClusterSpec, find};

const SCRIPT: &str = include_str!("../../src/workload/tpcb_like.sql");
const TABLES: &str = "CREATE TABLE pgbench_accounts (aid int PRIMARY KEY, bid int, \
        abalance int NOT NULL DEFAULT 0, filler char(84));
    CREATE TABLE pgbench_tellers (tid int PRIMARY KEY, bid int, \
        tbalance int NOT NULL DEFAULT 0, filler char(84));
    CREATE TABLE pgbench_branches (bid int PRIMARY KEY, bbalance int NOT NULL DEFAULT 0, \
        filler char(88));
    CREATE TABLE pgdyno_token (client int NOT NULL, sequence bigint NOT NULL, \
        aid int NOT NULL, tid int NOT NULL,
        bid int NOT NULL, delta int NOT NULL, number bigserial, \
        begun timestamp NOT NULL DEFAULT now(),
        PRIMARY KEY (client, sequence));
    INSERT INTO pgbench_accounts SELECT n, 1 + (n - 1) / 100000, 0, '' \
        FROM generate_series(1, 800000) n;
    INSERT INTO pgbench_tellers SELECT n, 1 + (n - 1) / 10, 0, '' FROM generate_series(1, 80) n;
    INSERT INTO pgbench_branches SELECT n, 0, '' FROM generate_series(1, 8) n";

static GO_ON: AtomicBool = AtomicBool::new(false);

/// Starts a server in `home` with the tables of the ledger's script.
fn start_server(home: &Path) -> Cluster {
    std::fs::set_permissions(home, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let journal = Journal::open(&home.join("state")).unwrap();
    let install = find(None, None).unwrap().expect("PostgreSQL is installed");
    let mut spec = ClusterSpec::new(install, cluster_directory(home).unwrap()).unwrap();
    // Commits that wait for nothing: the generator's own cost weighs most.
    let settings = [
        ("fsync", "off"),
        ("synchronous_commit", "off"),
        ("max_wal_size", "8GB"),
        ("autovacuum", "off"),
    ];
    spec.settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let mut cluster = Cluster::create(spec, &journal, &GO_ON).unwrap();
    cluster.start(&GO_ON).unwrap();
    let mut control = cluster.control("postgres").unwrap();
    control.batch_execute(TABLES).unwrap();
    control.batch_execute("VACUUM ANALYZE").unwrap();
    cluster
}

/// Runs the load once, with a ledger in `path` if there is one.
fn measure(
    cluster: &Cluster,
    path: Option<&Path>,
    clients: u32,
    seconds: u32,
    seed: u32,
) -> Measurement {
    let mut control = cluster.control("postgres").unwrap();
    for tidy in ["TRUNCATE pgdyno_token", "VACUUM pgbench_tellers, pgbench_branches", "CHECKPOINT"]
    {
        control.batch_execute(tidy).unwrap();
    }
    let ledger = path.map(|path| {
        let room = 20_000 * seconds as usize;
        Arc::new(MappedLedger::create(path, clients, room, 1).unwrap()) as Arc<dyn Ledger>
    });
    // Without a ledger the script counts for itself.
    let text = match path {
        Some(_) => SCRIPT.to_owned(),
        None => format!("\\set sequence :sequence + 1\n{SCRIPT}"),
    };
    let script = WeightedScript::new(Arc::new(Script::parse("ledger", &text).unwrap()), 1);
    let spec = LoadSpec {
        clients: NonZeroU32::new(clients).unwrap(),
        warm_up: Duration::from_millis(500),
        length: Length::Duration(Span::from_secs(seconds.into())),
        seed: seed.into(),
        variables: vec![
            ("scale".into(), Value::Int(8).into()),
            ("sequence".into(), Value::Int(0).into()),
        ],
        ledger,
        ..LoadSpec::new(cluster.target("postgres"), vec![script])
    };
    let observer = LoadObserver { stop: &GO_ON, on_open: &|_| {}, on_second: &|_| {} };
    let seen = run_load(&spec, &observer).unwrap();
    assert_eq!(seen.counters.aborted_clients, 0, "{:?}", seen.counters.abort_reasons);
    seen
}

fn main() {
    let numbers: Vec<u32> = std::env::args().filter_map(|a| a.parse().ok()).collect();
    let number = |n: usize, default: u32| numbers.get(n).copied().unwrap_or(default);
    let (rounds, seconds, clients) = (number(0, 10), number(1, 5), number(2, 8));
    let home = tempfile::tempdir().unwrap();
    let cluster = start_server(home.path());
    let mut tps = [Vec::new(), Vec::new()];
    let mut cpu = [Vec::new(), Vec::new()];
    for round in 0..rounds {
        for turn in 0..2 {
            let with = (turn == 1) != (round % 2 == 1);
            let path = with.then(|| home.path().join(format!("ledger-{round}")));
            let seen = measure(&cluster, path.as_deref(), clients, seconds, round);
            tps[usize::from(with)].push(seen.tps().unwrap());
            cpu[usize::from(with)].push(seen.generator_cpu_s / seen.transactions as f64 * 1e6);
            let _ = path.map(std::fs::remove_file);
        }
        let (without, with) = (tps[0][round as usize], tps[1][round as usize]);
        println!(
            "round {round}: without {without:.0} tps, with {with:.0} tps, ratio {:.3}",
            with / without
        );
    }
    let median = |mut all: Vec<f64>| {
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let ratios = |of: &[Vec<f64>; 2]| {
        of[1].iter().zip(&of[0]).map(|(with, without)| with / without).collect()
    };
    println!(
        "median of {rounds} ratios, with to without: tps {:.3}, generator's CPU per transaction \
         {:.3} ({:.2} µs without)",
        median(ratios(&tps)),
        median(ratios(&cpu)),
        median(cpu[0].clone())
    );
}
