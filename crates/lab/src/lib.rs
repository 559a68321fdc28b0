//! The one place that knows all: parses an experiment, resolves its names into a plan, and runs it.

pub mod clean;
pub mod crash;
mod dry_run;
mod error;
mod estimate;
pub mod file;
pub mod load;
mod needs;
mod prepare;
pub mod probe;
pub mod recipes;
mod redact;
pub mod resolve;
pub mod run;
mod search;
mod shared;
mod trust;

use std::path::PathBuf;

pub use dry_run::dry_run;
pub use error::LabError;
pub use file::Override;
pub use needs::{overrides_of, summary};
pub use pgdyno_dataset::trust::Trust;
pub use pgdyno_dataset::{self as dataset, workload};
pub use pgdyno_host::doctor;
pub use pgdyno_host::facts::Serials;
pub use pgdyno_host::interruption::begin as interrupt;
pub use pgdyno_host::storage::Wipe;
pub use pgdyno_host::storage::emulated::serve as serve_emulated_disk;
pub use pgdyno_model::ProbeRecord;
pub use pgdyno_model::crash::{CrashRecord, Fault, Verdict};
pub use pgdyno_model::experiment::Loading;
pub use pgdyno_model::progress;
pub use pgdyno_model::record::SessionEnd;
pub use pgdyno_model::units::{Bytes, Span};
pub use prepare::{Consent, Prepared};

/// Where a witness keeps its ledgers if nothing else is said.
#[must_use]
pub fn default_witness() -> PathBuf {
    pgdyno_host::paths::data_dir().join("witness")
}

/// The store that is used where none is named.
#[must_use]
pub fn default_store() -> PathBuf {
    pgdyno_host::paths::data_dir().join("store.sqlite3")
}
