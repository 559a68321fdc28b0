//! Storage: whether commits were durable.

use serde::Serialize;

/// Storage and settings, as far as durability goes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "fields have the names of the report's figures")]
pub enum StorageKind {
    /// Setting that gives durability away where it is off.
    Setting {
        switch: Switch,
        /// Value that is shown first.
        value: String,
        /// Places where it is off, and where it is not (count).
        off: usize,
        otherwise: usize,
        /// Whether the report varies it.
        varied: bool,
    },
    /// Barriers that are off.
    BarriersOff { words: String, protection: Option<Protection> },
    /// Barriers that are on.
    BarriersOn {},
    /// Write cache that is on.
    WriteCache { protection: Option<Protection> },
    /// tps against the flushes that commits wait for.
    FlushCeiling {
        ceiling_tps: f64,
        method: String,
        fsync_per_second: f64,
        clients: f64,
        tps: f64,
        commits_per_flush: f64,
    },
    /// `sync` of ZFS.
    ZfsSync { value: String },
    /// `logbias` of ZFS.
    ZfsLogbias { value: String, varied: bool },
    /// Property that is asked for, and listed.
    Property {
        property: String,
        /// Dataset or device; empty where the listing names none.
        subject: String,
        asked: String,
        asked_line: usize,
        listed: String,
    },
}

/// Setting of PostgreSQL that gives durability away where it is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Switch {
    /// `fsync`.
    Fsync,
    /// `full_page_writes`.
    FullPageWrites,
    /// `full_page_writes` on ZFS, which tears no pages.
    FullPageWritesOnZfs,
    /// `synchronous_commit`.
    SynchronousCommit,
}

/// Words of the report that say that caches survive a power loss.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Protection {
    /// Line of the words, from 1.
    pub line: usize,
    /// Words as the report has them.
    pub words: String,
}
