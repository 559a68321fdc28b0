//! A server that logs, and what its log holds.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use pgdyno_connect::control::connect_to_own;
use pgdyno_engine::run_load;
use pgdyno_exec::account::server_account;
use pgdyno_model::experiment::{Length, Protocol};
use pgdyno_model::target::{Address, Target};
use pgdyno_postgres::{Cluster, StopMode};
use pgdyno_replay::{ConnectOptions, ReadOptions, Recording};
use pgdyno_test_support::load::{TPCB, TPCB_TABLES, spec, unwatched};
use pgdyno_test_support::{RUN, Scratch, Session, create_cluster, install, wait_for};

/// Runs a server until its standard input ends, which it does with this process.
const KEEP: &str = r#""$@" & server=$!; read -r nothing; kill -QUIT $server; wait $server"#;

/// Settings of a server that logs. A cluster of pgdyno's keeps them to itself.
const LOGGING: [&str; 5] = [
    "logging_collector=on",
    "log_destination=csvlog,jsonlog",
    "log_filename=server.log",
    "log_connections=on",
    "log_disconnections=on",
];

/// A running server that writes csvlog and jsonlog, each to one file.
pub struct LoggingServer {
    server: Child,
    cluster: Cluster,
    #[expect(dead_code, reason = "its drop removes the folder, after the cluster's")]
    home: Scratch,
}

impl Drop for LoggingServer {
    fn drop(&mut self) {
        drop(self.server.stdin.take());
        self.server.wait().unwrap();
    }
}

impl LoggingServer {
    /// Starts a server that logs connections; databases say which statements it logs.
    pub fn start() -> Self {
        let (mut cluster, home) = create_cluster(install(None));
        cluster.apply(&BTreeMap::new(), &RUN).unwrap();
        cluster.stop(StopMode::Fast);
        let (account, install) = (server_account().unwrap(), install(None));
        let mut server = Command::new("/bin/sh");
        server.args(["-c", KEEP, "sh"]).arg(install.bindir.join("postgres"));
        server.arg("-D").arg(cluster.data()).current_dir(cluster.data());
        server.args(LOGGING.iter().flat_map(|setting| ["-c", setting]));
        server.uid(account.uid).gid(account.gid).stdin(Stdio::piped()).stdout(Stdio::null());
        let server = server.stderr(Stdio::null()).spawn().unwrap();
        let started = Self { server, cluster, home };
        wait_for("the server", || connect_to_own(&started.target("postgres")).ok());
        started
    }

    /// Returns the superuser's target of a database.
    pub fn target(&self, database: &str) -> Target {
        self.cluster.control_target(database)
    }

    /// Returns connection options for the superuser.
    pub fn options(&self) -> ConnectOptions {
        let target = self.target("postgres");
        let Address::Unix { directory, port } = &target.address else { panic!("{target:?}") };
        let dsn = format!(
            "host={} port={port} user={} dbname=postgres",
            directory.display(),
            target.user
        );
        ConnectOptions { dsn_or_dbname: Some(dsn), ..ConnectOptions::default() }
    }

    /// Creates a database with TPC-B's tables, and a copy of it named `copy_NAME`; from then on
    /// sessions of the first log statements by `settings`.
    pub fn create_logged(&self, name: &str, settings: &[(&str, &str)]) {
        let mut session = Session::new(&self.target("postgres"));
        session.ask(&format!("CREATE DATABASE {name}"));
        Session::new(&self.target(name)).ask(TPCB_TABLES);
        let mut own = Session::new(&self.target(name));
        own.ask("CREATE TABLE texts (id int PRIMARY KEY, value text)");
        drop(own);
        // The template must have no session, and those above end in their own time.
        wait_for("a copy", || {
            let mut others = Session::new(&self.target("postgres"));
            let asked = format!("SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}'");
            (others.count(&asked) == 0).then_some(())
        });
        session.ask(&format!("CREATE DATABASE copy_{name} TEMPLATE {name}"));
        for (setting, value) in settings {
            session.ask(&format!("ALTER DATABASE {name} SET {setting} = '{value}'"));
        }
    }

    /// Runs TPC-B on a database, once with each protocol.
    pub fn run_tpcb(&self, database: &str, transactions: u64) {
        for protocol in [Protocol::Simple, Protocol::Extended, Protocol::Prepared] {
            let mut load = spec(self.target(database), TPCB);
            load.protocol = protocol;
            load.clients = 3.try_into().unwrap();
            load.length = Length::Transactions(transactions);
            let done = run_load(&load, &unwatched(&RUN)).unwrap();
            assert_eq!(done.transactions, 3 * transactions);
        }
    }

    /// Returns the logs as csvlog and as jsonlog, once both hold all that was logged so far.
    pub fn logs(&self) -> [PathBuf; 2] {
        let mark = format!("the log is complete {}", fastrand::u64(..));
        let mut session = Session::new(&self.target("postgres"));
        session.ask(&format!("DO $$ BEGIN RAISE LOG '{mark}'; END $$"));
        let folder = self.cluster.data().join("log");
        ["server.csv", "server.json"].map(|name| {
            let path = folder.join(name);
            let text = wait_for("the log", || {
                let text = fs::read_to_string(&path).ok()?;
                (text.contains(&mark) && text.ends_with('\n')).then_some(text)
            });
            let copy = folder.join(format!("copy-{}-{name}", fastrand::u64(..)));
            fs::write(&copy, text).unwrap();
            copy
        })
    }

    /// Reads what the log holds of a database, from csvlog and from jsonlog.
    pub fn recordings(&self, database: &str) -> [Recording; 2] {
        let options =
            ReadOptions { databases: vec![database.to_owned()], ..ReadOptions::default() };
        self.logs().map(|path| Recording::read(&[path], &options).unwrap())
    }

    /// Returns what tells whether two databases hold equal rows.
    pub fn sums(&self, database: &str) -> Vec<String> {
        let mut session = Session::new(&self.target(database));
        let queries = [
            "SELECT md5(string_agg(aid || ':' || abalance, ',' ORDER BY aid)) FROM accounts",
            "SELECT md5(string_agg(tid || ':' || tbalance, ',' ORDER BY tid)) FROM tellers",
            "SELECT bbalance::text FROM branches",
            "SELECT count(*) || ':' || sum(delta) FROM history",
            "SELECT md5(string_agg(concat(id, ':', value), ',' ORDER BY id)) FROM texts",
        ];
        queries.map(|query| session.ask(query).unwrap_or_default()).to_vec()
    }
}

/// Renders each statement of a recording with its session, parameters and failure.
pub fn render(recording: &Recording) -> Vec<String> {
    let mut lines = Vec::new();
    for (number, session) in recording.sessions.iter().enumerate() {
        for statement in &session.statements {
            lines.push(format!(
                "{number} at {} for {:?}: {:?} {} {:?} {:?}",
                statement.begin_us,
                statement.duration(),
                recording.prepared_name(statement),
                recording.text(statement),
                recording.parameters(statement),
                statement.failure(),
            ));
        }
    }
    lines
}
