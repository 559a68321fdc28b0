//! A PostgreSQL server for tests, and connections to it.

use std::collections::BTreeMap;
use std::fs;

use pgdyno_connect::control::{self, Client};
use pgdyno_exec::account::server_account;
use pgdyno_exec::journal::Journal;
use pgdyno_model::experiment::Connect;
use pgdyno_model::target::{Address, Secret, Target};
use pgdyno_postgres::cluster::cluster_directory;
use pgdyno_postgres::{Cluster, ClusterSpec, Install, fetch, find};

use crate::quick_initdb::quick_install;
use crate::scratch::Scratch;
use crate::wait::RUN;

/// The password of the roles that tests create.
pub const PASSWORD: &str = "correct horse";

/// Returns an installed PostgreSQL of `major`, or of any version. Fetches one if none is installed.
pub fn install(major: Option<u32>) -> Install {
    let quick = quick_install().filter(|install| major.is_none_or(|major| install.major == major));
    quick.or_else(|| find(None, major).unwrap()).unwrap_or_else(|| {
        fetch(major.unwrap_or(17), &server_account().unwrap(), &RUN, &|_| {}).unwrap()
    })
}

/// Creates a cluster that is not started, in a folder of its own. Its server will listen on TCP.
pub fn create_cluster(install: Install) -> (Cluster, Scratch) {
    let home = Scratch::in_memory();
    let journal = Journal::open(&home.path().join("state")).unwrap();
    let mut spec = ClusterSpec::new(install, cluster_directory(home.path()).unwrap()).unwrap();
    spec.connect = Connect::Tcp;
    // Tests of connections and load need no durable disk.
    let settings = [("fsync", "off"), ("max_connections", "50"), ("shared_buffers", "16MB")];
    spec.settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    (Cluster::create(spec, &journal, &RUN).unwrap(), home)
}

/// A running server of the test's own; it ends with the value.
///
/// By TCP, `md5user` is asked for a password by MD5, `plain` in clear text, others by SCRAM.
#[derive(Debug)]
pub struct Server {
    cluster: Cluster,
    #[expect(dead_code, reason = "its drop removes the folder, after the cluster's")]
    home: Scratch,
}

impl Server {
    /// Starts a server of any version.
    pub fn start() -> Self {
        Self::with_install(install(None))
    }

    /// Starts a server of the given installation.
    pub fn with_install(install: Install) -> Self {
        let (mut cluster, home) = create_cluster(install);
        let hba = "local all all trust\n\
                   host all md5user 127.0.0.1/32 md5\n\
                   host all plain 127.0.0.1/32 password\n\
                   host all all 127.0.0.1/32 scram-sha-256\n";
        fs::write(cluster.data().join("pg_hba.conf"), hba).unwrap();
        cluster.apply(&BTreeMap::new(), &RUN).unwrap();
        let set = format!("ALTER ROLE postgres PASSWORD '{PASSWORD}'");
        cluster.control("postgres").unwrap().batch_execute(&set).unwrap();
        Self { cluster, home }
    }

    /// Returns the target for the superuser by the Unix socket.
    pub fn unix(&self) -> Target {
        self.cluster.control_target("postgres")
    }

    /// Returns the target for `user` by TCP.
    pub fn tcp(&self, user: &str, password: Option<&str>) -> Target {
        let target = self.cluster.target("postgres");
        assert!(matches!(target.address, Address::Tcp { .. }));
        Target { user: user.into(), password: password.map(|p| Secret::new(p.into())), ..target }
    }

    /// Kills the postmaster with SIGKILL.
    pub fn kill(&mut self) {
        let pid = self.cluster.pid().unwrap().to_string();
        assert!(
            std::process::Command::new("kill").args(["-KILL", &pid]).status().unwrap().success()
        );
    }
}

/// A connection for a test's own queries.
pub struct Session(Client);

impl Session {
    /// Connects to a server of the test's own.
    pub fn new(target: &Target) -> Self {
        Self(control::connect_to_own(target).unwrap())
    }

    /// Runs `sql` and returns the first value of the last row. Panics if the server rejects it.
    pub fn ask(&mut self, sql: &str) -> Option<String> {
        let answers = self.0.simple_query(sql).unwrap_or_else(|e| panic!("{sql}: {e:?}"));
        let row = answers.iter().rev().find_map(|answer| match answer {
            tokio_postgres::SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        })?;
        row.get(0).map(str::to_owned)
    }

    /// Runs `sql` and returns the first value of the last row, a number.
    pub fn count(&mut self, sql: &str) -> u64 {
        self.ask(sql).unwrap().parse().unwrap()
    }
}
