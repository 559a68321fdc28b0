//! A real server for tests of the load engine, and a plain way to ask it things.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pgdyno_connect::control;
use pgdyno_engine::LoadObserver;
use pgdyno_engine::LoadSpec;
use pgdyno_engine::WeightedScript;
use pgdyno_engine::script::{Script, Value};
use pgdyno_exec::account::server_account;
use pgdyno_exec::journal::Journal;
use pgdyno_model::experiment::{Connect, Length, Protocol};
use pgdyno_model::target::{Address, Secret, Target};
use pgdyno_model::units::Span;
use pgdyno_postgres::Cluster;
use pgdyno_postgres::ClusterSpec;
use pgdyno_postgres::Install;
use pgdyno_postgres::cluster::cluster_directory;
use pgdyno_postgres::fetch;
use pgdyno_postgres::find;

/// The password of the roles that tests make.
pub const PASSWORD: &str = "correct horse";

static GO_ON: AtomicBool = AtomicBool::new(false);

/// TPC-B-like, one statement a line.
pub const TPCB: &str = "\
\\set aid random(1, 1000 * :scale)
\\set bid random(1, 1 * :scale)
\\set tid random(1, 10 * :scale)
\\set delta random(-5000, 5000)
BEGIN;
UPDATE accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM accounts WHERE aid = :aid;
UPDATE tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;
";

/// Tables for [`TPCB`] at scale 1.
pub const TPCB_TABLES: &str = "
    CREATE TABLE accounts (aid int PRIMARY KEY, abalance int NOT NULL DEFAULT 0);
    CREATE TABLE tellers (tid int PRIMARY KEY, tbalance int NOT NULL DEFAULT 0);
    CREATE TABLE branches (bid int PRIMARY KEY, bbalance int NOT NULL DEFAULT 0);
    CREATE TABLE history (tid int, bid int, aid int, delta int, mtime timestamp);
    INSERT INTO accounts SELECT generate_series(1, 1000);
    INSERT INTO tellers SELECT generate_series(1, 10);
    INSERT INTO branches VALUES (1);";

/// PostgreSQL of `major`, or of any, for tests: found, or else fetched.
pub fn install(major: Option<u32>) -> Install {
    find(None, major).unwrap().unwrap_or_else(|| {
        fetch(major.unwrap_or(17), &server_account().unwrap(), &GO_ON, &|_| {}).unwrap()
    })
}

/// A cluster of this test's own, made and not started, in a folder that goes with it; its server
/// listens on TCP.
pub fn made(install: Install) -> (Cluster, tempfile::TempDir) {
    let home = tempfile::tempdir().unwrap();
    // The server's account has to pass.
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let journal = Journal::open(&home.path().join("state")).unwrap();
    let mut spec = ClusterSpec::new(install, cluster_directory(home.path()).unwrap()).unwrap();
    spec.connect = Connect::Tcp;
    // Nothing here is about the disk.
    let settings = [("fsync", "off"), ("max_connections", "50"), ("shared_buffers", "16MB")];
    spec.settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    (Cluster::create(spec, &journal, &GO_ON).unwrap(), home)
}

/// A server of this test's own.
pub struct Server {
    cluster: Cluster,
    home: tempfile::TempDir,
}

impl Server {
    pub fn start() -> Self {
        Self::of(install(None))
    }

    pub fn of(install: Install) -> Self {
        let (mut cluster, home) = made(install);
        let hba = "local all all trust\n\
                   host all md5user 127.0.0.1/32 md5\n\
                   host all plain 127.0.0.1/32 password\n\
                   host all all 127.0.0.1/32 scram-sha-256\n";
        fs::write(cluster.data().join("pg_hba.conf"), hba).unwrap();
        cluster.apply(&BTreeMap::new(), &GO_ON).unwrap();
        let set = format!("ALTER ROLE postgres PASSWORD '{PASSWORD}'");
        cluster.control("postgres").unwrap().batch_execute(&set).unwrap();
        Self { cluster, home }
    }

    /// By Unix socket, as the superuser.
    pub fn unix(&self) -> Target {
        self.cluster.control_target("postgres")
    }

    /// By TCP, as `user`.
    pub fn tcp(&self, user: &str, password: Option<&str>) -> Target {
        let target = self.cluster.target("postgres");
        assert!(matches!(target.address, Address::Tcp { .. }));
        Target { user: user.into(), password: password.map(|p| Secret::new(p.into())), ..target }
    }

    /// Kills the server without a chance to tell anyone.
    pub fn kill(&mut self) {
        let pid = self.cluster.pid().unwrap().to_string();
        assert!(
            std::process::Command::new("kill").args(["-KILL", &pid]).status().unwrap().success()
        );
    }
}

/// A connection for asking things.
pub struct Session(pgdyno_connect::control::Client);

impl Session {
    pub fn new(target: &Target) -> Self {
        Self(control::connect_to_own(target).unwrap())
    }

    /// Runs `sql` and returns the first value of the last row, if any. Errors are for the test.
    pub fn ask(&mut self, sql: &str) -> Option<String> {
        let answers = self.0.simple_query(sql).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
        let row = answers.iter().rev().find_map(|answer| match answer {
            postgres::SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        })?;
        row.get(0).map(str::to_owned)
    }

    /// As [`Session::ask`], for a number.
    pub fn count(&mut self, sql: &str) -> u64 {
        self.ask(sql).unwrap().parse().unwrap()
    }
}

/// A load of one script on `target`; tests change what they are about.
pub fn spec(target: Target, script: &str) -> LoadSpec {
    let one = std::num::NonZeroU32::MIN;
    let script =
        WeightedScript { script: Script::parse("test", script).unwrap().into(), weight: 1 };
    LoadSpec {
        clients: one,
        threads: one,
        protocol: Protocol::Simple,
        warm_up: Duration::ZERO,
        length: Length::Transactions(10),
        seed: 42,
        variables: vec![("scale".into(), Value::Int(1).into())],
        ..LoadSpec::new(target, vec![script])
    }
}

/// As [`Length::Duration`] has it.
pub fn lasting(span: Duration) -> Length {
    Length::Duration(Span(span))
}

/// Nobody watches.
pub fn unwatched(stop: &AtomicBool) -> LoadObserver<'_> {
    LoadObserver { stop, on_open: &|_| {}, on_second: &|_| {} }
}
