//! Changes the host, and remembers what was made.

pub mod account;
pub mod beneath;
pub mod caches;
pub mod causes;
pub mod cgroup;
pub mod device;
pub mod directory;
pub mod image;
pub mod journal;
pub mod kernel_log;
pub mod marked;
pub mod monotonic;
pub mod mount;
pub mod mountinfo;
pub mod paths;
pub mod perform_undo;
pub mod pool;
pub mod process;
pub mod quote;
pub mod service;
pub mod setting;
pub mod step;
pub mod sweep;
pub mod tool;
pub mod trust;
pub mod undo;

pub use account::{Account, AccountError, server_account};
pub use directory::{DirectoryError, ScratchDirectory, StorageDirectory, room};
pub use journal::{Journal, JournalError};
pub use process::{current_owner, is_alive};
pub use step::{Step, StepError};
pub use sweep::{Leftover, Swept, leftovers};
