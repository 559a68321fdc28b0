//! A group of clients on a hot standby: a trial begins once that has caught up.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;

use pgdyno_connect::control::Client;
use pgdyno_exec::account::server_account;
use pgdyno_experiment::ResolvedExperiment;
use pgdyno_experiment::file::Source;
use pgdyno_lab::run;
use pgdyno_model::progress::{Activity, Event, Progress, Silent};
use pgdyno_model::target::{Address, Secret};
use pgdyno_postgres::{Cluster, ExternalServer, StopMode};
use pgdyno_provision::ThisHost;
use pgdyno_store::Store;
use pgdyno_test_support::{Scratch, create_cluster, install, small_workload, wait_for};
use rustix::process::{Pid, Signal, kill_process};

static GO_ON: AtomicBool = AtomicBool::new(false);

/// A standby that streams from a primary, and ends with the value.
struct Standby {
    server: Child,
    dsn: String,
}

impl Standby {
    /// Copies `primary` while it is stopped, and starts both; the copy lies in `home`.
    fn start(primary: &mut Cluster, home: &Scratch) -> Self {
        let Address::Tcp { port, .. } = primary.target("postgres").address else {
            panic!("asked for TCP")
        };
        primary.stop(StopMode::Fast);
        let data = home.path().join("standby");
        let copied = Command::new("cp").arg("-a").args([&primary.data(), &data]).status().unwrap();
        assert!(copied.success(), "{copied}");
        primary.start(&GO_ON).unwrap();
        std::fs::write(data.join("standby.signal"), "").unwrap();

        let password = primary.target("postgres").password.unwrap();
        let password = password.reveal();
        let account = server_account().unwrap();
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let conninfo = format!("primary_conninfo=host=127.0.0.1 port={port} user=postgres");
        let server = Command::new(primary.spec().install.bindir.join("postgres"))
            .uid(account.uid)
            .gid(account.gid)
            .current_dir("/")
            .env("PGPASSWORD", password)
            .arg("-D")
            .arg(&data)
            .args(["-c", &conninfo, "-c", &format!("port={free}"), "-c", "hot_standby=on"])
            .args(["-c", "unix_socket_directories="])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let dsn = format!("postgresql://postgres:{password}@127.0.0.1:{free}/postgres");
        let standby = Self { server, dsn };
        wait_for("the standby to take connections", || standby.control());
        standby
    }

    /// A control connection, if it takes one.
    fn control(&self) -> Option<Client> {
        ExternalServer::connect(&Secret::new(self.dsn.clone())).ok()?.control().ok()
    }

    fn sql(&self, sql: &str) {
        self.control().unwrap().batch_execute(sql).unwrap();
    }
}

impl Drop for Standby {
    fn drop(&mut self) {
        // At once, and without a trace in shared memory.
        let _ = kill_process(Pid::from_child(&self.server), Signal::QUIT);
        let _ = self.server.wait();
    }
}

/// Lets the standby replay again, once somebody waits for it.
struct Resume<'a>(&'a Standby);

impl Progress for Resume<'_> {
    fn event(&self, event: &Event) {
        let Event::Working { activity, .. } = event else { return };
        if matches!(activity, Activity::AwaitingReplica { behind: 1.., .. }) {
            self.0.sql("SELECT pg_wal_replay_resume()");
        }
    }
}

#[test]
#[ignore = "long: a standby of its own"]
fn a_group_on_a_standby_waits_until_it_has_replayed_the_data() {
    let (mut cluster, home) = create_cluster(install(None));
    cluster.start(&GO_ON).unwrap();
    let standby = Standby::start(&mut cluster, &home);
    let target = cluster.target("postgres");
    let password = target.password.unwrap().reveal().to_owned();
    let Address::Tcp { port, .. } = target.address else { panic!("asked for TCP") };

    let folder = home.path().join("mixed");
    std::fs::create_dir(&folder).unwrap();
    let write = |file: &str, text: &str| std::fs::write(folder.join(file), text).unwrap();
    write("read.sql", "SELECT 1 / pg_is_in_recovery()::int, count(*) FROM pgbench_branches;\n");
    write("write.sql", "UPDATE pgbench_branches SET bbalance = bbalance + 1 WHERE bid = 1;\n");
    let data = small_workload(home.path());
    write(
        "workload.toml",
        &format!(
            "description = 'mixed'\ndata = {{ of = '{}' }}\n\
             [[group]]\nname = 'writers'\nclients = 1\nscript = [{{ file = 'write.sql' }}]\n\
             [[group]]\nname = 'readers'\nclients = 2\nrate = 50\n\
             script = [{{ file = 'read.sql' }}]\n",
            data.display()
        ),
    );
    let text = format!(
        "[experiment]\nrepeats = 1\n[workload]\nname = '{}/'\n[load]\nduration = '1s'\n\
         [postgres]\ndsn = 'postgresql://postgres:{password}@127.0.0.1:{port}/postgres'\n\
         [groups.readers]\npostgres.dsn = '{}'\n",
        folder.display(),
        standby.dsn
    );
    let source = Source::new(std::path::Path::new("mixed.toml"), text);
    let resolved = ResolvedExperiment::new(source, Vec::new(), &ThisHost).unwrap();
    let store = home.path().join("store.sqlite3");
    let measured = |progress: &dyn Progress| {
        let outcome = run::run(&resolved, &store, progress, &GO_ON).unwrap();
        let trials = Store::open_existing(store.clone()).unwrap().trials(&outcome.run).unwrap();
        assert_eq!(trials[0].failure, None);
        let m = trials[0].measurement.clone().unwrap();
        assert_eq!(m.failed, 0, "{:?}", m.counters.failures);
        assert!(m.scripts.iter().all(|script| script.transactions > 0), "{m:?}");
    };
    measured(&Silent);
    // The tables are not there yet: without a wait each read would fail.
    standby.sql("SELECT pg_wal_replay_pause()");
    measured(&Resume(&standby));
}
