//! Loads on the nodes of a scheduler, and the processes of their workers.

pub mod lab;

use std::process::{Child, Command, Stdio};
use std::time::Instant;

use pgdyno_exec::process::Identity;
use pgdyno_test_support::{PASSWORD, Server, Session, wait_for};
use rustix::process::{Pid, Signal, kill_process};

use crate::generators_support;
pub use crate::generators_support::{CLIENTS, pgbench, server_with_tables};
use crate::support::{Ended, ended, finish};

/// Test bed: a server, a session on it, and the cluster's address if it has one.
pub struct Bench {
    pub server: Server,
    pub session: Session,
    pub ray_address: Option<String>,
}

impl Bench {
    pub fn new() -> Self {
        let server = server_with_tables();
        let session = Session::new(&server.unix());
        Self { server, session, ray_address: None }
    }

    /// Returns `pgdyno pgbench` with `generators`.
    pub fn command(&self, generators: &str) -> Command {
        let mut command = pgbench(&self.server);
        command.envs(self.ray_address.as_ref().map(|address| ("RAY_ADDRESS", address)));
        let python = "PGDYNO_RAY_PYTHON";
        command.envs(std::env::var_os(python).map(|value| (python, value)));
        command.args(["-n", "-S", generators_support::ANY_SKEW, "--generators", generators]);
        command
    }

    /// Runs a load to its end.
    pub fn run(&self, generators: &str, args: &[&str]) -> Ended {
        ended(self.command(generators).args(args).output().unwrap())
    }

    /// Starts two minutes of load with six clients. Returns once they are at work.
    pub fn start(&mut self, generators: &str) -> Child {
        let child = self
            .command(generators)
            .args(["-c", "6", "-j", "3", "-T", "120"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        wait_for("six clients", || (self.session.count(CLIENTS) == 6).then_some(()));
        let commits = "SELECT xact_commit FROM pg_stat_database WHERE datname = 'postgres'";
        let before = self.session.count(commits);
        wait_for("a load", || (self.session.count(commits) > before + 1000).then_some(()));
        child
    }

    /// Asserts that three `nodes` offer one load of `generators` and are named.
    pub fn assert_one_load(&self, generators: &str, nodes: [&str; 3]) {
        let ended = self.run(generators, &["-c", "6", "-j", "3", "-t", "100"]).exits(0);
        ended.prints("actually processed: 600/600");
        for node in nodes {
            ended.prints(format!("pgdyno: {node} "));
        }
        eprintln!("{}", ended.out);
    }

    /// Asserts that a load of `generators` ends after `kill`, with `words`, and leaves nothing.
    pub fn assert_ends(
        &mut self,
        generators: &str,
        (what, words): (&str, &[&str]),
        kill: impl FnOnce(&Child),
    ) {
        let run = self.start(generators);
        let since = Instant::now();
        kill(&run);
        let ended = finish(run);
        self.assert_all_gone(&format!("kill -9 of {what}"), since);
        assert_failed(ended, words);
    }

    /// Asserts that a coordinator of `generators` leaves nothing, be it killed or interrupted.
    pub fn assert_coordinator_leaves_nothing(&mut self, generators: &str) {
        for (signal, status) in [(Signal::KILL, None), (Signal::INT, Some(130))] {
            let run = self.start(generators);
            let since = Instant::now();
            kill_process(Pid::from_child(&run), signal).unwrap();
            let ended = finish(run);
            assert_eq!(ended.code, status.or(ended.code));
            self.assert_all_gone(&format!("{signal:?} of pgdyno"), since);
        }
    }

    /// Waits until neither a worker nor a client is left, and prints how long that took.
    pub fn assert_all_gone(&mut self, what: &str, since: Instant) {
        wait_for("the workers' end", || workers().is_empty().then_some(()));
        wait_for("the clients' end", || (self.session.count(CLIENTS) == 0).then_some(()));
        eprintln!("{what}: nothing was left after {:.2} s", since.elapsed().as_secs_f64());
    }
}

/// Workers that run: their processes and command lines. None shows the password.
pub fn workers() -> Vec<(Identity, String)> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let of = |pid: i32| {
        let folder = std::path::PathBuf::from(format!("/proc/{pid}"));
        let read = |name| std::fs::read(folder.join(name)).ok();
        let words = read("cmdline")?;
        let words = String::from_utf8_lossy(&words).replace('\0', " ");
        if !words.contains("pgdyno worker --join") {
            return None;
        }
        let environment = String::from_utf8_lossy(&read("environ")?).into_owned();
        assert!(!words.contains(PASSWORD) && !environment.contains(PASSWORD), "{words}");
        assert!(!words.contains("pgdyno1.") && !environment.contains("pgdyno1."), "{words}");
        Some((Identity::from_pid(pid)?, words))
    };
    entries.filter_map(|entry| of(entry.file_name().to_str()?.parse().ok()?)).collect()
}

/// The worker that is called `name`.
pub fn worker(name: &str) -> Identity {
    let end = format!("--name {name} ");
    let mut found = workers().into_iter().filter(|(_, words)| words.ends_with(&end));
    let (worker, _) = found.next().unwrap_or_else(|| panic!("no worker {name}: {:?}", workers()));
    assert!(found.next().is_none());
    worker
}

/// Asserts that a load was not valid, and why.
pub fn assert_failed(ended: Ended, words: &[&str]) {
    let Ended { out, err, .. } = ended.fails(words);
    assert!(!out.contains("tps"), "{out}");
    eprintln!("{}", err.lines().find(|line| line.contains("error:")).unwrap_or_default());
}
