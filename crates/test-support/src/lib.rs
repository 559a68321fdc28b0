//! Shared parts of pgdyno's integration tests and benches. Only `dev-dependencies` name this crate.
//!
//! - [`Scratch`]: a folder of the test's own that the server's account can enter.
//! - [`Place`]: a storage directory and a journal of the test's own; [`RUN`] is a stop flag for it.
//! - [`Server`] and [`Session`]: a PostgreSQL server of the test's own, and a connection to ask it.
//! - [`live_run()`]: a run in progress.
//! - [`load`]: loads of one script; [`pgbouncer`]: a pooler; [`shop`]: a database whose owner is
//!   hostile; [`zfs`]: zfs-fuse's daemon.
//! - `records` and `synthetic` (feature `stores`): runs that never happened, and stores of them.
//! - [`needs!`], [`skip()`] and [`is_root`]: say that a test is skipped. CI fails on a skip that
//!   `.ci/allowed-skips` does not list.
//! - [`pgbench_folders`]: versions of PostgreSQL whose pgbench ours is compared with.
//! - [`Interval`], [`median`], [`peak_memory_kb`]: figures of benches.
//! - [`quick_install`]: a PostgreSQL whose `initdb` copies what it made before.
//! - [`RELEASE_MOUNTS`]: how a mount namespace of a test lets go of other tests' mounts.
//! - [`write_program`], [`wrap_postgres`]: a program that can be run at once; PostgreSQL's with
//!   another `postgres`.
//! - [`assert_contains`]: words that a text must have.
//! - [`beneath()`]: a filesystem beneath that of a storage.
//! - [`small_workload()`]: a workload that is loaded in no time.
//! - [`Tmpfs`]: a filesystem in memory, with mount options of the test's choice.
//! - [`traces()`]: mounts, loop devices and emulated disks that a test left behind.
//! - [`wait_for`]: polls for a result, and fails the test after a minute.
//!
//! Functions panic where they fail: a test that cannot be set up has failed.
//!
//! ```no_run
//! use pgdyno_test_support::{Server, Session, traces};
//!
//! let server = Server::start();
//! assert_eq!(Session::new(&server.unix()).count("SELECT count(*) FROM pg_class WHERE false"), 0);
//! ```
// Helpers of tests fail as tests do.
#![allow(clippy::unwrap_used)]

mod beneath;
mod live_run;
pub mod load;
mod majors;
mod namespace;
mod peak_memory;
pub mod pgbouncer;
mod place;
mod program;
mod quick_initdb;
#[cfg(feature = "stores")]
pub mod records;
mod scratch;
mod server;
pub mod shop;
mod skip;
mod small_workload;
mod statistics;
#[cfg(feature = "stores")]
pub mod synthetic;
mod text;
mod tmpfs;
mod traces;
mod wait;
pub mod zfs;

pub use beneath::beneath;
pub use live_run::live_run;
pub use majors::pgbench_folders;
pub use namespace::RELEASE_MOUNTS;
pub use peak_memory::peak_memory_kb;
pub use place::Place;
pub use program::{wrap_postgres, write_program};
pub use quick_initdb::quick_install;
pub use scratch::Scratch;
pub use server::{PASSWORD, Server, Session, create_cluster, install};
pub use skip::{caller, is_root, skip};
pub use small_workload::small_workload;
pub use statistics::{Interval, median};
pub use text::assert_contains;
pub use tmpfs::Tmpfs;
pub use traces::traces;
pub use wait::{RUN, wait_for};
