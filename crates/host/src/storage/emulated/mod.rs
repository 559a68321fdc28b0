//! A disk that pgdyno emulates: its power can be cut, it can lie, tear, fail and take its time.
//!
//! It is one file of a FUSE filesystem in a process of its own; a loop device over it carries any
//! filesystem, so that real journals and directory fsyncs are under test. What was flushed lies in
//! a sparse file; what was written since is in that process's memory, as in a drive's volatile
//! cache, and is lost when the power is cut.
//!
//! [`Control`] speaks to a disk: [`Control::cut`], [`Control::arm`] a [`Rule`], [`Control::lie`].
//! After a cut every request fails with EIO until [`crate::storage::MadeStack::power_cycle`] has
//! unmounted, given power again and mounted.

mod cache;
mod control;
mod fuse;
mod medium;
mod model;
mod page;
mod queue;
mod rule;
mod server;
mod shared;
mod status;
mod write_log;

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pgdyno_model::facts::Owner;
use pgdyno_model::storage::EmulatedDisk;
use rustix::process::{Pid, Signal, WaitOptions};
use serde::{Deserialize, Serialize};

pub use control::{Control, ControlError};
pub use page::PAGE;
pub use rule::{Content, Cut, DiskError, Effect, Hits, Operation, Over, Rule, Selector, TearUnit};
pub use server::{ServeError, serve};
pub use status::{CutFacts, DiskCounters, DiskStatus, FlushFacts, FlushSpan, RuleState};
pub use write_log::{LogFacts, image_at, log_facts};

use crate::journal::write_new;
use crate::mountinfo::Mounted;
use crate::process::{Identity, current_owner};
use crate::step::{StepError, io_error, open_log, quote, said};
use crate::storage::mount::unmount_if;

/// Where FUSE is asked for.
pub(crate) const FUSE: &str = "/dev/fuse";
/// Names the directory of the disk to the process that is to serve it.
const DIRECTORY: &str = "PGDYNO_EMULATED_DISK";
/// How long that process may take to be ready, and to end once its mount is gone.
const PATIENCE: Duration = Duration::from_secs(20);

/// The arguments that make this program call [`serve`]: none are said where it is `pgdyno` itself.
static SERVED_BY: OnceLock<Vec<OsString>> = OnceLock::new();

/// Says with which arguments this program calls [`serve`], where it is not `pgdyno`; a test names
/// its test that does. The first call counts.
pub fn serve_by<S: AsRef<std::ffi::OsStr>>(arguments: &[S]) {
    let _ = SERVED_BY.set(arguments.iter().map(|a| a.as_ref().to_owned()).collect());
}

/// Whether this process was started to serve a disk.
#[must_use]
pub fn is_asked_to_serve() -> bool {
    std::env::var_os(DIRECTORY).is_some()
}

/// A disk and the process that serves it: data only, so that a later process can take it down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskServer {
    /// The disk's own directory.
    pub directory: PathBuf,
    /// What was asked for.
    pub disk: EmulatedDisk,
}

/// What the process is told, in a file of the disk's directory.
#[derive(Deserialize, Serialize)]
struct Order {
    owner: Owner,
    disk: EmulatedDisk,
}

/// Which process serves the disk, in a file of its directory.
#[derive(Deserialize, Serialize)]
struct ServerId {
    pid: i32,
    started_ticks: u64,
}

fn order_of(directory: &Path) -> PathBuf {
    directory.join("order.json")
}

fn server_id_of(directory: &Path) -> PathBuf {
    directory.join("server.json")
}

fn image_of(directory: &Path) -> PathBuf {
    directory.join("image")
}

fn write_log_of(directory: &Path) -> PathBuf {
    directory.join("writes")
}

fn mount_point_of(directory: &Path) -> PathBuf {
    directory.join("mnt")
}

/// What the mount calls its source, by which it is known again.
fn source_of(directory: &Path) -> String {
    let names: Vec<_> =
        directory.components().rev().take(2).map(|c| c.as_os_str().to_string_lossy()).collect();
    names.into_iter().rev().collect::<Vec<_>>().join("/")
}

impl DiskServer {
    /// The file that is the disk, for a loop device.
    #[must_use]
    pub fn file(&self) -> PathBuf {
        mount_point_of(&self.directory).join(fuse::NAME)
    }

    /// The sparse file that holds what is durable.
    #[must_use]
    pub fn image(&self) -> PathBuf {
        image_of(&self.directory)
    }

    /// A connection to its process.
    ///
    /// # Errors
    /// [`ControlError::Unreachable`]: nobody serves it.
    pub fn control(&self) -> Result<Control, ControlError> {
        Control::connect(&self.directory)
    }

    /// Makes the disk's directory and starts its process; the disk can be used when this returns.
    pub(crate) fn start(&self, stop: &AtomicBool) -> Result<(), StepError> {
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
            .and_then(|owner| Ok(serde_json::to_vec(&Order { owner, disk: self.disk.clone() })?))
            .and_then(|text| write_new(&order_file, &text))
            .map_err(|e| io_error("write", &order_file, e))?;
        let log_file = self.directory.join("log");
        let log = open_log(&log_file)?;
        let mut child = self.spawn(log)?;
        let until = Instant::now() + PATIENCE;
        loop {
            let why = if let Some(status) =
                child.try_wait().map_err(|e| io_error("wait for", &point, e))?
            {
                let output = said(&fs::read(&log_file).unwrap_or_default());
                return Err(StepError::Failed {
                    program: "pgdyno emulated-disk".into(),
                    status,
                    output,
                });
            } else if self.is_ready() {
                return Ok(());
            } else if stop.load(Ordering::Relaxed) {
                StepError::Interrupted
            } else if Instant::now() >= until {
                let told = said(&fs::read(&log_file).unwrap_or_default());
                let told = format!("its process is not ready after {PATIENCE:?} and said:\n{told}");
                io_error("serve the emulated disk in", &self.directory, io::Error::other(told))
            } else {
                std::thread::sleep(Duration::from_millis(5));
                continue;
            };
            let _ = child.kill();
            let _ = child.wait();
            return Err(why);
        }
    }

    fn spawn(&self, log: File) -> Result<Child, StepError> {
        let failed = |source| StepError::Spawn { program: program(), as_account: None, source };
        let mut command = Command::new(program());
        match SERVED_BY.get() {
            Some(arguments) => command.args(arguments),
            None => command.arg("emulated-disk"),
        };
        command
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

    fn is_ready(&self) -> bool {
        self.control().and_then(|mut control| control.status()).is_ok()
            && fs::metadata(self.file()).is_ok_and(|m| m.len() == self.disk.size.0)
    }

    /// As [`stop_serving`].
    pub(crate) fn stop(&self) -> Result<(), StepError> {
        stop_serving(&self.directory)
    }

    /// How a dry run shows its stopping.
    pub(crate) fn fmt_stopping(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let point = mount_point_of(&self.directory);
        write!(f, "unmount {} (the process that serves it ends)", quote(point.as_os_str()))
    }
}

impl fmt::Display for DiskServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file();
        let image = self.image();
        write!(
            f,
            "make directory {} (mode 0700)\nstart: pgdyno emulated-disk, which serves the disk {} of {} ({} bytes) through FUSE \
             and keeps what is durable in the sparse file {}",
            quote(self.directory.as_os_str()),
            quote(file.as_os_str()),
            self.disk.size,
            self.disk.size.0,
            quote(image.as_os_str()),
        )?;
        let told = self.disk.latency.to_string();
        if told.is_empty() { Ok(()) } else { write!(f, "; {told}") }
    }
}

/// Takes the mount of the emulated disk in `directory` down, and sees its process end. One that was
/// never there is gone already.
pub(crate) fn stop_serving(directory: &Path) -> Result<(), StepError> {
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
