//! Crashes a managed server, and examines what the crash left.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pgdyno_exec::ExecContext;
use pgdyno_exec::process::{Identity, children, servers_in};
use pgdyno_exec::tool::{Program, last_lines};
use pgdyno_storage::fault::FaultError;
use rustix::process::Signal;

use super::cluster::{Cluster, ClusterError, StopMode};
use super::server::{Server, StartFailure, end_remains};

/// How long killed processes may take to disappear. One of them may be in a flush.
const DYING: Duration = Duration::from_secs(60);

/// The result of `pg_checksums --check`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checksums {
    /// The pages whose checksum is wrong, one line each.
    Checked(Vec<String>),
    /// The installation has no `pg_checksums`.
    NotThere(String),
    /// The check did not run, for this reason.
    CouldNotRun(String),
}

impl Cluster {
    /// Sends SIGKILL to the postmaster and its children, by pid, without waiting. Call
    /// [`Cluster::wait_dead`] next.
    pub fn kill(&mut self) {
        for process in self.processes() {
            process.signal(Signal::KILL);
        }
        // The postmaster may have forked another child meanwhile.
        for process in servers_in(&self.data()) {
            process.signal(Signal::KILL);
        }
    }

    /// Kills the postmaster first, so that it starts nothing in place of its children.
    fn processes(&self) -> Vec<Identity> {
        let Some(pid) = self.pid().and_then(|pid| i32::try_from(pid).ok()) else {
            return Vec::new();
        };
        let mut all: Vec<Identity> = Identity::from_pid(pid).into_iter().collect();
        all.extend(children(pid));
        all
    }

    /// Waits until every process of the killed server is gone. Returns whether they are.
    pub fn wait_dead(&mut self) -> bool {
        let others = servers_in(&self.data());
        if let Some(mut server) = self.server.take() {
            // The postmaster is dead; this reaps it and ends the remaining processes.
            server.stop(StopMode::Immediate);
        }
        others.into_iter().all(|process| process.wait_gone(DYING))
    }

    /// Kills one of the server's processes.
    ///
    /// # Errors
    /// [`FaultError::NotTheServers`]: the process is not a child of this server's postmaster.
    pub fn kill_child(&self, pid: i32) -> Result<(), FaultError> {
        let Some(postmaster) = self.pid().and_then(|pid| i32::try_from(pid).ok()) else {
            return Err(FaultError::NotTheServers { pid });
        };
        let child = children(postmaster).into_iter().find(|child| child.pid() == pid);
        child.ok_or(FaultError::NotTheServers { pid })?.signal(Signal::KILL);
        Ok(())
    }

    /// Starts the server without waiting for connections, so that it can be crashed in its
    /// recovery.
    ///
    /// # Errors
    /// [`ClusterError`]: the server cannot be started.
    pub fn begin_start(&mut self) -> Result<(), ClusterError> {
        end_remains(&self.data(), Vec::new());
        let never = AtomicBool::new(false);
        let mut executor = ExecContext::new(self.journal(), &never);
        self.server = Some(Server::begin(&mut executor, self.spec())?);
        Ok(())
    }

    /// Waits until the running server takes connections, as after the loss of a backend.
    ///
    /// # Errors
    /// [`ClusterError`]: the server exited, or takes no connections within `limit`.
    pub fn wait_ready(&mut self, limit: Duration, stop: &AtomicBool) -> Result<(), ClusterError> {
        let target = self.control_target("postgres");
        let mark = self.log_mark();
        let Some(server) = self.server.as_mut() else {
            return Err(ClusterError::Died { status: "stopped".into(), log: String::new() });
        };
        match server.wait_ready(&target, limit, stop) {
            Ok(()) => Ok(()),
            Err(StartFailure::Other(e)) => Err(*e),
            Err(StartFailure::Ended(status)) => {
                let log = last_lines(&self.log_since(mark), 15);
                Err(ClusterError::Died { status: status.to_string(), log })
            }
        }
    }

    /// Returns a switch that kills the server from another thread, while this cluster waits for it.
    pub fn kill_switch(&self) -> KillSwitch {
        KillSwitch { data: self.data() }
    }

    /// Lets `pg_checksums` verify every page, until `give_up`. The server must have been stopped
    /// cleanly.
    pub fn check_checksums(&self, give_up: &dyn Fn() -> bool) -> Checksums {
        let install = &self.spec().install;
        let Some(program) = install.find_program("pg_checksums") else {
            let bindir = install.bindir.display();
            return Checksums::NotThere(format!("there is no pg_checksums in {bindir}"));
        };
        let (path, data) = (program.as_path(), self.data());
        let args = ["--check".as_ref(), "-D".as_ref(), data.as_os_str()];
        let program = Program { path, args: &args, account: Some(&self.spec().account) };
        let output = match program.answer(give_up) {
            Ok(Some(output)) => output,
            Ok(None) => {
                return Checksums::CouldNotRun("pg_checksums was ended before it was done".into());
            }
            Err(e) => {
                return Checksums::CouldNotRun(format!("cannot run {}: {e}", path.display()));
            }
        };
        if output.status.success() {
            return Checksums::Checked(Vec::new());
        }
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let complaints: Vec<String> = said
            .lines()
            .filter(|line| {
                line.contains("checksum verification failed") || line.contains("could not read")
            })
            .map(str::to_owned)
            .collect();
        if complaints.is_empty() {
            return Checksums::CouldNotRun(format!(
                "pg_checksums ended with {}: {}",
                output.status,
                said.trim()
            ));
        }
        Checksums::Checked(complaints)
    }
}

/// Kills the server of a data directory, even one that does not answer.
#[derive(Clone, Debug)]
pub struct KillSwitch {
    data: PathBuf,
}

impl KillSwitch {
    /// Sends SIGKILL to every process of the server, without waiting.
    pub fn kill(&self) {
        for process in servers_in(&self.data) {
            process.signal(Signal::KILL);
            // Without root, only the postmaster's working directory is visible.
            children(process.pid()).into_iter().for_each(|child| child.signal(Signal::KILL));
        }
    }
}
