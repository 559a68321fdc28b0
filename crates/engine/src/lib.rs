//! pgdyno's load engine: offers load to PostgreSQL and records what became of it.
//!
//! [`run_load`] connects all clients, runs one event loop a thread, and adds up what their recorders
//! saw. A [`client`] is a state machine without I/O; a [`reactor`] carries its bytes and tells it
//! the time, so that the same client runs on epoll, on `io_uring` and on a simulated network.

mod aggregate;
pub mod client;
mod client_log;
pub mod connect;
pub mod copy;
mod cpu_time;
mod digits;
mod driver;
mod error;
mod event_loop;
mod failure;
pub mod ledger;
mod observer;
mod outcome;
pub mod pace;
pub mod program;
pub mod random;
pub mod reactor;
pub mod recorder;
pub mod schedule;
pub mod script;
mod seeds;
mod spec;
pub mod sqlstate;
mod tally;
mod transaction_log;
mod worker;

pub use client_log::{ClientLog, ClientLogKind};
pub use driver::run_load;
pub use error::LoadError;
pub use failure::FailureKind;
pub use observer::{LiveSecond, LoadObserver};
pub use pgdyno_wire::ServerError;
pub use reactor::choice::ReactorChoice;
pub use schedule::Phase;
pub use script::WeightedScript;
pub use spec::{LoadSpec, PgbenchSeeds};
pub use transaction_log::{LoggedOutcome, LoggedTransaction, TransactionLog, TransactionSink};

// facade: removed at integration
#[doc(hidden)]
pub use {
    client_log::{ClientLog as Say, ClientLogKind as Told},
    driver::run_load as drive,
    failure::FailureKind as Failure,
    observer::{LiveSecond as Live, LoadObserver as Watch},
};
