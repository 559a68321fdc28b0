//! Programs of others that start all workers of a load at once, and end with them.
//!
//! The program is told where workers join, and has the token's line on its standard input, which
//! stays open while the coordinator lives. Neither its arguments nor its environment hold a secret.

use std::ffi::OsString;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::launched::{Launched, StartProgram, this_program};
use crate::error::Fault;

/// Time that the program has to end once its workers have ended, or once it is told to.
const ENDING: Duration = Duration::from_secs(2);

/// Workers to start.
pub(crate) struct Request {
    /// Workers (count).
    pub(crate) workers: usize,
    /// Processors for each worker: one for each of its event loops (count).
    pub(crate) cpus: u32,
    /// Where the coordinator listens. Without an address of its own it listens on all.
    pub(crate) coordinator: SocketAddr,
}

impl Request {
    /// Returns the arguments that programs get after their own: the coordinator's host, empty where
    /// they have to find this machine's address by themselves; its port; and this program's file.
    pub(super) fn words(&self, program: PathBuf) -> [OsString; 3] {
        let host = match self.coordinator.ip() {
            ip if ip.is_unspecified() => String::new(),
            ip => ip.to_string(),
        };
        [host.into(), self.coordinator.port().to_string().into(), program.into()]
    }
}

/// A launcher: a program of others that starts all workers.
pub(crate) struct Starter {
    /// The launcher's name.
    pub(crate) name: &'static str,
    /// The words that call the program.
    pub(super) words: fn(&Request, PathBuf) -> Vec<OsString>,
    /// Advice if the program cannot be run.
    pub(crate) missing: &'static str,
    /// Advice if the program ends before all workers have come.
    pub(crate) ended: &'static str,
}

impl Starter {
    /// Starts the program; workers get `token`.
    pub(crate) fn start(
        &'static self,
        request: &Request,
        token: &str,
        start: StartProgram,
    ) -> Result<Supervisor, Fault> {
        let words = (self.words)(request, this_program()?);
        let mut launched = Launched::start(&words, start)?;
        if let Some(mut output) = launched.child.stdout.take() {
            std::thread::spawn(move || io::copy(&mut output, &mut io::sink()));
        }
        if let Some(stdin) = &mut launched.child.stdin {
            // One that does not read it says by itself why.
            let _ = stdin.write_all(token.as_bytes());
        }
        Ok(Supervisor { starter: self, launched, grace: Duration::ZERO })
    }
}

/// The program that runs workers. It is ended with this value.
pub(crate) struct Supervisor {
    pub(crate) starter: &'static Starter,
    launched: Launched,
    /// Time that it has to end by itself.
    grace: Duration,
}

impl Supervisor {
    /// Says how the program ended, if it does within `limit`.
    pub(crate) fn ended(&mut self, limit: Duration) -> Option<String> {
        let status = self.launched.wait_until(Instant::now() + limit)?;
        Some(self.launched.how(Some(status)))
    }

    /// From now on the program is expected to end with its workers.
    pub(crate) fn all_have_come(&mut self) {
        self.grace = ENDING;
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        if self.launched.wait_until(Instant::now() + self.grace).is_none() {
            // It ends its workers at this signal, and not at SIGKILL.
            let _ = kill_process(Pid::from_child(&self.launched.child), Signal::TERM);
        }
        self.launched.end(Instant::now() + ENDING);
    }
}
