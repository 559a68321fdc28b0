//! Changes and observes machines: PostgreSQL servers, what lies under them, and what both do while
//! load runs.
//!
//! The only crate of pgdyno that starts programs and changes the machine. Whatever it makes is
//! journalled before it is made, carries a mark of its own, and is taken down by the value that
//! stands for it when that is dropped, or by [`sweep()`] at the next start if the process was
//! killed.

pub mod conninfo;
pub mod doctor;
pub mod postgres;
pub mod sweep;
pub mod telemetry;

// facade: removed at integration
pub use pgdyno_exec::{
    account, beneath, caches, directory, interruption, journal, marked, monotonic, mountinfo,
    paths, process, quote, step, trust, undo,
};
pub use pgdyno_facts as facts;
pub use pgdyno_storage as storage;
pub use pgdyno_storage::{fault, kept, probe};

pub use account::{Account, AccountError, server_account};
pub use directory::{DirectoryError, StorageDirectory, room};
pub use journal::{Journal, JournalError};
pub use pgdyno_exec::ScratchDirectory;
pub use process::{current_owner, is_alive};
pub use step::{Step, StepError};
pub use sweep::{CleanupResult, Leftover, Swept, leftovers, sweep};
