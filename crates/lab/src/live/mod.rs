//! Lets others watch a run while it works, through a live file beside the store, without the
//! store's lock.
//!
//! A run appends one [`Event`](pgdyno_model::progress::Event) a line to `RUN.jsonl` in the
//! store's live folder ([`folder`]). Watchers read the file; the run never waits for them.
//!
//! The order of calls of a run:
//!
//! 1. [`Feed::new`] wraps the run's `Progress`.
//! 2. [`Feed`] passes every event on, and writes it. The file appears with
//!    [`Event::Begun`](pgdyno_model::progress::Event::Begun).
//! 3. [`Feed::end`] writes the last record.
//!
//! A watcher calls [`runs`] or [`find`], [`Follower::open`], and then [`Follower::poll`] every now
//! and then. [`ask_to_stop`] asks the run to end after the trial in progress.
//!
//! Live files of dead processes stay until the next run on the store begins. Until then a watcher
//! can see how the run ended, or that its process died.
//!
//! ```
//! use std::path::Path;
//!
//! let store = Path::new("store.sqlite3");
//! assert!(pgdyno_lab::live::folder(store).ends_with("store.sqlite3.live"));
//! assert!(pgdyno_lab::live::runs(store)?.is_empty());
//! # Ok::<(), pgdyno_provision::BenchError>(())
//! ```

mod detach;
mod error;
mod feed;
mod follower;
mod live_folder;
mod second;
mod summary;

pub use self::detach::{Detached, detach, leave_terminal};
pub use self::error::LiveError;
pub use self::feed::Feed;
pub use self::follower::Follower;
pub use self::live_folder::folder;
pub use self::second::load_second;
pub use self::summary::{LiveSummary, ask_to_stop, find, interrupt, runs};
