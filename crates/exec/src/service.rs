//! A process of pgdyno's own program that serves a file through FUSE, from a directory of its own.
//!
//! [`Service::start`] makes the directory, writes the order there and starts the process. The
//! process reads [`Order`], writes [`ServerId`] and mounts. [`stop_serving`] takes the mount down,
//! which ends the process; it needs nothing but the directory, so that a later process can do it.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fmt, io};

use rustix::process::{Pid, Signal, WaitOptions};
use serde::{Deserialize, Serialize};

use crate::error::{StepError, io_error};
use crate::files::write_new;
use crate::mount::unmount_if;
use crate::mountinfo::MountEntry;
use crate::process::{Identity, current_owner};
use crate::quote::quote;
use crate::service_paths::{Order, ServerId, mount_point_of, order_of, server_id_of, source_of};
use crate::tool::{Program, excerpt, open_log};

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
    /// Description of the disk to be served, for [`Order::task`].
    pub task: serde_json::Value,
    /// The file that appears below the mount point once the process is ready.
    pub file: PathBuf,
    /// The length of that file (bytes).
    pub size: u64,
    /// The words of a dry run for the process and its file.
    pub description: String,
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
            let log = || excerpt(&fs::read(log_file).unwrap_or_default());
            if let Some(status) =
                child.try_wait().map_err(|e| io_error("wait for", &self.directory, e))?
            {
                let program = format!("pgdyno {}", self.arguments.join(" ")).into();
                return Err(StepError::Failed { program, status, output: log() });
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
        // This very program, also when its file was replaced since it was started.
        let program =
            Program { path: Path::new("/proc/self/exe"), args: &self.arguments, account: None };
        program
            .command(log)
            .and_then(|mut it| it.arg0("pgdyno").env(DIRECTORY, &self.directory).spawn())
            .map_err(|e| program.spawn_error(e))
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

/// Takes the mount of the service in `directory` down, and waits for the end of its process. A
/// service that was never started counts as stopped.
///
/// # Errors
/// [`StepError`]: the mount is in use or somebody else's, or the process does not end.
pub fn stop_serving(directory: &Path) -> Result<(), StepError> {
    let source = source_of(directory);
    let unmount = || {
        let is_ours = |m: &MountEntry| m.filesystem == "fuse" && m.source == source;
        unmount_if(&mount_point_of(directory), is_ours, || format!("fuse ({source})"))
    };
    unmount()?;
    // Without it, or with one that was cut short, that process has mounted nothing and was killed.
    let Ok(text) = fs::read(server_id_of(directory)) else { return Ok(()) };
    let Ok(id) = serde_json::from_slice::<ServerId>(&text) else { return Ok(()) };
    let server =
        Identity::from_pid(id.pid).filter(|found| found.started_ticks() == id.started_ticks);
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

/// Takes note of the end of a child of ours; of anybody else's nothing happens.
fn reap(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
    }
}
