//! Facts about the test bed: the host, the storage under the data, the server.

mod host;
mod smart;
mod storage;

pub use host::{
    CgroupFacts, CpuFacts, Hardware, HostFacts, KernelFacts, MemoryFacts, Virtualization,
};
use serde::{Deserialize, Serialize};
pub use smart::{SmartReport, SmartType, SmartTypeError};
pub use storage::{
    BlockDevice, DeviceKind, FilesystemBeneath, Health, LoopFacts, MountedFilesystem, RaidFacts,
    StorageFacts,
};

/// Where the server's programs came from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum BuildSource {
    /// Found on this machine.
    Found {
        /// The folder of its programs.
        bindir: String,
        /// How it was found: `bindir`, `PG_CONFIG`, `PATH`, or the folder's kind.
        how: String,
    },
    /// Fetched by pgdyno: a small build without lz4, zstd and `io_uring`, compiled for size.
    Fetched {
        /// The folder of its programs.
        bindir: String,
        /// The artefact it was unpacked from.
        artifact: String,
        /// The artefact's SHA-256, as verified.
        sha256: String,
    },
    /// A server that pgdyno does not own, reached through a DSN.
    Given {
        /// Host and port or socket; never a password.
        address: String,
    },
}

/// One setting as the running server reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Setting {
    /// Name in `pg_settings`.
    pub name: String,
    /// Value, in `unit`s if it has one.
    pub value: String,
    /// Unit in `pg_settings`.
    pub unit: Option<String>,
    /// Origin of the value, as `pg_settings.source` says.
    pub source: String,
}

/// Facts that the running server told of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerFacts {
    /// `version()`.
    pub version: String,
    /// `server_version_num`.
    pub version_num: u32,
    /// Origin of the server's programs.
    pub build: BuildSource,
    /// Every setting whose source is not `default`, and those that every report shows, from
    /// `pg_settings`.
    pub settings: Vec<Setting>,
}

impl ServerFacts {
    /// Returns the value of setting `name`, if it was stored.
    pub fn setting(&self, name: &str) -> Option<&str> {
        self.settings.iter().find(|s| s.name == name).map(|s| s.value.as_str())
    }
}

/// A process that owns what pgdyno made: alive only while pid, start and boot all agree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Owner {
    /// Process id.
    pub pid: i32,
    /// The process's start in clock ticks since boot (`/proc/PID/stat`, field 22).
    pub started_ticks: u64,
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
    /// The machine, as in [`HostFacts::id`]; none from an earlier version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}
