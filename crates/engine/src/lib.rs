//! pgdyno's load engine: it runs scripts against PostgreSQL and measures what comes of them.
//!
//! Describe the load in a [`LoadSpec`] and call [`run_load`]. The calling thread stays in that
//! function until the load has ended; a [`LoadObserver`] sees each second as it passes, and can end
//! the load early.
//!
//! Inside, a load takes this way:
//!
//! 1. [`script::Script::parse`] reads pgbench's script language. [`program::Program::link`]
//!    prepares the messages of all scripts.
//! 2. Each thread connects its share of the clients ([`pgdyno_connect`]) and chooses a [`reactor`]:
//!    epoll or `io_uring`; tests simulate a network.
//! 3. An event loop lets the reactor bring bytes to a [`client`], a state machine without I/O,
//!    which answers with the bytes to send and says what it waits for.
//! 4. A [`recorder`] counts transactions without locks and hands each second to the calling thread,
//!    which adds up the threads' counts to a `Measurement`.
//!
//! Latency counts from the time a transaction was due, so that a stalled server cannot hide its
//! queue. In steady state a transaction allocates nothing: `tests/it/allocations.rs` holds that.
//!
//! ```no_run
//! use std::sync::Arc;
//! use std::sync::atomic::AtomicBool;
//!
//! use pgdyno_engine::script::{Script, WeightedScript};
//! use pgdyno_engine::{LoadObserver, LoadSpec, run_load};
//! use pgdyno_model::target::{Address, Target};
//!
//! let address = Address::Tcp { host: "localhost".into(), port: 5432 };
//! let script = Script::parse("draw.sql", "\\set n random(1, 100)\nSELECT :n;")?;
//! let scripts = vec![WeightedScript::new(Arc::new(script), 1)];
//! let spec = LoadSpec::new(Target::new(address, "postgres", "postgres"), scripts);
//! let stop = AtomicBool::new(false);
//! let observer = LoadObserver { stop: &stop, on_open: &|_| {}, on_second: &|_| {} };
//! let measurement = run_load(&spec, &observer)?;
//! println!("{} transactions in {:.1} s", measurement.transactions, measurement.measured_s);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod aggregate;
pub mod client;
mod client_log;
pub mod copy;
mod cpu_time;
mod digits;
mod driver;
mod error;
mod event_loop;
mod failure;
mod flushes;
mod group;
pub mod ledger;
mod mapped_words;
mod observer;
mod open_files;
mod outcome;
pub mod pace;
pub mod program;
pub mod random;
pub mod reactor;
pub mod recorder;
pub mod schedule;
pub mod script;
mod seeds;
pub mod share;
mod spec;
pub mod sqlstate;
pub mod tally;
pub mod thread_rate;
mod transaction_log;
mod worker;

pub use client_log::{ClientLog, ClientLogKind};
pub use cpu_time::process_cpu_seconds;
pub use driver::{run_load, run_share};
pub use error::LoadError;
pub use failure::FailureKind;
pub use flushes::DiskFlushes;
pub use group::LoadGroup;
pub use observer::{LiveSecond, LoadObserver};
pub use open_files::allow_open_files;
pub use pgdyno_wire::ServerError;
pub use reactor::choice::ReactorChoice;
pub use schedule::Phase;
pub use script::WeightedScript;
pub use spec::{LoadSpec, WindowEnd};
pub use transaction_log::{LoggedOutcome, LoggedTransaction, TransactionLog, TransactionSink};
