//! Records of a log, as they are written and as they are read.

use pgdyno_exec::monotonic::MonotonicTime;
use serde::{Deserialize, Serialize};

use crate::cache::Cached;

/// The version of the format that this pgdyno writes and reads.
pub(super) const VERSION: u32 = 1;

/// The first line.
#[derive(Deserialize, Serialize)]
pub(super) struct Head {
    #[serde(rename = "pgdyno-disk-log")]
    pub(super) version: u32,
    /// Of the disk (bytes).
    #[serde(default)]
    pub(super) size: u64,
}

/// The line of a record.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Line {
    Write {
        n: u64,
        t: MonotonicTime,
        offset: u64,
        length: u64,
        hash: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        at: Option<u64>,
    },
    Discard {
        n: u64,
        t: MonotonicTime,
        offset: u64,
        length: u64,
    },
    Flush {
        n: u64,
        t: MonotonicTime,
        covers: u64,
        done: bool,
    },
    Lost {
        n: u64,
        t: MonotonicTime,
        write: u64,
        kept: u64,
    },
}

/// An event to be recorded.
pub(crate) enum Record<'a> {
    /// A write or discard, as far as it reached the disk. Its sequence is the event's number.
    Write(&'a Cached),
    /// A flush that covers the writes up to `covers`; done, or only acknowledged.
    Flush { number: u64, covers: u64, is_done: bool },
    /// A cut lost a write, but for its first `kept` bytes.
    Lost { number: u64, write: u64, kept: u64 },
}

/// An event of a log that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskEvent {
    /// Number among the disk's events, from 1.
    pub number: u64,
    /// When the event took effect.
    pub at: MonotonicTime,
    /// Kind of the event, with its fields.
    pub kind: EventKind,
}

/// A kind of event, with its fields.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum EventKind {
    /// A write or a discard.
    Write {
        /// Offset on the disk (bytes).
        offset: u64,
        /// Length (bytes).
        length: u64,
        data: DataPlace,
    },
    /// A flush.
    Flush {
        /// All writes up to this number are covered.
        covers: u64,
        /// Whether it was done, and not only acknowledged.
        is_done: bool,
    },
    /// A power cut lost a write.
    Lost {
        /// The number of the write.
        write: u64,
        /// The bytes at its beginning that had reached the medium.
        kept: u64,
    },
}

/// Where the data of a write are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataPlace {
    /// In the log's file.
    Stored {
        /// Where in the file they begin (bytes).
        at: u64,
        /// The first half of their SHA-256, in hexadecimal digits. Equal data are stored once.
        hash: String,
    },
    /// Nowhere: all zeros.
    Zeros,
}
