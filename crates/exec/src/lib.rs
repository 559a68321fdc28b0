//! Changes the host, and remembers what was made.
//!
//! Every change is a [`Step`]: plain data that prints itself. One [`Executor`] executes steps.
//! [`ExecContext`] does so on this host, [`DryRun`] prints them, [`Recording`] notes them for tests
//! that need no root. So what a dry run prints is what a run does.
//!
//! The order of calls:
//!
//! 1. [`Journal::open`] opens the journal of what pgdyno made and did not yet remove.
//! 2. [`sweep::sweep`] takes down what a killed process left. It starts from the journal alone.
//! 3. [`ExecContext::new`] begins a piece of work, and [`execute_all`] executes its steps. What a
//!    step makes is journalled before it is made, with the steps that undo it.
//! 4. [`take_down`] executes the steps that undo the work. Each journal entry is struck out once
//!    its thing is gone.
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//!
//! use pgdyno_exec::journal::OwnedResource;
//! use pgdyno_exec::{ExecContext, Journal, Step, execute_all, take_down};
//!
//! # let place = tempfile::tempdir()?;
//! # let (state, path) = (place.path().join("state"), place.path().join("scratch"));
//! let journal = Journal::open(&state)?;
//! let stop = AtomicBool::new(false);
//! let mut context = ExecContext::new(&journal, &stop);
//! let made = OwnedResource::Directory { path: path.clone() };
//! execute_all(&mut context, &[Step::MakeMarked { made, mode: 0o700, owner: None }])?;
//! assert_eq!(journal.entries()?.len(), 1);
//!
//! let left = take_down(&mut context, &[Step::RemoveMarked { path: path.clone() }]);
//! assert!(left.is_empty() && !path.exists() && journal.entries()?.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Guards of other people's data:
//!
//! - Directories are held by descriptor, and names are resolved below it ([`beneath`]).
//! - A thing is removed only if journal, marker and inode number agree ([`marked`]).
//! - Paths that another account can change are refused ([`trust`]).
//! - A named device is checked, and held open while it is written ([`device`]).
//! - The journal holds verbs with names and paths, and no commands ([`undo`]).
//! - Programs of the server's account get a small environment ([`program`]), and waits are bounded.
//!
//! Every program is started in [`program`]. Questions to tools go through [`tool`].

pub mod account;
pub mod beneath;
pub mod caches;
pub mod cgroup;
pub mod context;
pub mod device;
pub mod directory;
pub mod error;
pub mod executor;
pub mod files;
pub mod image;
pub mod journal;
pub mod kernel_log;
pub mod marked;
pub mod monotonic;
pub mod mount;
pub mod mountinfo;
pub mod paths;
pub mod pool;
pub mod process;
pub mod program;
pub mod quote;
pub mod random;
pub mod scratch;
pub mod service;
pub mod service_paths;
pub mod setting;
pub mod step;
pub mod sweep;
pub mod tool;
pub mod trust;
pub mod undo;

pub use account::{Account, AccountError, server_account};
pub use context::ExecContext;
pub use directory::{DirectoryError, StorageDirectory, room};
pub use error::StepError;
pub use executor::{DryRun, Effect, Executor, Recording, execute_all, take_down};
pub use journal::{Journal, JournalError};
pub use process::{current_owner, is_alive};
pub use scratch::ScratchDirectory;
pub use step::Step;
pub use sweep::{CleanupResult, Leftover, leftovers};
