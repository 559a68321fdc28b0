//! Ground of trials and crash tests: programs, storages and clusters, and what a run leaves behind.
//!
//! 1. [`stores::clear_leftovers`] opens the journal and removes what killed processes left.
//! 2. [`programs::install_programs`] finds or fetches PostgreSQL for each build of a plan.
//! 3. [`provisioner::Provisioner`] makes storages and clusters on them.
//!
//! All of them take a [`Context`]: the journal, the receiver of progress events, the stop flag.
//! Errors are [`BenchError`]: what was attempted, on what, what was found, and its help.
//!
//! ```no_run
//! use std::path::Path;
//!
//! let store = pgdyno_provision::stores::open_store(Path::new("store.sqlite3"))?;
//! println!("{} runs", store.runs()?.len());
//! # Ok::<(), pgdyno_provision::BenchError>(())
//! ```

pub mod context;
mod dry_run;
mod error;
mod host;
pub mod programs;
pub mod provisioner;
mod record_id;
pub mod sql;
pub mod stores;

pub use context::Context;
pub use dry_run::{dry_run, making};
pub use error::BenchError;
pub use host::{ThisHost, serials};
pub use record_id::{new_record_id, stem};
