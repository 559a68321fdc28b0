//! Replays the statements of a PostgreSQL server's log against another server.
//!
//! 1. [`Recording::read`] reads log files that `csvlog` or `jsonlog` wrote: sessions, each with its
//!    statements in order and the moments at which they began. [`log`](mod@log) reads records, and
//!    touches no file.
//! 2. [`replay`] opens a connection for each session when it began in the log. It sends each
//!    statement when it is due: at its distance from the log's begin, divided by a [`Speed`].
//! 3. A [`ReplayReport`] has latencies from due to done, from sent to done, and how late
//!    statements were sent.
//!
//! Latency counts from due, so that a server that stands still cannot hide its queue. One thread
//! drives all connections over a [reactor](pgdyno_engine::reactor) of the engine's; others only
//! connect and cancel. In steady state a statement allocates nothing.
//!
//! ```no_run
//! use std::sync::atomic::AtomicBool;
//!
//! use pgdyno_connect::conninfo::ConnectOptions;
//! use pgdyno_replay::{ReadOptions, Recording, ReplayOptions, replay};
//!
//! let recording = Recording::read(&["postgresql.csv".into()], &ReadOptions::default())?;
//! let dsn_or_dbname = Some("host=db.example user=bench".into());
//! let connect = ConnectOptions { dsn_or_dbname, ..Default::default() };
//! let stop = AtomicBool::new(false);
//! let report = replay(&recording, &connect, &ReplayOptions::default(), &stop, &mut |_| {})?;
//! println!("{} statements, {:?}", report.statements, report.latency);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod connections;
mod error;
pub mod log;
mod options;
mod player;
mod recording;
mod report;
mod run;
mod sql;

pub use error::{RecordingError, ReplayError};
pub use options::{ReplayOptions, Speed, SpeedError};
pub use pgdyno_connect::conninfo::ConnectOptions;
pub use player::ReplayProgress;
pub use recording::{
    Obstacle, ObstacleCount, Obstacles, Place, ReadOptions, RecordCounts, Recording,
    RecordingSummary, Session, Statement,
};
pub use report::{Distribution, ErrorCount, ReplayEnd, ReplayReport};
pub use run::replay;
