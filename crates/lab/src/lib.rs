//! Runs experiments: from a plan to trial records in a store.
//!
//! `pgdyno-experiment` reads the file, resolves every name and draws the order of trials.
//! [`dry_run()`] describes the plan on this machine in words. [`run::run`] carries the plan out: it
//! provisions storages and clusters, loads data, then for each trial settles the server, warms up,
//! measures, and stores the record before the next trial begins. [`run::resume`] continues an
//! interrupted run. Where an experiment asks for crash tests, `pgdyno-crash` does them after the
//! trials.
//!
//! Beside experiments stand single operations: [`load::load`] fills tables, [`probe::fsync`] and
//! [`probe::disk`] measure a storage, [`clean::clean`] removes what killed processes left behind.
//!
//! Every operation reports typed events to a [`Progress`](pgdyno_model::progress::Progress), and
//! ends early once its stop flag is set. Errors are [`pgdyno_provision::BenchError`]: what was
//! attempted, on what, what was found, and its help.
//!
//! ```
//! use pgdyno_experiment::file::Override;
//! use pgdyno_experiment::{ResolvedExperiment, recipes};
//! use pgdyno_provision::ThisHost;
//!
//! let source = recipes::source("quickstart")?;
//! let seed = Override::parse("experiment.seed=7")?;
//! let resolved = ResolvedExperiment::new(source, vec![seed], &ThisHost)?;
//! assert_eq!(resolved.plan.seed, 7);
//! # Ok::<(), pgdyno_experiment::ExperimentError>(())
//! ```
//!
//! To run the experiment, name a store:
//!
//! ```no_run
//! use std::path::Path;
//! use std::sync::atomic::AtomicBool;
//! use pgdyno_experiment::{ResolvedExperiment, recipes};
//! use pgdyno_lab::run;
//! use pgdyno_model::progress::Silent;
//! use pgdyno_provision::ThisHost;
//!
//! let resolved = ResolvedExperiment::new(recipes::source("quickstart")?, Vec::new(), &ThisHost)?;
//! let stop = AtomicBool::new(false);
//! let outcome = run::run(&resolved, Path::new("store.sqlite3"), &Silent, &stop)?;
//! println!("run {}: {} trials failed", outcome.run, outcome.failed);
//! # Ok::<(), pgdyno_provision::BenchError>(())
//! ```

pub mod ad_hoc;
pub mod clean;
mod dry_run;
mod error;
mod host_telemetry;
pub mod hosts;
pub mod live;
pub mod load;
pub mod notify;
pub mod probe;
pub mod run;
pub mod search;

use std::path::PathBuf;

pub use dry_run::dry_run;
pub use host_telemetry::serve as serve_host_telemetry;
pub use pgdyno_connect::control::wait;
pub use pgdyno_connect::interruption::begin as interrupt;
pub use pgdyno_emulated_disk::states::{State as DiskState, Tear};
pub use pgdyno_emulated_disk::{
    Content, DataPlace, DiskEvent, DiskLog, EventKind, LogError, LoggedPage,
    serve as serve_emulated_disk,
};
pub use pgdyno_exec::cgroup::cpus_allowed;
pub use pgdyno_facts::{Serials, host};
pub use pgdyno_observe::doctor;
pub use pgdyno_storage::Wipe;
pub use run::Consent;

/// Returns the directory in which a witness keeps its ledgers by default.
pub fn default_witness() -> PathBuf {
    pgdyno_exec::paths::data_dir().join("witness")
}

/// Returns the path of the store that is used where none is named.
pub fn default_store() -> PathBuf {
    pgdyno_exec::paths::data_dir().join("store.sqlite3")
}
