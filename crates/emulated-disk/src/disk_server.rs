//! The description of a disk in a stack, and of the process that serves it.

use std::path::PathBuf;
use std::sync::OnceLock;

use pgdyno_exec::quote::quote;
use pgdyno_exec::service::{self, Service};
use pgdyno_exec::service_paths::mount_point_of;
use pgdyno_model::storage::EmulatedDisk;

use crate::control::{Control, ControlError};
use crate::disk_log::log_file;
use crate::medium::image_of;
use crate::published::{flush_file, position_file};

/// The device of FUSE.
pub const FUSE: &str = "/dev/fuse";
/// The name, below the mount point, of the file that is the disk.
pub(crate) const NAME: &str = "disk";
/// The arguments that make this program call [`crate::serve`]; unset if the program is `pgdyno`.
static SERVED_BY: OnceLock<Vec<String>> = OnceLock::new();

/// Says with which arguments this program calls [`crate::serve`], where it is not `pgdyno`; a test
/// names its test that does. The first call counts.
pub fn serve_by<S: AsRef<str>>(arguments: &[S]) {
    let _ = SERVED_BY.set(arguments.iter().map(|a| a.as_ref().to_owned()).collect());
}

/// Tells whether this process was started to serve a disk.
pub fn is_asked_to_serve() -> bool {
    std::env::var_os(service::DIRECTORY).is_some()
}

/// A disk and the process that serves it: data only, so that a later process can take it down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskServer {
    /// The disk's own directory.
    pub directory: PathBuf,
    /// The wanted properties.
    pub disk: EmulatedDisk,
}

impl DiskServer {
    /// Returns the file that is the disk, for a loop device.
    pub fn file(&self) -> PathBuf {
        mount_point_of(&self.directory).join(NAME)
    }

    /// Returns the sparse file with the durable contents.
    pub fn image(&self) -> PathBuf {
        image_of(&self.directory)
    }

    /// Returns the file of its log. It is there once a log was begun.
    pub fn log(&self) -> PathBuf {
        log_file(&self.directory)
    }

    /// Returns the file that tells the number of its newest event, while it is recorded.
    pub fn position(&self) -> PathBuf {
        position_file(&self.directory)
    }

    /// Returns the file that tells how far its flushes are, while it publishes them.
    pub fn flushes(&self) -> PathBuf {
        flush_file(&self.directory)
    }

    /// Returns a connection to its process.
    ///
    /// # Errors
    /// [`ControlError::Unreachable`]: nobody serves it.
    pub fn control(&self) -> Result<Control, ControlError> {
        Control::connect(&self.directory)
    }

    /// Returns the process that serves it, as the steps start and stop it.
    pub fn service(&self) -> Service {
        let (file, image) = (self.file(), self.image());
        let mut description = format!(
            "pgdyno emulated-disk, which serves the disk {} of {} ({} bytes) through FUSE and \
             keeps what is durable in the sparse file {}",
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
