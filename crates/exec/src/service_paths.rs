//! The files in the directory of a service.

use std::path::{Path, PathBuf};

use pgdyno_model::facts::Owner;
use serde::{Deserialize, Serialize};

/// The order for the process, a file in the service's directory.
#[derive(Debug, Deserialize, Serialize)]
pub struct Order {
    /// The process that wants the service.
    pub owner: Owner,
    /// The thing to be served.
    pub task: serde_json::Value,
}

/// The process that serves, a file in the service's directory.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct ServerId {
    /// Process id.
    pub pid: i32,
    /// Start of the process, in clock ticks since boot.
    pub started_ticks: u64,
}

/// Returns the path of the file that holds the [`Order`].
pub fn order_of(directory: &Path) -> PathBuf {
    directory.join("order.json")
}

/// Returns the path of the file that holds the [`ServerId`].
pub fn server_id_of(directory: &Path) -> PathBuf {
    directory.join("server.json")
}

/// Returns the directory that the process mounts on.
pub fn mount_point_of(directory: &Path) -> PathBuf {
    directory.join("mnt")
}

/// Returns the source that the mount names: the last two names of the directory's path.
pub fn source_of(directory: &Path) -> String {
    let names: Vec<_> =
        directory.components().rev().take(2).map(|c| c.as_os_str().to_string_lossy()).collect();
    names.into_iter().rev().collect::<Vec<_>>().join("/")
}
