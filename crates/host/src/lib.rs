//! Changes and observes machines: PostgreSQL servers, what lies under them, and what both do while
//! load runs.
//!
//! The only crate of pgdyno that starts programs and changes the machine. Whatever it makes is
//! journalled before it is made, carries a mark of its own, and is taken down by the value that
//! stands for it when that is dropped, or by [`sweep()`] at the next start if the process was
//! killed.

pub mod account;
pub mod beneath;
pub mod caches;
mod cgroup;
pub mod directory;
pub mod doctor;
pub mod facts;
pub mod fault;
pub mod journal;
pub mod kept;
pub(crate) mod marked;
pub mod monotonic;
pub mod mountinfo;
pub mod paths;
pub mod postgres;
pub mod probe;
pub mod process;
mod quote;
pub mod step;
pub mod storage;
pub mod sweep;
pub mod telemetry;
pub mod trust;
pub mod undo;

// facade: removed at integration
pub use pgdyno_connect::{conninfo, interruption};

pub use account::{Account, AccountError, server_account};
pub use directory::{DirectoryError, ScratchDirectory, StorageDirectory, room};
pub use journal::{Journal, JournalError};
pub use process::{current_owner, is_alive};
pub use step::{Step, StepError};
pub use sweep::{Leftover, Swept, leftovers, sweep};
