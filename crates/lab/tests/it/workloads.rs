//! Workloads that are known elsewhere: they run, and their conditions find what breaks them.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use pgdyno_dataset::workload::names;
use pgdyno_experiment::ResolvedExperiment;
use pgdyno_experiment::file::{Override, Source};
use pgdyno_lab::run;
use pgdyno_model::TrialRecord;
use pgdyno_model::progress::Silent;
use pgdyno_model::target::Address;
use pgdyno_postgres::Cluster;
use pgdyno_provision::ThisHost;
use pgdyno_store::Store;
use pgdyno_test_support::{Scratch, create_cluster, install};

static GO_ON: AtomicBool = AtomicBool::new(false);

/// Runs one trial of `workload` on `cluster`, with two units of scale, and returns it.
fn trial(cluster: &Cluster, home: &Scratch, workload: &str, protocol: &str) -> TrialRecord {
    trial_of(cluster, home, workload, protocol, "clients = 4\ntransactions = 300\n")
}

/// Runs one trial with more lines of `[load]`.
fn trial_of(
    cluster: &Cluster,
    home: &Scratch,
    workload: &str,
    protocol: &str,
    more: &str,
) -> TrialRecord {
    let target = cluster.target("postgres");
    let password = target.password.unwrap().reveal().to_owned();
    let Address::Tcp { port, .. } = target.address else { panic!("asked for TCP") };
    let text = format!(
        "[experiment]\nrepeats = 1\nseed = 7\n[workload]\nname = '{workload}'\nscale = 2\n\
         [load]\nprotocol = '{protocol}'\nmax_tries = 5\n{more}"
    );
    let source = Source::new(Path::new("workload.toml"), text);
    let dsn = format!("postgresql://postgres:{password}@127.0.0.1:{port}/postgres");
    let server = Override::text("postgres.dsn", &dsn, "postgres.dsn");
    let resolved = ResolvedExperiment::new(source, vec![server], &ThisHost).unwrap();
    let store = home.path().join("store.sqlite3");
    let outcome = run::run(&resolved, &store, &Silent, &GO_ON).unwrap();
    Store::open_existing(store).unwrap().trials(&outcome.run).unwrap().remove(0)
}

/// Copies the built-in workload `name` into `home`, with its description as `change` makes it.
fn changed(home: &Scratch, name: &str, change: impl Fn(String) -> String) -> String {
    let built_in = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads").join(name);
    let folder = home.path().join("changed");
    std::fs::create_dir(&folder).unwrap();
    for file in std::fs::read_dir(built_in).unwrap().map(|entry| entry.unwrap().path()) {
        let text = std::fs::read_to_string(&file).unwrap();
        let text = if file.ends_with("workload.toml") { change(text) } else { text };
        std::fs::write(folder.join(file.file_name().unwrap()), text).unwrap();
    }
    format!("{}/", folder.display())
}

#[test]
#[ignore = "long: two warehouses of TPROC-C, four times"]
fn tprocc_keeps_its_conditions_and_a_broken_one_is_found() {
    for major in [15, 18] {
        let (mut cluster, home) = create_cluster(install(Some(major)));
        cluster.start(&GO_ON).unwrap();
        let whole = trial(&cluster, &home, "tprocc", "prepared");
        assert_eq!(whole.failure, None, "{major}");
        let m = whole.measurement.unwrap();
        assert_eq!((m.transactions, m.failed), (1200, 0), "{:?}", m.counters.failures);
        let names: Vec<&str> = m.scripts.iter().map(|script| script.name.as_str()).collect();
        assert_eq!(names, ["new_order", "payment", "order_status", "delivery", "stock_level"]);
        // 540 of 1,200, with a standard deviation of 17.
        let new_orders = m.scripts[0].transactions;
        assert!((450..630).contains(&new_orders), "{new_orders}");
        assert_eq!(m.compared(), Some(new_orders as f64 / m.measured_s));

        let cent = "sql = [\"UPDATE district SET d_ytd = d_ytd + 0.01 WHERE d_id = 3\"";
        let changed = changed(&home, "tprocc", |text| {
            assert!(text.contains("sql = [\"VACUUM district\""), "{text}");
            text.replace("sql = [\"VACUUM district\"", cent)
        });
        let broken = trial(&cluster, &home, &changed, "prepared").failure.unwrap();
        assert_eq!(broken.message, "2 rows break the workload's condition `1: w_ytd = sum(d_ytd)`");
    }
}

#[test]
#[ignore = "long: ten workloads on two versions of PostgreSQL"]
fn workloads_of_other_tools_run_and_keep_their_conditions() {
    for (major, protocol) in [(15, "prepared"), (18, "simple")] {
        let (mut cluster, home) = create_cluster(install(Some(major)));
        cluster.start(&GO_ON).unwrap();
        let of_peers = ["tprocc-statements", "ycsb-", "sysbench-oltp-"];
        let known = names().into_iter();
        let workloads: Vec<&str> =
            known.filter(|name| of_peers.iter().any(|peer| name.starts_with(peer))).collect();
        assert_eq!(workloads.len(), 10);
        for workload in workloads {
            let trial = trial(&cluster, &home, workload, protocol);
            assert_eq!(trial.failure, None, "{major}: {workload}");
            let m = trial.measurement.unwrap();
            assert_eq!((m.transactions, m.failed), (1200, 0), "{workload}: {:?}", m.counters);
            let never = m.scripts.iter().find(|script| script.transactions == 0);
            assert!(never.is_none(), "{workload}: {never:?}");
        }
    }
}

#[test]
#[ignore = "long: two million readings are loaded and more are added for fifteen seconds, twice"]
fn ingest_adds_readings_makes_partitions_and_drops_old_ones() {
    for (major, protocol) in [(15, "prepared"), (18, "simple")] {
        let (mut cluster, home) = create_cluster(install(Some(major)));
        cluster.start(&GO_ON).unwrap();
        // No partition has a gap, and those before the last look at them are gone.
        let more = "[[consistency]]\ncondition = 'whole'\nbroken = \"\"\"\
            SELECT count(*) FROM (SELECT readings_number(time) AS n, count(*) AS readings \
            FROM readings GROUP BY 1) AS parts, \
            (SELECT readings_number(max(time)) AS newest FROM readings) AS last \
            WHERE n < newest AND readings <> 1000000 OR n < newest - 1\"\"\"\n";
        let changed = changed(&home, "ingest", |text| format!("{text}\n{more}"));
        let load = "duration = '15s'\ndefine = { batch = 2000, kept = 1 }\n";
        let trial = trial_of(&cluster, &home, &changed, protocol, load);
        assert_eq!(trial.failure, None, "{major}");
        let m = trial.measurement.unwrap();
        let of = |name: &str| m.scripts.iter().find(|s| s.name == name).unwrap().transactions;
        assert_eq!(m.failed, 0, "{major}: {:?}", m.counters);
        assert!(of("batch") > 100 && of("keep") > 5, "{} {}", of("batch"), of("keep"));
        assert_eq!(m.compared(), Some(of("batch") as f64 / m.measured_s));
    }
}
