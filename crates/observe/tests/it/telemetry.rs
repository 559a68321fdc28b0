//! Telemetry and a DSN's server, on a live one.
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use pgdyno_connect::control::Client;
use pgdyno_model::Advice;
use pgdyno_model::experiment::{Connect, Telemetry};
use pgdyno_model::facts::BuildSource;
use pgdyno_model::target::{Address, Secret};
use pgdyno_model::telemetry::{Column, Kind, STATS_RESET, Table};
use pgdyno_model::units::Span;
use pgdyno_observe::telemetry::{
    MonitoredServer, Probe, ProbeError, Sampler, TelemetryContext, probes,
};
use pgdyno_postgres::{Cluster, ExternalServer, ExternalServerError, Install, fetch};
use pgdyno_test_support::{Place, RUN, wait_for};

/// Fetches PostgreSQL `major`.
fn install_of(major: u32) -> Install {
    let account = pgdyno_exec::server_account().unwrap();
    fetch(major, &account, &RUN, &|_| {}).unwrap()
}

fn values(table: &Table, column: &str) -> Vec<f64> {
    let index = table.columns.iter().position(|c| c.name == column).unwrap();
    table.samples.iter().filter_map(|s| s.values[index]).collect()
}

fn wanted() -> Telemetry {
    Telemetry {
        interval: Span::from_secs(1),
        fsync: Span::default(),
        wait_events: Span(Duration::from_millis(10)),
        statements: false,
        buffercache: false,
        keep_serials: false,
    }
}

fn subject(cluster: &Cluster, database: &str) -> MonitoredServer {
    MonitoredServer {
        data: Some(cluster.data()),
        control: cluster.control_target("postgres"),
        loaded: cluster.control_target(database),
        managed: true,
    }
}

/// The load's own connection, which bears another name than pgdyno's.
fn connect(cluster: &Cluster) -> Client {
    let mut client = cluster.control("load").unwrap();
    client.batch_execute("SET application_name = 'load'").unwrap();
    client
}

/// A sampler whose last probe counts the rounds of samples.
struct CountedSampler {
    sampler: Sampler,
    rounds: Arc<AtomicU32>,
}

struct RoundCounter(Arc<AtomicU32>);

impl Probe for RoundCounter {
    fn columns(&self) -> &[Column] {
        &[]
    }

    fn sample(&mut self) -> Result<Vec<Option<f64>>, ProbeError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(Vec::new())
    }
}

impl CountedSampler {
    /// Starts to sample, and returns when every probe has been read.
    fn start(watched: &TelemetryContext) -> Self {
        let rounds = Arc::new(AtomicU32::new(0));
        let mut all = probes(watched);
        all.push(("rounds", Box::new(RoundCounter(Arc::clone(&rounds)))));
        let sampler = Self { sampler: Sampler::start(all, Duration::from_millis(50)), rounds };
        sampler.wait_rounds(1);
        sampler
    }

    /// Waits until `count` more rounds have ended.
    fn wait_rounds(&self, count: u32) {
        let wanted = self.rounds.load(Ordering::Relaxed) + count;
        wait_for("rounds of samples", || {
            (self.rounds.load(Ordering::Relaxed) >= wanted).then_some(())
        });
    }

    fn finish(self, opened: Instant) -> Vec<Table> {
        self.sampler.finish(opened, Instant::now())
    }
}

fn watch(cluster: &Cluster) -> Vec<Table> {
    let mut load = connect(cluster);
    let watched = TelemetryContext::new(subject(cluster, "load"), wanted());
    let sampler = CountedSampler::start(&watched);
    let opened = Instant::now();
    // A session tells its counts to the others about once a second, and when it ends.
    while opened.elapsed() < Duration::from_millis(1500) {
        load.batch_execute("INSERT INTO t VALUES (1)").unwrap();
    }
    drop(load);
    let counted = || -> i64 {
        let mut control = cluster.control("postgres").unwrap();
        let query = "SELECT xact_commit FROM pg_stat_database WHERE datname = 'load'";
        control.query_one(query, &[]).unwrap().get(0)
    };
    wait_for("the counts of the session", || (counted() >= 3).then_some(()));
    sampler.finish(opened)
}

#[test]
fn counters_only_grow_and_the_loads_commits_are_among_them() {
    assert_counters_grow(None);
}

#[test]
fn counters_of_the_newest_major_only_grow_too() {
    assert_counters_grow(Some(18));
}

fn assert_counters_grow(major: Option<u32>) {
    let place = Place::new();
    let mut spec = place.spec();
    if let Some(major) = major {
        spec.install = install_of(major);
    }
    let mut cluster = Cluster::create(spec, &place.journal, &RUN).unwrap();
    cluster.start(&RUN).unwrap();
    cluster.control("postgres").unwrap().batch_execute("CREATE DATABASE load").unwrap();
    cluster.control("load").unwrap().batch_execute("CREATE TABLE t (n int)").unwrap();
    let tables = watch(&cluster);
    let table = |name: &str| tables.iter().find(|t| t.probe == name);
    for table in &tables {
        assert!(table.samples.iter().all(|s| s.values.len() == table.columns.len()));
        assert!(table.samples.windows(2).all(|w| w[0].t_s < w[1].t_s));
        for column in table.columns.iter().filter(|c| c.kind == Kind::Counter) {
            let grown = values(table, &column.name);
            // The kernel may take back idle and iowait time that it had counted on another CPU.
            let steady = grown.windows(2).all(|w| w[0] <= w[1])
                || ["idle", "iowait"].contains(&&*column.name);
            assert!(steady, "{} {}: {grown:?}", table.probe, column.name);
        }
    }
    let commits = values(table("pg_stat_database").unwrap(), "xact_commit");
    assert!(commits.last().unwrap() - commits[0] >= 2.0, "{commits:?}");
    assert!(!values(table("pg_stat_wal").unwrap(), "wal_bytes").is_empty());
    let cpu = values(table("cpu").unwrap(), "user");
    assert!(cpu.last().unwrap() > &0.0);
    assert!(values(table("memory").unwrap(), "Dirty").iter().all(|v| *v >= 0.0));
    let disk = table("diskstats").unwrap();
    assert!(disk.unavailable.is_some() || !disk.samples.is_empty());
    let major = cluster.spec().install.major;
    assert_eq!(table("pg_stat_checkpointer").is_some(), major >= 17);
    assert_eq!(table("pg_stat_io").is_some(), major >= 16);
    if let Some(io) = table("pg_stat_io") {
        assert!(values(io, "client backend.relation.normal.hits").last().unwrap() > &0.0, "{io:?}");
    }
    for quiet in
        ["wait_events", "pg_stat_progress", "pg_locks", "sizes", "pg_stat_archiver", "observer"]
    {
        assert_eq!(table(quiet).unwrap().unavailable, None);
    }
    // One loaded session, and the postmaster with its helpers. A backend's private pages are
    // part of its share.
    let processes = table("processes").unwrap();
    assert_eq!(processes.unavailable, None);
    assert_eq!(values(processes, "backends")[0], 1.0, "{processes:?}");
    let (pss, private) =
        (values(processes, "backend_pss")[0], values(processes, "backend_private")[0]);
    assert!(pss >= private && private > 100e3, "{pss} {private}");
    assert_eq!(values(processes, "backends_pss")[0], pss);
    assert!(values(processes, "others_pss")[0] > pss);
    let sizes = table("sizes").unwrap();
    assert!(values(sizes, "public.t").last().unwrap() > &0.0, "{:?}", sizes.columns);
    assert!(values(sizes, "pg_wal")[0] >= 16.0 * 1024.0 * 1024.0);
}

fn table<'a>(tables: &'a [Table], name: &str) -> &'a Table {
    tables.iter().find(|t| t.probe == name).unwrap_or_else(|| panic!("no table {name}"))
}

fn started(place: &Place) -> Cluster {
    let mut cluster = Cluster::create(place.spec(), &place.journal, &RUN).unwrap();
    cluster.start(&RUN).unwrap();
    cluster.control("postgres").unwrap().batch_execute("CREATE DATABASE load").unwrap();
    cluster
        .control("load")
        .unwrap()
        .batch_execute("CREATE TABLE t (n int); INSERT INTO t VALUES (1)")
        .unwrap();
    cluster
}

#[test]
fn a_session_that_waits_for_a_lock_is_seen_waiting_for_it_and_no_other_is() {
    let place = Place::new();
    let cluster = started(&place);
    let (mut holder, mut waiter) = (connect(&cluster), connect(&cluster));
    holder.batch_execute("BEGIN; LOCK TABLE t IN ACCESS EXCLUSIVE MODE").unwrap();
    let waiting = std::thread::spawn(move || waiter.batch_execute("SELECT * FROM t").unwrap());
    let mut control = cluster.control("postgres").unwrap();
    let blocked = "SELECT count(*) FROM pg_locks WHERE NOT granted";
    wait_for("a session that waits", || {
        (control.query_one(blocked, &[]).unwrap().get::<_, i64>(0) > 0).then_some(())
    });
    let watched = TelemetryContext::new(subject(&cluster, "load"), wanted());
    let sampler = CountedSampler::start(&watched);
    let opened = Instant::now();
    sampler.wait_rounds(8);
    let tables = sampler.finish(opened);
    holder.batch_execute("ROLLBACK").unwrap();
    waiting.join().unwrap();
    let waits = table(&tables, "wait_events");
    let last = |column: &str| *values(waits, column).last().unwrap();
    let polls = last("polls");
    assert!(polls >= 2.0, "{waits:?}");
    // At every look the one waits for the lock within its transaction, the other for its client in
    // one.
    assert_eq!(last("load.Lock:relation"), polls);
    assert_eq!(last("load.Client:ClientRead"), polls);
    assert_eq!((last("state.active"), last("state.idle in transaction")), (polls, polls));
    let locks = table(&tables, "pg_locks");
    assert!(
        values(locks, "AccessShareLock.waiting.relation").iter().all(|n| *n == 1.0),
        "{locks:?}"
    );
    // The locked table's size could not be read, which is told and held up nobody.
    assert!(
        table(&tables, "sizes")
            .unavailable
            .as_ref()
            .is_some_and(|why| why.contains("lock timeout"))
    );
    assert!(!values(table(&tables, "sizes"), "pg_wal").is_empty());
}

#[test]
fn a_reset_of_the_statistics_shows_in_the_table_as_such() {
    let place = Place::new();
    let cluster = started(&place);
    let watched = TelemetryContext::new(subject(&cluster, "load"), wanted());
    let sampler = CountedSampler::start(&watched);
    let opened = Instant::now();
    cluster
        .control("postgres")
        .unwrap()
        .batch_execute("SELECT pg_stat_reset_shared('wal')")
        .unwrap();
    let tables = sampler.finish(opened);
    let mut epochs = values(table(&tables, "pg_stat_wal"), STATS_RESET);
    epochs.dedup();
    assert_eq!(epochs.len(), 2, "before and after: {epochs:?}");
    assert!(epochs[1] > epochs[0]);
}

#[test]
fn what_watching_costs_is_counted_and_extensions_are_read_where_asked_for() {
    let place = Place::new();
    let cluster = started(&place);
    let asked = Telemetry { buffercache: true, statements: true, ..wanted() };
    let watched = TelemetryContext::new(subject(&cluster, "load"), asked);
    let sampler = CountedSampler::start(&watched);
    let opened = Instant::now();
    sampler.wait_rounds(10);
    let tables = sampler.finish(opened);
    let cost = table(&tables, "observer");
    assert_eq!(cost.unavailable, None);
    for column in ["sampler_cpu", "backends_cpu"] {
        let spent = values(cost, column);
        assert!(spent.last().unwrap() > &spent[0], "{column}: {spent:?}");
    }
    let generator = values(cost, "generator_cpu");
    assert!(generator[0] > 0.0 && generator.is_sorted(), "{generator:?}");
    assert!(values(table(&tables, "pg_buffercache"), "used").iter().all(|n| *n > 0.0));
    let why = table(&tables, "pg_stat_statements").unavailable.clone().unwrap();
    assert!(why.contains("shared_preload_libraries"), "{why}");
    let mut load = cluster.control("load").unwrap();
    let extensions =
        load.query("SELECT extname FROM pg_extension WHERE extname LIKE 'pg_%'", &[]).unwrap();
    assert!(extensions.is_empty(), "the loaded database stays as it is");
}

/// A filesystem in a file behind a loop device, on a mount point; taken down in the end.
struct LoopDisk {
    device: String,
    point: std::path::PathBuf,
}

impl LoopDisk {
    fn make(folder: &std::path::Path) -> Option<Self> {
        let run = |program: &str, args: &[&str]| {
            let done = std::process::Command::new(program).args(args).output().ok()?;
            done.status.success().then(|| String::from_utf8_lossy(&done.stdout).trim().to_owned())
        };
        let (image, point) = (folder.join("disk.img"), folder.join("disk"));
        std::fs::File::create(&image).unwrap().set_len(256 << 20).unwrap();
        std::fs::create_dir(&point).unwrap();
        let device = run("losetup", &["-f", "--show", image.to_str().unwrap()])?;
        let disk = Self { device, point };
        run("mkfs.ext4", &["-q", &disk.device])?;
        run("mount", &[&disk.device, disk.point.to_str().unwrap()])?;
        Some(disk)
    }
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(&self.point).output();
        let _ = std::process::Command::new("losetup").args(["-d", &self.device]).output();
    }
}

#[test]
fn every_layer_under_data_wal_and_tablespaces_is_watched_and_counts_what_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = LoopDisk::make(folder.path()) else {
        let test =
            "every_layer_under_data_wal_and_tablespaces_is_watched_and_counts_what_is_written";
        // Past the test runner's capture.
        let _ = writeln!(
            std::io::stderr(),
            "\nskipped: {test}: loop devices need root and a kernel that has them"
        );
        return;
    };
    let data = folder.path().join("data");
    std::fs::create_dir_all(data.join("pg_tblspc")).unwrap();
    std::os::unix::fs::symlink(&disk.point, data.join("pg_wal")).unwrap();
    let place = Place::new();
    let cluster = place.cluster();
    let watched = TelemetryContext::new(
        MonitoredServer { data: Some(data), ..subject(&cluster, "load") },
        wanted(),
    );
    let sampler = CountedSampler::start(&watched);
    let opened = Instant::now();
    std::fs::write(disk.point.join("x"), vec![1; 8 << 20]).unwrap();
    std::fs::File::open(disk.point.join("x")).unwrap().sync_all().unwrap();
    let tables = sampler.finish(opened);
    let stats = table(&tables, "diskstats");
    let device = disk.device.strip_prefix("/dev/").unwrap();
    let written = values(stats, &format!("{device}.wr_sectors"));
    assert!(written.last().unwrap() - written[0] >= 8.0 * 2048.0, "{written:?}");
    let order: Vec<&str> =
        stats.columns.iter().filter_map(|c| c.name.strip_suffix(".wr_ios")).collect();
    // Below the loop device lies what holds its file; here that is also what holds the data, if it
    // has a device.
    let below = pgdyno_facts::storage("", folder.path()).unwrap();
    assert!(order.contains(&device), "{order:?}");
    assert_eq!(
        below.device.is_some(),
        below.device.is_some_and(|d| order.contains(&d.as_str())),
        "{order:?}"
    );
}

#[test]
fn a_server_that_dies_ends_its_own_probes_only() {
    let place = Place::new();
    let mut cluster = place.cluster();
    cluster.start(&RUN).unwrap();
    let watched = TelemetryContext::new(subject(&cluster, "postgres"), wanted());
    let sampler = CountedSampler::start(&watched);
    let opened = Instant::now();
    cluster.stop(pgdyno_postgres::StopMode::Immediate);
    let tables = sampler.finish(opened);
    let unavailable =
        |name: &str| tables.iter().find(|t| t.probe == name).unwrap().unavailable.clone();
    assert!(unavailable("pg_stat_wal").is_some());
    assert_eq!(unavailable("cpu"), None);
    // And where there is none to begin with, the tables say why.
    let watched = TelemetryContext::new(
        MonitoredServer { data: None, ..subject(&cluster, "postgres") },
        wanted(),
    );
    let tables =
        Sampler::start(probes(&watched), Duration::from_millis(20)).finish(opened, Instant::now());
    let wal = tables.iter().find(|t| t.probe == "pg_stat_wal").unwrap();
    assert!(wal.unavailable.as_ref().unwrap().contains("cannot connect"), "{wal:?}");
}

#[test]
fn a_server_that_comes_back_is_watched_again_and_the_gap_is_told() {
    let place = Place::new();
    let mut cluster = place.cluster();
    cluster.start(&RUN).unwrap();
    let sessions = |client: &mut Client| -> i64 {
        let query = "SELECT count(*) FROM pg_stat_activity \
                     WHERE application_name = 'pgdyno control' AND pid <> pg_backend_pid()";
        client.query_one(query, &[]).unwrap().get(0)
    };
    let watched = TelemetryContext::new(subject(&cluster, "postgres"), wanted());
    let sampler = CountedSampler::start(&watched);
    let opened = Instant::now();
    let mut control = cluster.control("postgres").unwrap();
    let before = sessions(&mut control);
    assert!(before > 1, "the probes that share a session, and those with one of their own");
    cluster.stop(pgdyno_postgres::StopMode::Immediate);
    sampler.wait_rounds(2);
    cluster.start(&RUN).unwrap();
    let back = opened.elapsed().as_secs_f64();
    let mut control = cluster.control("postgres").unwrap();
    // All but that of the sizes, which are read every ten seconds.
    wait_for("the probes' sessions", || (sessions(&mut control) >= before - 1).then_some(()));
    sampler.wait_rounds(2);
    let tables = sampler.finish(opened);
    for name in ["pg_stat_wal", "pg_stat_database", "wait_events", "pg_locks"] {
        let table = table(&tables, name);
        assert!(table.samples.last().unwrap().t_s > back, "{table:?}");
        let gap = table.unavailable.as_deref().unwrap();
        assert!(gap.starts_with("no samples from ") && gap.contains(" s to "), "{name}: {gap}");
    }
    assert_eq!(table(&tables, "cpu").unavailable, None);
}

#[test]
fn a_given_server_is_driven_by_uri_and_by_keywords_without_showing_its_password() {
    let place = Place::new();
    let mut spec = place.spec();
    spec.connect = Connect::Tcp;
    let mut cluster = Cluster::create(spec, &place.journal, &RUN).unwrap();
    cluster.start(&RUN).unwrap();
    let target = cluster.target("postgres");
    let Address::Tcp { host, port } = &target.address else { panic!("not TCP") };
    let password = target.password.as_ref().unwrap().reveal();
    for dsn in [
        format!("postgresql://postgres:{password}@{host}:{port}/postgres"),
        format!("host={host} port={port} user=postgres password={password} dbname=postgres"),
    ] {
        let given = ExternalServer::connect(&Secret::new(dsn)).unwrap();
        assert_eq!(given.target().password.as_ref().map(Secret::reveal), Some(password));
        let facts = given.facts().unwrap();
        assert_eq!(facts.build, BuildSource::Given { address: format!("{host}:{port}") });
        assert_eq!(given.data_directory(), Some(cluster.data()));
        assert!(!format!("{given:?} {facts:?}").contains(password));
    }
    let wrong = format!("postgresql://postgres:x{password}@{host}:{port}/postgres");
    let error = ExternalServer::connect(&Secret::new(wrong)).unwrap_err();
    assert!(matches!(error, ExternalServerError::Refused { .. }) && error.help().is_some());
    let shown = format!("{error} {error:?}");
    assert!(
        !shown.contains(password) && shown.contains("password authentication failed"),
        "{shown}"
    );
    let nowhere = ExternalServer::connect(&Secret::new("postgresql://u:pw@127.0.0.1:1/db".into()))
        .unwrap_err();
    assert!(nowhere.to_string().contains("refused"), "{nowhere}");
}
