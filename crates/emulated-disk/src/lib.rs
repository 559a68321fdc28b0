//! A disk that pgdyno emulates: its power can be cut, it can lie, tear, fail and be slow.
//!
//! The disk is one file of a FUSE filesystem, served by a process of its own. A loop device over
//! that file carries any filesystem, so that real journals and directory syncs are under test. What
//! was flushed lies in a sparse file. What was written since lies in the process's memory, as in a
//! drive's volatile cache, and is lost when the power is cut.
//!
//! The order of calls:
//!
//! 1. [`DiskServer`] names the directory and what is asked for; [`DiskServer::service`] is the
//!    process for [`pgdyno_exec::Step::ServeDisk`]. The process calls [`serve`].
//! 2. [`DiskServer::control`] connects to it: [`Control::arm`] a [`Rule`], [`Control::lie`],
//!    [`Control::cut`].
//! 3. After a cut every request fails with EIO, until the stack above was unmounted and
//!    [`Control::power_on`] was called. The stack's `power_cycle` does both.
//! 4. [`image_at`] rebuilds the disk as it was after any event, from its log ([`DiskLog`]).
//! 5. [`Control::record`] records a stretch, of which [`states`] gives the states that a cut could
//!    have left; [`Control::show`] puts one in place of the contents.
//! 6. [`Control::publish_flushes`] tells other processes how far flushes are, for flush accounting
//!    beside a load.
//!
//! ```no_run
//! use pgdyno_emulated_disk::{Cut, DiskServer};
//! # fn cut(server: &DiskServer) -> Result<(), pgdyno_emulated_disk::ControlError> {
//! let mut control = server.control()?;
//! control.lie(true)?;
//! control.cut(&Cut::default())?;
//! assert!(!control.status()?.powered);
//! # Ok(())
//! # }
//! ```

// What only the serving process calls.
#![cfg_attr(not(feature = "fuse"), allow(dead_code))]

mod cache;
mod control;
mod disk_log;
mod disk_server;
#[cfg(feature = "fuse")]
mod fuse;
#[cfg(feature = "fuse")]
mod layers;
mod medium;
mod model;
mod page;
mod pieces;
mod published;
#[cfg(feature = "fuse")]
mod queue;
mod rule;
mod serve_error;
#[cfg(feature = "fuse")]
mod server;
#[cfg(feature = "fuse")]
mod shared;
pub mod states;
mod status;

pub use control::{Control, ControlError};
pub use disk_log::{DataPlace, DiskEvent, DiskLog, EventKind, LogError, LoggedPage, image_at};
pub use disk_server::{DiskServer, FUSE, is_asked_to_serve, serve_by};
pub use page::PAGE;
pub use published::{flush_file, position_file};
pub use rule::{Content, Cut, DiskError, Effect, Hits, Operation, Over, Rule, Selector, TearUnit};
pub use serve_error::ServeError;
#[cfg(feature = "fuse")]
pub use server::serve;
pub use status::{CutFacts, DiskCounters, DiskStatus, FlushFacts, FlushSpan, RuleState};

/// Whether this build can serve disks (feature `fuse`).
pub const CAN_SERVE: bool = cfg!(feature = "fuse");

/// Refuses to serve a disk: this build cannot.
///
/// # Errors
/// [`ServeError::NotIncluded`], always.
#[cfg(not(feature = "fuse"))]
pub fn serve() -> Result<(), ServeError> {
    Err(ServeError::NotIncluded)
}
