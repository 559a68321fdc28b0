//! A disk that pgdyno emulates: its power can be cut, it can lie, tear, fail and take its time.
//!
//! It is one file of a FUSE filesystem in a process of its own; a loop device over it carries any
//! filesystem, so that real journals and directory fsyncs are under test. What was flushed lies in
//! a sparse file; what was written since is in that process's memory, as in a drive's volatile
//! cache, and is lost when the power is cut.
//!
//! [`Control`] speaks to a disk: [`Control::cut`], [`Control::arm`] a [`Rule`], [`Control::lie`].
//! After a cut every request fails with EIO until the `power_cycle` of its stack has
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

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use pgdyno_exec::quote::quote;
use pgdyno_exec::service::{self, Service, mount_point_of};
use pgdyno_model::storage::EmulatedDisk;

pub use control::{Control, ControlError};
pub use page::PAGE;
pub use rule::{Content, Cut, DiskError, Effect, Hits, Operation, Over, Rule, Selector, TearUnit};
pub use server::{ServeError, serve};
pub use status::{CutFacts, DiskCounters, DiskStatus, FlushFacts, FlushSpan, RuleState};
pub use write_log::{LogFacts, image_at, log_facts};

/// Where FUSE is asked for.
pub const FUSE: &str = "/dev/fuse";
/// The arguments that make this program call [`serve`]: none are said where it is `pgdyno` itself.
static SERVED_BY: OnceLock<Vec<String>> = OnceLock::new();

/// Says with which arguments this program calls [`serve`], where it is not `pgdyno`; a test names
/// its test that does. The first call counts.
pub fn serve_by<S: AsRef<str>>(arguments: &[S]) {
    let _ = SERVED_BY.set(arguments.iter().map(|a| a.as_ref().to_owned()).collect());
}

/// Whether this process was started to serve a disk.
#[must_use]
pub fn is_asked_to_serve() -> bool {
    std::env::var_os(service::DIRECTORY).is_some()
}

/// A disk and the process that serves it: data only, so that a later process can take it down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskServer {
    /// The disk's own directory.
    pub directory: PathBuf,
    /// What was asked for.
    pub disk: EmulatedDisk,
}

fn image_of(directory: &Path) -> PathBuf {
    directory.join("image")
}

fn write_log_of(directory: &Path) -> PathBuf {
    directory.join("writes")
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

    /// The process that serves it, as the steps start and stop it.
    #[must_use]
    pub fn service(&self) -> Service {
        let (file, image) = (self.file(), self.image());
        let mut description = format!(
            "pgdyno emulated-disk, which serves the disk {} of {} ({} bytes) through FUSE and keeps \
             what is durable in the sparse file {}",
            quote(file.as_os_str()),
            self.disk.size,
            self.disk.size.0,
            quote(image.as_os_str()),
        );
        let latency = self.disk.latency.to_string();
        if !latency.is_empty() {
            description.push_str(&format!("; {latency}"));
        }
        Service {
            directory: self.directory.clone(),
            arguments: SERVED_BY.get().cloned().unwrap_or_else(|| vec!["emulated-disk".into()]),
            task: serde_json::to_value(&self.disk).unwrap_or_default(),
            file,
            size: self.disk.size.0,
            description,
        }
    }
}
