//! Old paths of items that moved into crates of their own.

// facade: removed at integration
pub use pgdyno_connect::{conninfo, interruption};
pub use pgdyno_exec::{
    account, beneath, caches, directory, journal, marked, monotonic, mountinfo, paths, process,
    quote, step, trust, undo,
};
pub use pgdyno_facts as facts;
pub use pgdyno_observe::{doctor, telemetry};
pub use pgdyno_postgres as postgres;
pub use pgdyno_postgres::sweep;
pub use pgdyno_storage as storage;
pub use pgdyno_storage::{fault, kept, probe};

pub use account::{Account, AccountError, server_account};
pub use directory::{DirectoryError, StorageDirectory, room};
pub use journal::{Journal, JournalError};
pub use pgdyno_exec::ScratchDirectory;
pub use process::{current_owner, is_alive};
pub use step::{Step, StepError};
pub use sweep::{CleanupResult, Leftover, Swept, leftovers, sweep};
