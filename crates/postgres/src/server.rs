//! A server process: start it as a child, wait until it accepts connections, stop it.

use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pgdyno_connect::control;
use pgdyno_exec::process::{Identity, children, servers_in};
use pgdyno_exec::{Effect, Executor};
use pgdyno_model::target::Target;
use rustix::process::{Pid, Signal};

use super::error::ClusterError;
use super::spec::ClusterSpec;

/// How long a server may take to accept connections; recovery after a crash can be long.
pub(super) const START_LIMIT: Duration = Duration::from_secs(600);
/// How long each way of stopping may take before the next harder one.
const FAST_LIMIT: Duration = Duration::from_secs(120);
const IMMEDIATE_LIMIT: Duration = Duration::from_secs(15);

/// How a server is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopMode {
    /// Disconnects the clients and writes a checkpoint, as `pg_ctl stop -m fast`.
    Fast,
    /// Ends at once, as `pg_ctl stop -m immediate`. The next start recovers.
    Immediate,
}

/// A running postmaster, a child of this process.
#[derive(Debug)]
pub(crate) struct Server {
    pub(super) child: Child,
    pub(super) data: PathBuf,
}

/// A server did not start.
pub(crate) enum StartFailure {
    /// The postmaster exited.
    Ended(ExitStatus),
    /// Any other failure.
    Other(Box<ClusterError>),
}

impl Server {
    /// Starts the server of `spec` without waiting.
    pub(crate) fn begin(
        executor: &mut dyn Executor,
        spec: &ClusterSpec,
    ) -> Result<Self, ClusterError> {
        match executor.execute(&spec.starting())? {
            Effect::Started(child) => Ok(Self { child, data: spec.data() }),
            // Dry runs and recordings start nothing.
            _ => Err(ClusterError::Interrupted),
        }
    }

    /// Starts the server of `spec` and waits until `target` accepts connections.
    pub(crate) fn start(
        executor: &mut dyn Executor,
        spec: &ClusterSpec,
        target: &Target,
        limit: Duration,
        stop: &AtomicBool,
    ) -> Result<Self, StartFailure> {
        let begun = Self::begin(executor, spec);
        let mut server = begun.map_err(|e| StartFailure::Other(Box::new(e)))?;
        match server.wait_ready(target, limit, stop) {
            Ok(()) => Ok(server),
            Err(e) => {
                server.stop(StopMode::Immediate);
                Err(e)
            }
        }
    }

    /// Waits until `target` accepts connections, at most for `limit`.
    pub(super) fn wait_ready(
        &mut self,
        target: &Target,
        limit: Duration,
        stop: &AtomicBool,
    ) -> Result<(), StartFailure> {
        let began = Instant::now();
        let mut pause = Duration::from_millis(10);
        loop {
            if let Some(status) = self.ended() {
                return Err(StartFailure::Ended(status));
            }
            if stop.load(Ordering::Relaxed) {
                return Err(StartFailure::Other(Box::new(ClusterError::Interrupted)));
            }
            let why = match control::connect(target) {
                Ok(_) => return Ok(()),
                // It runs: what is wrong with that database is for whoever asks for it.
                Err(e) if e.is_of_database() => return Ok(()),
                // The server answers, and waiting longer will not change its answer.
                Err(e) if e.is_refusal() => {
                    return Err(StartFailure::Other(Box::new(e.into())));
                }
                Err(e) => e.to_string(),
            };
            if began.elapsed() > limit {
                let late = ClusterError::NotReady { waited: limit, why };
                return Err(StartFailure::Other(Box::new(late)));
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(100));
        }
    }

    /// Returns the exit status, if the postmaster has exited.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Returns the postmaster's process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Stops the server and waits until its processes are gone. Sends stronger signals while the
    /// server does not obey.
    pub(crate) fn stop(&mut self, mode: StopMode) {
        let pid = i32::try_from(self.child.id()).unwrap_or_default();
        let mut others: Vec<Identity> = children(pid);
        let ways: &[(Signal, Duration)] = match mode {
            StopMode::Fast => &[(Signal::INT, FAST_LIMIT), (Signal::QUIT, IMMEDIATE_LIMIT)],
            StopMode::Immediate => &[(Signal::QUIT, IMMEDIATE_LIMIT)],
        };
        for (signal, limit) in ways.iter().chain(&[(Signal::KILL, IMMEDIATE_LIMIT)]) {
            if self.ended().is_some() {
                break;
            }
            // A child that is not reaped keeps its pid, so the signal reaches no other process.
            if let Some(pid) = Pid::from_raw(pid) {
                let _ = rustix::process::kill_process(pid, *signal);
            }
            let until = Instant::now() + *limit;
            while self.ended().is_none() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(5));
            }
            if self.ended().is_none() {
                others.extend(children(pid));
            }
        }
        end_remains(&self.data, others);
    }
}

/// Ends server processes in `data` that outlived their postmaster.
pub(crate) fn end_remains(data: &Path, mut others: Vec<Identity>) {
    others.extend(servers_in(data));
    for process in others {
        // Backends exit by themselves once they notice that the postmaster is gone.
        if !process.wait_gone(Duration::from_secs(5)) {
            process.signal(Signal::KILL);
            process.wait_gone(Duration::from_secs(5));
        }
    }
}
