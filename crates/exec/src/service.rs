//! A process of pgdyno's own program that serves a file through FUSE, from a directory of its own.
//!
//! [`Service::start`] makes the directory, writes the order there and starts the process. The
//! process reads [`Order`], writes [`ServerId`] and mounts. [`stop_serving`] takes the mount down,
//! which ends the process; it needs nothing but the directory, so that a later process can do it.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pgdyno_model::facts::Owner;
use rustix::process::{Pid, Signal, WaitOptions};
use serde::{Deserialize, Serialize};

use crate::journal::write_new;
use crate::mount::unmount_if;
use crate::mountinfo::Mounted;
use crate::process::{Identity, current_owner};
use crate::step::{StepError, io_error, open_log, quote, said};

/// Names the directory of the service to the process that is to serve.
pub const DIRECTORY: &str = "PGDYNO_EMULATED_DISK";

/// How long the process may take to be ready, and to end once its mount is gone.
const PATIENCE: Duration = Duration::from_secs(20);

/// A process that serves one file: data only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    /// The service's own directory. It is made, with the mount point in it.
    pub directory: PathBuf,
    /// The arguments that make this program serve.
    pub arguments: Vec<String>,
    /// What the process is to serve, for [`Order::task`].
    pub task: serde_json::Value,
    /// The file that appears below the mount point once the process is ready.
    pub file: PathBuf,
    /// The length of that file (bytes).
    pub size: u64,
    /// How a dry run names the process and what it serves.
    pub description: String,
}

/// What the process is told, in a file of the service's directory.
#[derive(Debug, Deserialize, Serialize)]
pub struct Order {
    /// The process that wants the service.
    pub owner: Owner,
    /// What is to be served.
    pub task: serde_json::Value,
}

/// Which process serves, in a file of the service's directory.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct ServerId {
    /// Its pid.
    pub pid: i32,
    /// Its start, in clock ticks since boot.
    pub started_ticks: u64,
}

/// Where the [`Order`] lies.
#[must_use]
pub fn order_of(directory: &Path) -> PathBuf {
    directory.join("order.json")
}

/// Where the [`ServerId`] lies.
#[must_use]
pub fn server_id_of(directory: &Path) -> PathBuf {
    directory.join("server.json")
}

/// Where the process mounts.
#[must_use]
pub fn mount_point_of(directory: &Path) -> PathBuf {
    directory.join("mnt")
}

/// The source that the mount names: the last two names of the directory's path.
#[must_use]
pub fn source_of(directory: &Path) -> String {
    let names: Vec<_> =
        directory.components().rev().take(2).map(|c| c.as_os_str().to_string_lossy()).collect();
    names.into_iter().rev().collect::<Vec<_>>().join("/")
}

impl Service {
    /// Makes the service's directory and starts its process; the file can be used when this
    /// returns.
    ///
    /// # Errors
    /// [`StepError`]: a directory or file cannot be made, the process ends or is not ready in time.
    pub fn start(&self, stop: &AtomicBool) -> Result<(), StepError> {
        let point = mount_point_of(&self.directory);
        for path in [&self.directory, &point] {
            fs::DirBuilder::new()
                .create(path)
                .and_then(|()| {
                    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o700))
                })
                .map_err(|e| io_error("make the directory", path, e))?;
        }
        let order_file = order_of(&self.directory);
        current_owner()
            .and_then(|owner| Ok(serde_json::to_vec(&Order { owner, task: self.task.clone() })?))
            .and_then(|text| write_new(&order_file, &text))
            .map_err(|e| io_error("write", &order_file, e))?;
        let log_file = self.directory.join("log");
        let log = open_log(&log_file)?;
        let mut child = self.spawn(log)?;
        self.wait_ready(&mut child, &log_file, stop).inspect_err(|_| {
            let _ = child.kill();
            let _ = child.wait();
        })
    }

    fn wait_ready(
        &self,
        child: &mut Child,
        log_file: &Path,
        stop: &AtomicBool,
    ) -> Result<(), StepError> {
        let until = Instant::now() + PATIENCE;
        let ready = Readiness::watch(self.file.clone(), self.size);
        loop {
            let log = || said(&fs::read(log_file).unwrap_or_default());
            if let Some(status) =
                child.try_wait().map_err(|e| io_error("wait for", &self.directory, e))?
            {
                return Err(StepError::Failed {
                    program: self.arguments.iter().fold(
                        "pgdyno".into(),
                        |mut all: PathBuf, word| {
                            all.as_mut_os_string().push(format!(" {word}"));
                            all
                        },
                    ),
                    status,
                    output: log(),
                });
            }
            if ready.is_reached() {
                return Ok(());
            }
            if stop.load(Ordering::Relaxed) {
                return Err(StepError::Interrupted);
            }
            if Instant::now() >= until {
                let told =
                    format!("its process is not ready after {PATIENCE:?} and said:\n{}", log());
                let told = io::Error::other(told);
                return Err(io_error("serve the emulated disk in", &self.directory, told));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn spawn(&self, log: File) -> Result<Child, StepError> {
        let failed = |source| StepError::Spawn { program: program(), as_account: None, source };
        let mut command = Command::new(program());
        command
            .args(&self.arguments)
            .arg0("pgdyno")
            .env(DIRECTORY, &self.directory)
            .current_dir("/")
            // A Ctrl-C at the terminal is pgdyno's alone.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(failed)?)
            .stderr(log);
        command.spawn().map_err(failed)
    }
}

/// Watches for a file from a thread of its own: a stat of a FUSE file waits for its server without
/// an end.
struct Readiness {
    is_reached: Arc<AtomicBool>,
    is_over: Arc<AtomicBool>,
}

impl Readiness {
    fn watch(file: PathBuf, size: u64) -> Self {
        let watch = Self { is_reached: Arc::new(false.into()), is_over: Arc::new(false.into()) };
        let (is_reached, is_over) = (Arc::clone(&watch.is_reached), Arc::clone(&watch.is_over));
        std::thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                if fs::metadata(&file).is_ok_and(|m| m.len() == size) {
                    is_reached.store(true, Ordering::Relaxed);
                    return;
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        watch
    }

    fn is_reached(&self) -> bool {
        self.is_reached.load(Ordering::Relaxed)
    }
}

impl Drop for Readiness {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let directory = quote(self.directory.as_os_str());
        write!(f, "make directory {directory} (mode 0700)\nstart: {}", self.description)
    }
}

/// Shows in a dry run that the service in `directory` is stopped.
///
/// # Errors
/// The formatter's.
pub fn fmt_stopping(directory: &Path, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let point = mount_point_of(directory);
    write!(f, "unmount {} (the process that serves it ends)", quote(point.as_os_str()))
}

/// Takes the mount of the service in `directory` down, and waits for the end of its process. A
/// service that was never started counts as stopped.
///
/// # Errors
/// [`StepError`]: the mount is in use or somebody else's, or the process does not end.
pub fn stop_serving(directory: &Path) -> Result<(), StepError> {
    let source = source_of(directory);
    let unmount = || {
        let is_ours = |m: &Mounted| m.filesystem == "fuse" && m.source == source;
        unmount_if(&mount_point_of(directory), is_ours, || format!("fuse ({source})"))
    };
    unmount()?;
    // Without it, or with one that was cut short, that process has mounted nothing and was killed.
    let Ok(text) = fs::read(server_id_of(directory)) else { return Ok(()) };
    let Ok(id) = serde_json::from_slice::<ServerId>(&text) else { return Ok(()) };
    let server = Identity::of(id.pid).filter(|found| found.started_ticks() == id.started_ticks);
    if let Some(server) = server
        && !server.wait_gone(PATIENCE)
    {
        server.signal(Signal::KILL);
        if !server.wait_gone(PATIENCE) {
            let told = io::Error::other(format!("process {} does not end", id.pid));
            return Err(io_error("stop serving the emulated disk in", directory, told));
        }
    }
    reap(id.pid);
    // It may have been about to mount.
    Ok(unmount()?)
}

/// This very program, also when its file was replaced since it was started.
fn program() -> PathBuf {
    "/proc/self/exe".into()
}

/// Takes note of the end of a child of ours; of anybody else's nothing happens.
fn reap(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
    }
}
