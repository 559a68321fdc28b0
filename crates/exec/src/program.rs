//! Programs that steps start: as whom, with which environment, and how they are waited for.
//!
//! [`Program::start`] starts one that stays, [`Program::run`] one that ends.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::account::Account;
use crate::error::{StepError, io_error};
use crate::lookup::search_path;
use crate::output::{beginning, open_log, said};
use crate::process::{STARTED_BY, started_by};

/// A program with its arguments, as a step names it.
#[derive(Clone, Copy, Debug)]
pub struct Program<'a> {
    /// The program.
    pub path: &'a Path,
    /// Its arguments; no shell reads them.
    pub args: &'a [OsString],
    /// The account it runs as; none means this process's own.
    pub account: Option<&'a Account>,
}

impl Program<'_> {
    /// Runs it to its end with its output appended to `output`.
    ///
    /// # Errors
    /// [`StepError`]: it cannot be started, `stop` became true, or its exit status is not 0.
    pub fn run(&self, output: &Path, stop: &AtomicBool) -> Result<(), StepError> {
        let log = open_log(output)?;
        // By this a later process knows it, should this one be killed. A server is known by where
        // it works.
        let mark = started_by().map_err(|e| self.failed(e))?;
        let mut command = self.command(log)?;
        let mut child = command.env(STARTED_BY, mark).spawn().map_err(|e| self.failed(e))?;
        let status = wait_or_kill_group(&mut child, stop)
            .map_err(|e| io_error("wait for", self.path, e))?
            .ok_or(StepError::Interrupted)?;
        if status.success() {
            return Ok(());
        }
        Err(StepError::Failed {
            program: self.path.to_owned(),
            status,
            output: said(&beginning(output).unwrap_or_default()),
        })
    }

    /// Starts it with its output going to `log`, and does not wait.
    ///
    /// # Errors
    /// [`StepError::Spawn`]: it cannot be started.
    pub fn start(&self, log: File) -> Result<Child, StepError> {
        self.command(log)?.spawn().map_err(|e| self.failed(e))
    }

    /// Returns the program in a process group of its own, so that a Ctrl-C at the terminal reaches
    /// pgdyno alone.
    fn command(&self, log: File) -> Result<Command, StepError> {
        let mut command = Command::new(self.path);
        command.args(self.args).current_dir("/").process_group(0).stdin(Stdio::null());
        command.stdout(log.try_clone().map_err(|e| self.failed(e))?).stderr(log);
        match self.account {
            Some(account) => run_as(&mut command, account),
            None => {
                // The user's PGDATA, PGPORT and the like are meant for other servers.
                for (name, _) in std::env::vars_os() {
                    if name.to_string_lossy().starts_with("PG") {
                        command.env_remove(name);
                    }
                }
                // Messages are read by pgdyno.
                command.env("LC_ALL", "C").env("PATH", search_path());
            }
        }
        Ok(command)
    }

    fn failed(&self, source: io::Error) -> StepError {
        let as_account = self.account.filter(|a| !a.is_ours()).cloned();
        StepError::Spawn { program: PathBuf::from(self.path), as_account, source }
    }
}

/// Lets `command` run as `account`, without root's groups and without our environment but for
/// `PASSED_ON`: a program of the server's account can show its environment to everybody who may
/// log in to the server.
pub fn run_as(command: &mut Command, account: &Account) {
    command.env_clear().env("LC_ALL", "C").env("PATH", search_path());
    for name in PASSED_ON {
        command.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    if !account.is_ours() {
        // The standard library drops all supplementary groups with the user.
        command.uid(account.uid).gid(account.gid);
    }
}

/// What programs of the server's account see of our environment: the time zone, which initdb writes
/// down, and the folders of libraries, without which a build that was moved does not start.
const PASSED_ON: [&str; 2] = ["TZ", "LD_LIBRARY_PATH"];

/// Waits for a child in its own process group; on `stop` ends the group. None: it was stopped.
fn wait_or_kill_group(
    child: &mut Child,
    stop: &AtomicBool,
) -> io::Result<Option<std::process::ExitStatus>> {
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
    // Not waited for yet, so that the group is still this child's.
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    for (signal, limit) in
        [(Signal::TERM, Duration::from_secs(5)), (Signal::KILL, Duration::from_secs(5))]
    {
        if let Some(group) = group {
            let _ = kill_process_group(group, signal);
        }
        let until = Instant::now() + limit;
        while Instant::now() < until {
            if child.try_wait()?.is_some() {
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    Ok(None)
}
