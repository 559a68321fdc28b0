//! The protocol between the coordinator and its workers.
//!
//! A worker begins with [`Report::Hello`]. Then, each way in this order:
//!
//! 1. The coordinator sends [`Order::Time`] several times, and once a second from then on; the
//!    worker answers each at once ([`Report::Time`]). A server that lets in nobody else has to
//!    know from which address its clients will come: [`Order::Route`], [`Report::Route`].
//! 2. [`Order::Prepare`] describes the whole load and the worker's share of it. The worker connects
//!    its clients and answers [`Report::Ready`].
//! 3. [`Order::Go`] names an instant on the worker's own clock. [`Report::Started`] says when it
//!    really began.
//! 4. [`Report::Second`] carries what each second added. [`Report::Done`] carries the totals.
//!
//! [`Order::Stop`] ends the load early, and so does the end of the orders: a worker never outlives
//! its coordinator. [`Report::Failed`] ends the worker.
//!
//! Messages are [`frame`]s of JSON. Times are nanoseconds since the load's start on the worker's
//! clock unless said otherwise. Integers and histograms are exact, so that addition is.

mod counts;
pub mod frame;
mod load;
mod servers;

use std::net::{IpAddr, SocketAddr};

pub use counts::{CountsError, IntervalCounts, TallyCounts};
pub use load::{LoadDescription, LoadError};
use pgdyno_engine::ClientLogKind;
use serde::{Deserialize, Serialize};

use crate::clock::Nanos;

/// Version of the protocol. Every change of a message raises it.
pub const VERSION: u32 = 6;

/// Message of the coordinator to a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Order {
    /// An exchange of time stamps: when this was sent, on the coordinator's clock.
    Time(Nanos),
    /// Say from which address connections to this one come.
    Route(SocketAddr),
    /// Connect the clients of a share of the load.
    Prepare(Box<LoadDescription>),
    /// Begin the load.
    Go {
        /// When, on the worker's clock.
        at: Nanos,
    },
    /// End the load now.
    Stop,
}

/// Message of a worker to the coordinator.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Report {
    /// Versions of the worker: the first report.
    Hello(Hello),
    /// The answer to [`Order::Time`].
    Time {
        /// When the order was sent, on the coordinator's clock.
        sent: Nanos,
        /// When it arrived, on the worker's clock.
        received: Nanos,
        /// When this was sent, on the worker's clock.
        replied: Nanos,
    },
    /// The address from which this host's connections come.
    Route(IpAddr),
    /// All clients are connected.
    Ready,
    /// The load has begun.
    Started {
        /// When, on the worker's clock.
        at: Nanos,
    },
    /// Counts of one second, or of a part of one.
    Second {
        /// Number of such reports before this one.
        number: u64,
        counts: Box<IntervalCounts>,
    },
    /// The load has ended.
    Done(Box<Done>),
    /// A client's message.
    Log(LogKind, String),
    /// The load failed: the last report.
    Failed {
        reason: String,
        /// Advice to the user.
        help: Option<String>,
        /// Whether a stop came before the window opened, and nothing else was wrong.
        is_interrupted: bool,
    },
}

/// Versions of a worker, by which the coordinator accepts or refuses it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Version of the protocol.
    pub protocol: u32,
    /// Version of pgdyno.
    pub pgdyno: String,
}

impl Hello {
    /// Returns the versions of this program.
    pub fn ours() -> Self {
        Self { protocol: VERSION, pgdyno: env!("CARGO_PKG_VERSION").to_owned() }
    }
}

/// Totals of a share of the load.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Done {
    /// Reports of seconds that were sent (count).
    pub seconds: u64,
    /// Sum over the seconds.
    pub totals: TallyCounts,
    /// When the last event loop ended.
    pub ended: Nanos,
    /// CPU time that the worker used in the window (seconds).
    pub cpu_s: f64,
    /// CPU time of the busiest event loop's thread, as a share of one core.
    pub busiest_thread: f64,
    /// `cpu_s` as a share of what the worker may use; none where that is not known.
    pub allowed_cpu_used: Option<f64>,
    /// First second of the window in which that thread had hardly any time left.
    pub pinned_since: Option<u32>,
    /// Reactors that carried the bytes.
    pub reactor: String,
    /// Reason why another reactor than the requested one served.
    pub reactor_reason: Option<String>,
    /// The event loop, among the worker's, that first ended with an aborted client.
    pub aborted_thread: Option<u32>,
    /// Whether a client ended the whole load.
    pub ends_all: bool,
}

/// Kind of a client's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "ClientLogKind")]
enum LogKindData {
    Error,
    News,
    Value,
    Notice,
}

/// Kind of a client's message, as it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogKind(#[serde(with = "LogKindData")] pub ClientLogKind);
