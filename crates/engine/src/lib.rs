//! pgdyno's load engine: offers load to PostgreSQL and records what became of it.
//!
//! [`drive`] connects all clients, runs one event loop a thread, and adds up what their recorders
//! saw. A [`client`] is a state machine without I/O; a [`reactor`] carries its bytes and tells it
//! the time, so that the same client runs on epoll, on `io_uring`, in blocking reads and on a
//! simulated network.

mod aggregate;
pub mod client;
pub mod copy;
mod digits;
mod event_loop;
pub mod ledger;
mod load;
mod log;
pub mod pace;
pub mod program;
pub mod random;
pub mod reactor;
pub mod recorder;
pub mod schedule;
pub mod script;
mod seeds;
mod tally;
mod worker;

// facade: removed at integration
pub use pgdyno_connect as connect;

pub use load::{
    Live, LoadError, LoadSpec, PgbenchSeeds, Phase, Say, Told, Watch, WeightedScript, drive,
};
pub use log::{LoggedOutcome, LoggedTransaction, TransactionLog, TransactionSink};
pub use pgdyno_wire::ServerError;
pub use reactor::choice::ReactorChoice;
pub use recorder::Failure;
